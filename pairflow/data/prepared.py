"""The rows that preprocessing makes, for the kinds of data whose files are the same four."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, atomic, digest, identity, token_column, token_dtype, write_table
from pairflow.config import DataSettings
from pairflow.data.known import KnownMolecules
from pairflow.data.source import DatasetSize
from pairflow.data.split import split_rows


@dataclass(frozen=True)
class PreparedRows:
    """Token rows of a kind of data, for training (M, N) and held out (V, N), of K symbols."""

    kind: str
    train: np.ndarray
    validation: np.ndarray
    vocabulary_size: int

    @classmethod
    def split(cls, rows: np.ndarray, vocabulary_size: int, settings: DataSettings) -> "PreparedRows":
        """The rows (M, N) in two parts, by `validation_fraction`, `split_seed` and `training_rows` of the
        settings."""
        options = settings.model_dump(include={"validation_fraction", "split_seed", "training_rows"})
        split = split_rows(range(len(rows)), validation_rows=None, **options)
        rows = rows.astype(token_dtype(vocabulary_size), copy=False)
        return cls(settings.kind, rows[split == "train"], rows[split == "validation"], vocabulary_size)

    @property
    def contract(self) -> str:
        """The vocabulary.json: the kind, N and K, on which models and rows must agree."""
        facts = {"kind": self.kind, "length": self.train.shape[1], "symbols": self.vocabulary_size}
        return json.dumps(facts, separators=(",", ":"))

    @property
    def size(self) -> DatasetSize:
        (rows, length), held_out = self.train.shape, len(self.validation)
        return DatasetSize(rows, held_out, self.vocabulary_size, length)

    def write(self, files: Mapping[str, Path], settings: DataSettings, source: Path) -> None:
        """Write both parts and the vocabulary; `source` is the file that the rows were read from."""
        metadata = Metadata(
            kind="tokens",
            length=self.train.shape[1],
            vocabulary_size=self.vocabulary_size,
            vocabulary=hashlib.sha256(self.contract.encode()).hexdigest(),
            data=identity(self.train, self.validation),
            split="train",
            parameters=settings.model_dump(mode="json"),
            inputs={"source": digest(source)},
        )
        train, validation = (
            pa.table({"tokens": token_column(rows, self.vocabulary_size)})
            for rows in (self.train, self.validation)
        )
        write_rows(files, train, validation, metadata, self.contract)


def write_rows(
    files: Mapping[str, Path], train: pa.Table, validation: pa.Table, metadata: Metadata, contract: str
) -> None:
    """Write both parts, the vocabulary `contract`, and no known molecules. `metadata`: of `train`."""
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        write_table(paths["train"], train, metadata)
        write_table(paths["validation"], validation, replace(metadata, split="validation"))
        paths["vocabulary"].write_text(contract + "\n")
        write_no_molecules(paths["known"], metadata.vocabulary, metadata.data, metadata.inputs)


def write_no_molecules(
    path: Path, vocabulary: str | None, data: str | None, inputs: Mapping[str, str]
) -> None:
    """Write the table of known molecules of data that have none."""
    KnownMolecules.from_smiles([]).save(path, vocabulary=vocabulary, data=data, inputs=inputs)


def parent_digest(vocabulary: Path | None) -> dict[str, str]:
    """The hash of the parent's vocabulary for a table's metadata, if there is one."""
    return {"parent_vocabulary": digest(vocabulary)} if vocabulary else {}
