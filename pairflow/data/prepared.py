"""Rows that are ready for pairing and training, and the files that preprocessing writes."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from pairflow.artifacts import (
    Metadata,
    atomic,
    digest,
    identity,
    label_column,
    row_column,
    token_column,
    token_dtype,
    write_table,
)
from pairflow.config import DataSettings
from pairflow.data.split import describe_split, split_rows
from pairflow.errors import InputError
from pairflow.files import Json


class Labelled(NamedTuple):
    """The label of each row (M,), and their meaning: `condition`, JSON for the metadata of a table."""

    labels: np.ndarray
    condition: Json


@dataclass(frozen=True)
class PreparedRows:
    """Rows for training (M, N) and held-out rows (V, N): tokens of K = `symbols`, or numbers if K is 0.
    `kind` is the kind of data."""

    kind: str
    train: np.ndarray
    validation: np.ndarray
    symbols: int = 0
    labels: Mapping[str, np.ndarray] | None = None  # of the rows of each part
    condition: Json | None = None  # what the labels mean

    @classmethod
    def split(
        cls,
        rows: np.ndarray,
        symbols: int,
        settings: DataSettings,
        validation_rows: Sequence[int] | None = None,
        labelled: Labelled | None = None,
    ) -> "PreparedRows":
        """Split token rows (M, N), and perhaps their labels, by the settings `validation_fraction`,
        `split_seed` and `training_rows`, or hold out the `validation_rows`, given by their indices."""
        options = settings.model_dump(include={"validation_fraction", "split_seed", "training_rows"})
        split = split_rows(range(len(rows)), validation_rows=validation_rows, **options)
        rows = rows.astype(token_dtype(symbols), copy=False)
        parts = {part: split == part for part in ("train", "validation")}
        train, validation = (rows[chosen] for chosen in parts.values())
        if not labelled:
            return cls(settings.kind, train, validation, symbols)
        labels = {part: labelled.labels[chosen] for part, chosen in parts.items()}
        return cls(settings.kind, train, validation, symbols, labels, labelled.condition)

    def write(self, files: Mapping[str, Path], settings: DataSettings, *sources: Path | None) -> None:
        """Write both parts, and a vocabulary with the kind, N and K, to `files` (paths by the stems of their
        names). `sources` are the files that the parts come from: of all rows, and perhaps of the held-out
        rows."""
        facts = {"kind": self.kind, "length": self.train.shape[1]}
        if self.symbols:
            facts["symbols"] = self.symbols
        parts = {"train": self.train, "validation": self.validation}
        inputs = {
            key: digest(path) for key, path in zip(("source", "held_out"), sources, strict=False) if path
        }
        vocabulary, parameters = contract(**facts), settings.model_dump(mode="json")
        write = partial(write_prepared, labels=self.labels, condition=self.condition)
        write(files, parts, vocabulary, self.symbols, parameters, inputs)


def contract(**facts: object) -> str:
    """Return the content of vocabulary.json for data whose symbols have no names: `facts` as JSON. A model
    and its rows must have the same ones."""
    return json.dumps(facts, separators=(",", ":"))


def write_prepared(
    files: Mapping[str, Path],
    parts: Mapping[str, np.ndarray],
    vocabulary: str,
    symbols: int,
    parameters: Json,
    inputs: Mapping[str, str],
    *,
    labels: Mapping[str, np.ndarray | pa.Array] | None = None,
    tables: Mapping[str, tuple[pd.DataFrame | pa.Table, str]] = MappingProxyType({}),
    own: bool = True,
    **row_format: Any,
) -> None:
    """Write the files of preprocessing, all or none.

    Raises InputError if all rows of a user's own data are equal.

    Args:
        files: the path of each file, by the stem of its name.
        parts: the rows (M, N) of each split, "train" and "validation".
        vocabulary: the content of vocabulary.json.
        symbols: K, the number of symbols; 0 if rows are numbers.
        parameters: the settings of the data.
        inputs: hashes of the files that were read.
        labels: the labels of each split, for conditional models.
        tables: further tables, and the kind of each.
        own: whether the data are the user's own.
        row_format: further metadata of the rows.
    """
    if own:
        _require_different(parts, parameters)
    described = partial(
        Metadata,
        vocabulary=hashlib.sha256(vocabulary.encode()).hexdigest(),
        data=identity(parts["train"], parts["validation"]),
        parameters=parameters,
        inputs=inputs,
    )
    if any(map(parameters.get, ("split_column", "held_out"))) or parameters.get("split") == "folders":
        note = describe_split(parts["train"], parts["validation"])
        print(f"pairflow preprocess: note: {note}", file=sys.stderr)
    row_format |= {"length": parts["train"].shape[1], "vocabulary_size": symbols or None}
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        for split, rows in parts.items():
            column = {"tokens": token_column(rows, symbols)} if symbols else {"values": row_column(rows)}
            label = label_column(labels[split]) if labels else {}
            metadata = described("tokens" if symbols else "vectors", split=split, **row_format)
            write_table(paths[split], pa.table(column | label), metadata)
        paths["vocabulary"].write_text(vocabulary + "\n", encoding="utf-8")
        for name, (table, kind) in tables.items():
            write_table(paths[name], table, described(kind))


def _require_different(parts: Mapping[str, np.ndarray], parameters: Mapping[str, object]) -> None:
    """Raise InputError if there are several rows, and all of them are equal."""
    count = sum(map(len, parts.values()))
    if count > 1 and all((rows == parts["train"][0]).all() for rows in parts.values()):
        name = next(filter(None, map(parameters.get, ("file", "folder", "source"))))
        raise InputError(f"{name}: all {count:,} rows are equal, so that there is nothing to learn")


def parent_digest(vocabulary: Path | None) -> dict[str, str]:
    """Return the hash of a parent's vocabulary as an entry of a table's `inputs`; empty without a parent."""
    return {"parent_vocabulary": digest(vocabulary)} if vocabulary else {}
