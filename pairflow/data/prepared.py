"""Writes the rows that preprocessing makes, for the kinds of data whose files are the same four."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Metadata, atomic, digest, write_table
from pairflow.data.known import KnownMolecules


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
