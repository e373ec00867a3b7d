"""Reads a user's own token rows from a file that pairflow has not written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pairflow.arguments import nearest
from pairflow.arrays import checked_tokens
from pairflow.errors import InputError
from pairflow.files import require_regular

SUFFIXES = (".npy", ".parquet")


def read_rows(path: Path, vocabulary_size: int) -> np.ndarray:
    """The token rows (M, N) in a .npy file, or in the column `tokens` of a .parquet file.

    Raises InputError with the file's name if it is missing or cannot be read, and the errors of
    `checked_tokens`.
    """
    if path.suffix not in SUFFIXES:
        expected = " or ".join(SUFFIXES)
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; expected token rows in {expected}")
    require_regular(path)
    rows = read_array(path) if path.suffix == ".npy" else _read_column(path)
    return checked_tokens(rows, vocabulary_size, str(path))


@contextmanager
def named_when_damaged(path: Path, problem: str) -> Iterator[None]:
    """Turn any exception of a block that reads a file into an InputError with the file and the problem."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is: {error}") from None
    except Exception as error:  # damaged content makes readers raise anything
        reason = getattr(error, "strerror", None)
        raise InputError(f"{path}: {f'cannot be read: {reason}' if reason else problem}") from error


def read_array(path: Path) -> np.ndarray:
    """The array in a .npy file; InputError with the file's name if it is another file or cannot be read."""
    with named_when_damaged(path, "not a .npy array of numbers"), path.open("rb") as file:
        rows = np.load(file, allow_pickle=False)
    if not isinstance(rows, np.ndarray):
        raise InputError(f"{path}: several arrays; expected a .npy file with one")
    return rows


def _read_column(path: Path) -> np.ndarray:
    """The column `tokens`, lists of one length, as an array (M, N)."""
    with named_when_damaged(path, "not a Parquet file, or damaged"):
        names = pq.read_schema(path).names
        if names.count("tokens") != 1:
            raise InputError(f"{path}: expected one column 'tokens'; it has {', '.join(names)}")
        column = pq.ParquetFile(path).read(columns=["tokens"])["tokens"].combine_chunks()
    if not any(is_list(column.type) for is_list in (pa.types.is_fixed_size_list, pa.types.is_list)):
        raise InputError(f"{path}: column 'tokens': expected a list of integers, found {column.type}")
    values = column.flatten()
    if column.null_count or values.null_count:
        raise InputError(f"{path}: column 'tokens': has missing tokens")
    lengths = np.diff(column.offsets) if pa.types.is_list(column.type) else np.array([column.type.list_size])
    if len(others := np.flatnonzero(lengths != lengths[:1])):
        unequal = f"{lengths[0]} tokens in row 0 and {lengths[others[0]]} in row {others[0]}"
        raise InputError(f"{path}: expected rows of one length, found {unequal}")
    return values.to_numpy(zero_copy_only=False).reshape(len(column), lengths[0] if len(lengths) else 0)


def read_words(path: Path, column: str) -> list[str]:
    """A column of words (M) of a .parquet file, empty where it has none."""
    if path.suffix.lower() != ".parquet":
        raise InputError(f"{path}: expected a .parquet file, which can have a column {column!r}")
    require_regular(path)
    with named_when_damaged(path, "not a Parquet file, or damaged"):
        names = pq.read_schema(path).names
        if column not in names:
            raise InputError(
                f"{path}: no column {column!r}{nearest(column, names)}; it has {', '.join(names)}"
            )
        words = pq.ParquetFile(path).read(columns=[column])[column].to_pylist()
    return ["" if word is None else str(word) for word in words]
