"""Parquet contracts: what a step writes, and what the next step checks before it reads.

A file's metadata hold only what is science (kind, N, K, vocabulary, parameters, hashes of inputs), so that
equal runs give equal bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pairflow.errors import InputError

_KEY = b"pairflow"


def token_dtype(vocabulary_size: int) -> np.dtype:
    """The smallest of uint8, uint16 and int32 that holds the symbols 0 .. K-1."""
    if vocabulary_size <= 2**8:
        return np.dtype(np.uint8)
    return np.dtype(np.uint16 if vocabulary_size <= 2**16 else np.int32)


@dataclass(frozen=True)
class Metadata:
    """What a file's metadata say: enough to refuse a file that does not fit another one, by name.

    `padding` and `mask` are the symbols of the vocabulary that stand for them, if it has such.
    `shape` is (C, H, W) where rows are images: N = C * H * W, in that order. `data` is the `identity` of the
    data set that it stems from, `split` the part of it that the rows are, train or validation; None where
    nobody said so, as of an array of one's own.
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
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def require_same_vocabulary(self, other: str | None, mine: Path, theirs: Path) -> None:
        """InputError unless `other` is the vocabulary hash that this file was made with."""
        if self.vocabulary != other:
            raise InputError(
                f"{mine} and {theirs} do not belong together: "
                f"vocabulary {str(self.vocabulary)[:12]} against {str(other)[:12]}"
            )

    def require_same_data(self, other: str | None, mine: Path, theirs: Path) -> None:
        """InputError where both stem from a known data set, and `other` is not the one of this file."""
        if None not in (self.data, other) and self.data != other:
            raise InputError(
                f"{mine} and {theirs} do not belong together: "
                f"they stem from other data, {self.data[:12]} against {other[:12]}"
            )

    def require_split(self, split: str, path: Path) -> None:
        """InputError where the rows of this file, `path`, are known to be another part of a data set."""
        if self.split not in (None, split):
            raise InputError(f"{path}: holds {self.split} rows, expected {split} rows")


def write_table(path: Path, table: pa.Table | pd.DataFrame, metadata: Metadata) -> None:
    """Write a Parquet file under `path` itself (use `atomic` around it)."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    facts = {**metadata.__dict__, "columns": _columns(table)}
    text = json.dumps({**facts, "checksum": _checksum(facts)}, sort_keys=True, default=dict)
    table = table.replace_schema_metadata({_KEY: text})
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def identity(*rows: np.ndarray) -> str:
    """What tells a data set from others: SHA-256 of its token rows, part by part."""
    found = hashlib.sha256()
    for part in rows:
        found.update(f"{part.dtype} {part.shape}\n".encode())
        found.update(np.ascontiguousarray(part))
    return found.hexdigest()


def read_metadata(path: Path) -> Metadata:
    """What a file's metadata say, its rows unread; InputError unless one of our steps wrote it."""
    try:
        facts = json.loads(pq.read_schema(path).metadata[_KEY])
        whole = facts.pop("checksum", None) in (None, _checksum(facts))
        facts.pop("columns", None)
        metadata = Metadata(**facts)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a Parquet file of pairflow, or damaged: make it anew") from error
    if not whole:
        raise InputError(f"{path}: altered since it was written: make it anew")
    return metadata


def read_table(path: Path, *kinds: str) -> tuple[pa.Table, Metadata]:
    """Read a Parquet file that one of our steps wrote; InputError unless whole and of one of `kinds`."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:  # a folder a=b is no column
            table = file.read()
        facts = json.loads(table.schema.metadata[_KEY])
        expected = facts.pop("checksum", None)  # files of earlier versions have none
        whole = expected in (None, _checksum(facts)) and facts.pop("columns", None) in (None, _columns(table))
        metadata = Metadata(**facts) if whole else None
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a Parquet file of pairflow, or damaged: make it anew") from error
    if metadata is None:
        raise InputError(f"{path}: altered since it was written: make it anew")
    if kinds and metadata.kind not in kinds:
        raise InputError(f"{path}: holds {metadata.kind}, expected {' or '.join(kinds)}")
    return table, metadata


def _columns(table: pa.Table) -> list[list[Any]]:
    """Names and types of the columns, and their rows: what the checksums of pages say nothing of."""
    kinds = [
        (getattr(kind, "value_type", kind), getattr(kind, "list_size", 1)) for kind in table.schema.types
    ]
    pairs = zip(table.column_names, kinds, strict=True)
    return [[name, str(kind), size, table.num_rows] for name, (kind, size) in pairs]


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=dict).encode()).hexdigest()


def token_column(tokens: np.ndarray, vocabulary_size: int) -> pa.FixedSizeListArray:
    """Token rows (M, N) as a fixed-size list column; InputError where a token would wrap around in it."""
    dtype = token_dtype(vocabulary_size)
    for token in (tokens.min(initial=0), tokens.max(initial=0)):
        if not 0 <= token <= np.iinfo(dtype).max:
            raise InputError(f"token {token} cannot be kept with a vocabulary of {vocabulary_size} symbols")
    flat = np.ascontiguousarray(tokens, dtype=dtype).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), tokens.shape[1])


def token_array(column: pa.ChunkedArray) -> np.ndarray:
    """A fixed-size list column as token rows (M, N)."""
    rows = column.combine_chunks()
    return rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), column.type.list_size)


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


def as_metrics(rows: pd.DataFrame, **shared: Any) -> pd.DataFrame:
    """Rows with `metric`, `value` and maybe others as a metric table: all columns, ordered and typed.

    `shared` fills a column of all rows. Null where absent: `trial` for a metric over all trials, `nfe` where
    nothing was sampled, `reference` where nothing is compared with, `extractor` for molecules.
    """
    rows = rows.assign(**shared)
    return rows.reindex(columns=list(METRIC_COLUMNS)).astype(METRIC_COLUMNS)
