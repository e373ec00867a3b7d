"""Rows that are ready for pairing and training, and the files that preprocessing makes of them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pairflow.artifacts import (
    Metadata,
    atomic,
    digest,
    identity,
    row_column,
    token_column,
    token_dtype,
    write_table,
)
from pairflow.config import DataSettings
from pairflow.data.known import KnownMolecules
from pairflow.data.split import split_rows


@dataclass(frozen=True)
class PreparedRows:
    """Rows of a kind of data, for training (M, N) and held out (V, N), of K symbols; of numbers if K is 0."""

    kind: str
    train: np.ndarray
    validation: np.ndarray
    symbols: int = 0

    @classmethod
    def split(cls, rows: np.ndarray, symbols: int, settings: DataSettings) -> "PreparedRows":
        """Rows of tokens (M, N) in two parts, by `validation_fraction`, `split_seed` and `training_rows` of
        the settings."""
        options = settings.model_dump(include={"validation_fraction", "split_seed", "training_rows"})
        split = split_rows(range(len(rows)), validation_rows=None, **options)
        rows = rows.astype(token_dtype(symbols), copy=False)
        return cls(settings.kind, rows[split == "train"], rows[split == "validation"], symbols)

    def write(self, files: Mapping[str, Path], settings: DataSettings, source: Path | None) -> None:
        """Write both parts and the vocabulary, which has the kind, N and K. `source` is the file that the
        rows were read from, if there is one."""
        facts = {"kind": self.kind, "length": self.train.shape[1]}
        if self.symbols:
            facts["symbols"] = self.symbols
        content = contract(**facts)
        metadata = Metadata(
            kind="tokens" if self.symbols else "vectors",
            length=self.train.shape[1],
            vocabulary_size=self.symbols or None,
            vocabulary=hash_contract(content),
            data=identity(self.train, self.validation),
            split="train",
            parameters=settings.model_dump(mode="json"),
            inputs={"source": digest(source)} if source else {},
        )
        train, validation = (self._table(rows) for rows in (self.train, self.validation))
        write_rows(files, train, validation, metadata, content)

    def _table(self, rows: np.ndarray) -> pa.Table:
        if self.symbols:
            return pa.table({"tokens": token_column(rows, self.symbols)})
        return pa.table({"values": row_column(rows)})


def contract(**facts: Any) -> str:
    """The vocabulary.json of data without symbols of their own: what models and rows must agree on."""
    return json.dumps(facts, separators=(",", ":"))


def hash_contract(content: str) -> str:
    """SHA-256 (hex) of a vocabulary.json, which must be the same for a model and its rows."""
    return hashlib.sha256(content.encode()).hexdigest()


def write_rows(
    files: Mapping[str, Path], train: pa.Table, validation: pa.Table, metadata: Metadata, content: str
) -> None:
    """Write both parts, the vocabulary's `content`, and no known molecules. `metadata`: of `train`."""
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        write_table(paths["train"], train, metadata)
        write_table(paths["validation"], validation, replace(metadata, split="validation"))
        paths["vocabulary"].write_text(content + "\n")
        write_no_molecules(paths["known"], metadata.vocabulary, metadata.data, metadata.inputs)


def write_no_molecules(
    path: Path, vocabulary: str | None, data: str | None, inputs: Mapping[str, str]
) -> None:
    """Write the table of known molecules of data that have none."""
    KnownMolecules.from_smiles([]).save(path, vocabulary=vocabulary, data=data, inputs=inputs)


def parent_digest(vocabulary: Path | None) -> dict[str, str]:
    """The hash of the parent's vocabulary for a table's metadata, if there is one."""
    return {"parent_vocabulary": digest(vocabulary)} if vocabulary else {}
