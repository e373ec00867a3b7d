"""Writes molecules as token rows, their canonical SMILES and hashes, and the rows that were left out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pairflow.artifacts import Metadata, atomic, digest, identity, token_column, write_table
from pairflow.data.known import KnownMolecules
from pairflow.data.prepared import parent_digest
from pairflow.kinds.molecules import prepare
from pairflow.kinds.molecules.condition import label_molecules
from pairflow.kinds.molecules.data_sets import source_of
from pairflow.kinds.molecules.settings import Molecules


def store(settings: Molecules, files: Mapping[str, Path], parent: Path | None, progress: bool) -> None:
    source = source_of(settings)
    symbols = prepare.Vocabulary.load(parent) if parent else None
    prepared = source.read(settings, progress=progress, parent=symbols)
    vocabulary = prepared.vocabulary
    shared: dict[str, Any] = {
        "vocabulary": vocabulary.hash,
        "data": identity(prepared.train, prepared.validation),
        "parameters": settings.model_dump(mode="json"),
        "inputs": {"source": digest(source.fetch()), **parent_digest(parent)},
    }
    row_format: dict[str, Any] = {"length": settings.length, "vocabulary_size": vocabulary.size}
    row_format |= {"padding": prepare.PAD, "mask": prepare.MASK}
    tables, row_format["condition"] = _tables(settings, prepared, source)
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        for split, table in tables.items():
            write_table(paths[split], table, Metadata(kind="tokens", split=split, **row_format, **shared))
        vocabulary.save(paths["vocabulary"])
        write_table(paths["smiles"], prepared.smiles, Metadata(kind="smiles", **shared))
        KnownMolecules.from_smiles(prepared.smiles["smiles"]).save(paths["known"], **shared)
        write_table(paths["rejected"], prepared.rejected, Metadata(kind="rejected rows", **shared))


def _tables(settings: Molecules, prepared, source) -> tuple[dict[str, pa.Table], dict[str, Any] | None]:
    """The token rows of both splits, with labels if there is a condition, and the classes of these."""
    splits = {"train": prepared.train, "validation": prepared.validation}
    columns = {
        split: {"tokens": token_column(rows, prepared.vocabulary.size)} for split, rows in splits.items()
    }
    facts = None
    if settings.condition:
        classes, labels = label_molecules(settings.condition, prepared.smiles, source.fetch())
        for split in splits:
            columns[split]["label"] = pa.array(labels[prepared.smiles["split"] == split])
        facts = classes.model_dump(mode="json")
    return {split: pa.table(named) for split, named in columns.items()}, facts
