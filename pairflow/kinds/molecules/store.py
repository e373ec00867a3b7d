"""Writes molecules as token rows, with the labels of a condition, and what belongs to them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from pairflow.artifacts import Metadata, atomic, digest, identity, token_column, write_table
from pairflow.config import nearest
from pairflow.data.classes import Classes
from pairflow.data.known import KnownMolecules
from pairflow.data.prepared import parent_digest
from pairflow.errors import InputError
from pairflow.kinds.molecules import prepare
from pairflow.kinds.molecules.data_sets import source_of
from pairflow.kinds.molecules.descriptors import compute
from pairflow.kinds.molecules.library import TABLES, columns, format_of
from pairflow.kinds.molecules.settings import Conditioning, Molecules


def store(settings: Molecules, files: Mapping[str, Path], parent: Path | None, progress: bool) -> None:
    """Write token rows, canonical SMILES and their hashes, and the rows that were left out."""
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
    splits = {"train": prepared.train, "validation": prepared.validation}
    tables = {
        split: pa.table({"tokens": token_column(rows, vocabulary.size)}) for split, rows in splits.items()
    }
    if settings.condition:
        classes, labels = label_molecules(settings.condition, prepared.smiles, source.fetch())
        for split, table in tables.items():
            own = pa.array(labels[prepared.smiles["split"] == split])
            tables[split] = table.append_column("label", own)
        row_format["condition"] = classes.model_dump(mode="json")
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        for split, table in tables.items():
            write_table(paths[split], table, Metadata(kind="tokens", split=split, **row_format, **shared))
        vocabulary.save(paths["vocabulary"])
        write_table(paths["smiles"], prepared.smiles, Metadata(kind="smiles", **shared))
        KnownMolecules.from_smiles(prepared.smiles["smiles"]).save(paths["known"], **shared)
        write_table(paths["rejected"], prepared.rejected, Metadata(kind="rejected rows", **shared))


def label_molecules(
    condition: Conditioning, molecules: pd.DataFrame, table: Path
) -> tuple[Classes, np.ndarray]:
    """The classes of the training molecules, and the labels (M,) of all `molecules`, which have `row`,
    `smiles` and `split` as `PreparedMolecules` has them. `row` counts the rows of the raw file `table`.

    InputError for a column that is missing or holds no numbers, and if a class would be empty.
    """
    column = str(condition.column)
    if condition.property:
        values = compute(condition.property, molecules["smiles"].tolist())
    else:
        if (kind := format_of(table)) not in TABLES:
            raise InputError(f"{table}: a {kind} file has no columns, so there is no column '{column}'")
        fields = columns(table, 2**31)
        if column not in fields:
            found = f"no column '{column}'{nearest(column, fields)}; found {', '.join(fields)}"
            raise InputError(f"{table}: {found}")
        try:
            numbers = [float(field) if field.strip() else np.nan for field in fields[column]]
        except ValueError as error:
            raise InputError(f"{table}: column '{column}': {error}") from None
        values = np.array(numbers, np.float64)[molecules["row"]]
    training = values[(molecules["split"] == "train").to_numpy()]
    classes = Classes.from_values(condition.name(), training, condition.labels())
    return classes, classes.labels(values)
