"""Rows that are ready for pairing and training, and the files that preprocessing makes of them."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, atomic, digest, identity, write_table
from pairflow.config import DataSettings
from pairflow.data.known import KnownMolecules


def contract(**facts: Any) -> str:
    """The vocabulary.json of data without symbols of their own: what models and rows must agree on."""
    return json.dumps(facts, separators=(",", ":"))


def hash_contract(content: str) -> str:
    """SHA-256 (hex) of a vocabulary.json, which must be the same for a model and its rows."""
    return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class PreparedRows:
    """Rows for training (M, N) and held-out rows (V, N) in the order of the data, K symbols (0: numbers)."""

    train: np.ndarray
    validation: np.ndarray
    contract: str
    symbols: int = 0


def write_rows(
    files: Mapping[str, Path],
    settings: DataSettings,
    rows: PreparedRows,
    make_table: Callable[[str], pa.Table],
    inputs: Mapping[str, str],
    **facts: Any,
) -> None:
    """Write both parts, as `make_table` makes tables of `train` and `validation`, the vocabulary, and no
    known molecules. `facts` are for the metadata, in which there may be further parameters."""
    metadata = Metadata(
        length=rows.train.shape[1],
        vocabulary=hash_contract(rows.contract),
        data=identity(rows.train, rows.validation),
        split="train",
        parameters=settings.model_dump(mode="json") | facts.pop("parameters", {}),
        inputs=inputs,
        **facts,
    )
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        for split in ("train", "validation"):
            write_table(paths[split], make_table(split), replace(metadata, split=split))
        paths["vocabulary"].write_text(rows.contract + "\n")
        write_no_molecules(paths["known"], metadata.vocabulary, metadata.data, metadata.inputs)


def write_no_molecules(
    path: Path, vocabulary: str | None, data: str | None, inputs: Mapping[str, str]
) -> None:
    """Write the table of known molecules of data that have none."""
    KnownMolecules.from_smiles([]).save(path, vocabulary=vocabulary, data=data, inputs=inputs)


def parent_digest(vocabulary: Path | None) -> dict[str, str]:
    """The hash of the parent's vocabulary for a table's metadata, if there is one."""
    return {"parent_vocabulary": digest(vocabulary)} if vocabulary else {}
