"""Parquet tables with metadata: a step writes them, and the next step checks them when it reads them.

A file's metadata say only what it contains and how it was computed (kind, N, K, vocabulary, parameters,
hashes of inputs), so that equal runs give equal bytes.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pairflow.artifacts.atomic import atomic
from pairflow.artifacts.contents import require_contents
from pairflow.artifacts.provenance import Provenance
from pairflow.artifacts.rows import named_when_damaged
from pairflow.errors import InputError
from pairflow.files import Json, require_regular
from pairflow.limits import MAX_VOCABULARY

Table: TypeAlias = pa.Table | pd.DataFrame
_KEY = b"pairflow"
_GROUP_ROWS = 250_000  # of a row group, for which Parquet takes eight bytes a token while it is written
_BATCH_ROWS = 65_536  # that are read at a time
_DAMAGED = "damaged, or not a Parquet file that pairflow wrote; rerun the step that writes it"


def token_dtype(vocabulary_size: int) -> np.dtype:
    """Return the smaller type of uint8 and uint16 that holds the symbols 0 .. K-1."""
    return np.dtype(np.uint8 if vocabulary_size <= 2**8 else np.uint16)


@dataclass(frozen=True)
class Metadata:
    """The metadata of a file, with which steps check that files belong together.

    Attributes:
        kind: what the rows are, such as "tokens" or "pairs".
        length: N, the number of tokens or numbers in a row.
        vocabulary_size: K, the number of symbols.
        vocabulary: the hash of the vocabulary.
        padding, mask: the symbols with these roles, if the vocabulary has them.
        shape: (C, H, W) if rows are images; N = C * H * W, in that order.
        data: the hash of all rows of the data set that the file comes from; None for a user's own array.
        split: the part of the data set, "train" or "validation", or None.
        parameters: the settings of the step that wrote the file.
        inputs: the hashes of the files that the step read.
        condition: the meaning of the rows' labels: the properties and their classes, as JSON.
    """

    kind: str
    length: int | None = None
    vocabulary_size: int | None = None
    vocabulary: str | None = None
    padding: int | None = None
    mask: int | None = None
    shape: list[int] | None = None
    data: str | None = None
    split: str | None = None
    parameters: Json = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    condition: Json | Sequence[Json] | None = None

    @property
    def dimensions(self) -> tuple[int, int]:
        """(N, K) of token rows or pairs; raises InputError for other files."""
        if self.length is None or self.vocabulary_size is None:
            raise InputError(f"expected token rows or pairs, found {self.kind}")
        return self.length, self.vocabulary_size

    def require_same_vocabulary(self, other: str | None, mine: Path, theirs: Path) -> None:
        """Raise InputError unless this file was made with the vocabulary whose hash is `other`. For messages,
        `mine` is the path of this file, and `theirs` of the other one."""
        if self.vocabulary != other:
            raise InputError(
                f"{mine} and {theirs} do not belong together: "
                f"vocabulary {str(self.vocabulary)[:12]} against {str(other)[:12]}"
            )

    def require_same_data(self, other: str | None, mine: Path, theirs: Path) -> None:
        """Raise InputError if this file and another one come from different data sets. `other` is the hash of
        the other's data set; an unknown one (None) fits any."""
        if None not in (self.data, other) and self.data != other:
            raise InputError(
                f"{mine} and {theirs} do not belong together: "
                f"they come from different data, {str(self.data)[:12]} against {str(other)[:12]}"
            )

    def require_split(self, split: str, path: Path) -> None:
        """Raise InputError if, by the metadata, the rows of the file `path` are of another split."""
        if self.split not in (None, split):
            raise InputError(f"{path}: holds {self.split} rows, expected {split} rows")


def write_table(path: Path, table: Table, metadata: Metadata) -> None:
    """Write a Parquet file with metadata directly to `path` (use `atomic` around it, or `save_table`)."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    facts = {**metadata.__dict__, "columns": _columns(table)}
    if metadata.condition is None:
        del facts["condition"]  # keeps the bytes of files without labels
    text = json.dumps({**facts, "checksum": _checksum(facts)}, sort_keys=True, default=dict)
    table = table.replace_schema_metadata({_KEY: text})
    pq.write_table(table, path, row_group_size=_GROUP_ROWS, compression="zstd", write_page_checksum=True)


def save_table(path: Path, table: Table, metadata: Metadata, provenance: Provenance) -> None:
    """Write a Parquet file, whole or not at all, and its provenance next to it."""
    with atomic(path) as [temporary]:
        write_table(temporary, table, metadata)
    provenance.write(path)


def identity(*rows: np.ndarray) -> str:
    """Return the identity of a data set: the SHA-256 of its rows (training, validation), with their types and
    shapes."""
    content = hashlib.sha256()
    for part in rows:
        # The same bytes can be rows of another length.
        content.update(f"{part.dtype} {part.shape}\n".encode())
        content.update(np.ascontiguousarray(part).data)
    return content.hexdigest()


def read_metadata(path: Path) -> Metadata:
    """Return the metadata of a file, without reading its rows; InputError unless pairflow wrote it.

    The types of its columns and the number of its rows are also checked.
    """
    with named_when_damaged(path, _DAMAGED):
        with pq.ParquetFile(path) as file:
            schema, row_count = file.schema_arrow, file.metadata.num_rows
        metadata = _checked_metadata(path, schema)
    require_contents(path, schema.empty_table(), metadata.__dict__, row_count)
    return metadata


def is_own(path: Path) -> bool:
    """Return whether a file is a Parquet file that pairflow wrote, or a damaged one that it may have
    written."""
    require_regular(path)
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return False
    try:
        return _KEY in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return True


def read_table(path: Path, *kinds: str) -> tuple[pa.Table, Metadata]:
    """Read a Parquet file that pairflow wrote; returns the table and its metadata.

    Raises InputError if it is damaged, if the kind of its rows, such as "tokens", is none of `kinds` (if any
    are given), or if a table of this kind may not have its contents (see `contents`).
    """
    require_regular(path := Path(path))
    with named_when_damaged(path, _DAMAGED):
        # Not pq.read_table, which adds a column for a folder named a=b.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = _read_rows(path, file)
        metadata = _checked_metadata(path, table.schema, table, kinds)
    if kinds and metadata.kind not in kinds:
        raise InputError(f"{path}: holds {metadata.kind}, expected {' or '.join(kinds)}")
    require_contents(path, table, metadata.__dict__)
    return table, metadata


def _read_rows(path: Path, file: pq.ParquetFile) -> pa.Table:
    """Read all rows, in batches: whole columns would take eight bytes a token while they are read. Raises
    InputError with the number of the first damaged part."""
    if (groups := file.num_row_groups) <= 1:
        return file.read()
    batches: list[pa.RecordBatch] = []
    for group in range(groups):
        with named_when_damaged(path, f"part {group + 1} of {groups} is {_DAMAGED}"):
            batches += file.iter_batches(_BATCH_ROWS, row_groups=[group])
    return pa.Table.from_batches(batches, file.schema_arrow)


_ADVICE = {  # for a kind of table, how users make one from their own data
    "tokens": "; `pairflow preprocess tokens` makes such a file of your own token rows",
    "pairs": "; `pairflow.write_pairs` makes such a file of your own pairs",
}


def _checked_metadata(
    path: Path, schema: pa.Schema, table: pa.Table | None = None, kinds: Sequence[str] = ()
) -> Metadata:
    """Return the metadata in a `schema`; InputError if they are missing or altered, or do not fit a `table`,
    if it is given. `kinds` are the expected kinds of table, for advice in the message."""
    if _KEY not in (schema.metadata or {}):
        advice = "".join(_ADVICE.get(kind, "") for kind in kinds)
        raise InputError(f"{path}: was not written by pairflow{advice}")
    facts = json.loads(schema.metadata[_KEY])
    whole = facts.pop("checksum", None) == _checksum(facts)
    columns = facts.pop("columns", None)
    if not whole or (table is not None and columns != _columns(table)):
        raise InputError(f"{path}: has been changed since it was written; rerun the step that writes it")
    return Metadata(**facts)


def _columns(table: pa.Table) -> list[list[object]]:
    """Return [name, type, length of its lists, number of rows] of each column, which Parquet's checksums do
    not cover."""
    kinds = [
        (getattr(kind, "value_type", kind), getattr(kind, "list_size", 1)) for kind in table.schema.types
    ]
    pairs = zip(table.column_names, kinds, strict=True)
    return [[name, str(kind), size, table.num_rows] for name, (kind, size) in pairs]


def _checksum(facts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=dict).encode()).hexdigest()


def token_column(tokens: np.ndarray, vocabulary_size: int) -> pa.FixedSizeListArray:
    """Return token rows (M, N) as a fixed-size list column, of uint8 or uint16 as K = `vocabulary_size`
    needs; InputError if K or a token is too large."""
    if vocabulary_size > MAX_VOCABULARY:
        raise InputError(f"expected at most {MAX_VOCABULARY:,} symbols (K), found {vocabulary_size:,}")
    dtype = token_dtype(vocabulary_size)
    for token in (tokens.min(initial=0), tokens.max(initial=0)):
        if not 0 <= token <= np.iinfo(dtype).max:
            raise InputError(f"token {token} cannot be stored with a vocabulary of {vocabulary_size} symbols")
    return row_column(tokens.astype(dtype, copy=False))


def row_column(rows: np.ndarray) -> pa.FixedSizeListArray:
    """Return the rows of an array (M, N) as a fixed-size list column."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows).reshape(-1)), rows.shape[1])


def label_column(labels: np.ndarray) -> dict[str, object]:
    """Return the column of a table with these labels: `label` for (M,), `labels`, of lists, for (M, P)."""
    return {"label": labels} if np.ndim(labels) == 1 else {"labels": row_column(labels)}


def label_array(table: pa.Table) -> np.ndarray | None:
    """Return the labels (M,) or (M, P) of the rows of a table; None if it has no labels."""
    if "labels" in table.column_names:
        return token_array(table["labels"])
    return table["label"].to_numpy() if "label" in table.column_names else None


def token_array(column: pa.ChunkedArray) -> np.ndarray:
    """Return the tokens, or other numbers, in a fixed-size list column, as an array (M, N)."""
    rows = column.combine_chunks()
    return rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), column.type.list_size)


def to_points(tokens: np.ndarray, levels: int) -> np.ndarray:
    """Return tokens 0 .. `levels` - 1 as float32 numbers from -1 (black) to 1 (white), as pixels in
    continuous flows."""
    return tokens.astype(np.float32) * np.float32(2 / (levels - 1)) - np.float32(1)


def from_points(points: np.ndarray, levels: int) -> np.ndarray:
    """Return the token nearest to each number, clipped to -1..1: the inverse of `to_points`."""
    tokens = np.rint((points.clip(-1, 1) + 1) * ((levels - 1) / 2))
    return tokens.astype(token_dtype(levels))


def points_of(table: pa.Table, metadata: Metadata) -> np.ndarray:
    """Return the rows (M, ...) float32 of a table of vectors, or of images as numbers (M, C, H, W);
    InputError for other token rows."""
    if metadata.kind == "vectors":
        return token_array(table["values"])
    if metadata.shape is None:
        raise InputError("a continuous flow needs vectors or images, found token rows")
    tokens = token_array(table["tokens"])
    return to_points(tokens, metadata.dimensions[1]).reshape(-1, *metadata.shape)


METRIC_COLUMNS = {
    "method": "string",
    "nfe": "Int32",
    "trial": "Int32",
    "metric": "string",
    "value": "float64",
    "seed": "int64",
    "evaluation": "string",
    "samples": "int32",
    "reference": "string",
    "extractor": "string",
}


def as_metrics(rows: pd.DataFrame, **shared: object) -> pd.DataFrame:
    """Make a metric table, with METRIC_COLUMNS in order, of rows with at least `metric` and `value`.

    `shared` are columns with one value for all rows. Missing columns become null: `trial` for a metric over
    all trials, `nfe` if nothing was sampled, `reference` if nothing was compared, `extractor` for molecules.
    """
    rows = rows.assign(**shared)
    return rows.reindex(columns=list(METRIC_COLUMNS)).astype(METRIC_COLUMNS)
