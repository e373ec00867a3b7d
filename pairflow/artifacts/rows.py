"""Reads a user's own token rows from a file that pairflow has not written."""

import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from pairflow.arguments import nearest
from pairflow.arrays import as_array, checked_tokens
from pairflow.errors import InputError
from pairflow.files import fault, require_plausible, require_regular

if TYPE_CHECKING:
    import torch

SUFFIXES = (".npy", ".npz", ".parquet", ".pt", ".bin")


def read_rows(
    path: Path,
    vocabulary_size: int,
    column: str | None = None,
    dtype: str | None = None,
    length: int | None = None,
) -> np.ndarray:
    """Return the token rows (M, N) in a .npy, .npz, .parquet, .pt or .bin file.

    Args:
        path: the file.
        vocabulary_size: K.
        column: the column of lists in a .parquet file, or the array in an .npz or .pt file. Default:
            `tokens`, or the only one.
        dtype: the type of the numbers in a .bin file, which has no header.
        length: N, to cut a stream of tokens (one dimension) into rows. Says on stderr how many are left over.

    Raises InputError with the file's name if it is missing or cannot be read, or if its content is not rows
    of integers from 0 to K - 1.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        expected = ", ".join(SUFFIXES)
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; expected token rows in {expected}")
    require_regular(path)
    if (column and suffix in (".npy", ".bin")) or (dtype and suffix != ".bin"):
        raise InputError(f"{path}: a {suffix} file has no {'column' if column else 'dtype'} to choose")
    rows: ArrayLike
    if suffix == ".bin":
        rows = _read_raw(path, dtype, length)
    elif suffix == ".npy":
        rows = read_array(path)
    elif suffix == ".parquet":
        rows = _read_column(path, column)
    else:
        rows = _read_archive(path, column)
    return checked_tokens(
        _cut(path, as_array(rows, str(path)), length) if length else rows, vocabulary_size, str(path)
    )


def _cut(path: Path, stream: np.ndarray, length: int) -> np.ndarray:
    """Cut a stream of tokens into rows of `length`, and write a note, which says how many last tokens are
    left out. Raises InputError if the array has several dimensions."""
    if stream.ndim != 1:
        raise InputError(f"{path}: expected a stream of tokens, to cut into rows; found shape {stream.shape}")
    count, left = divmod(len(stream), length)
    end = f"; the last {left:,} were left out" if left else ""
    print(
        f"pairflow: note: {path}: {len(stream):,} tokens, one after another, were cut into {count:,} rows of "
        f"{length:,}{end}",
        file=sys.stderr,
    )
    return stream[: count * length].reshape(count, length)


def _read_raw(path: Path, dtype: str | None, length: int | None) -> np.ndarray:
    """Return the numbers in a file without a header, such as nanoGPT's train.bin, as an array with one
    dimension. Raises InputError unless `dtype`, the type of the numbers, and `length`, the tokens per row,
    are given."""
    if not (dtype and length):
        expected = "`dtype` and `length`, as by --dtype uint16 (of nanoGPT's files) --length N"
        raise InputError(f"{path}: a .bin file has only numbers, without their type; expected {expected}")
    kind = np.dtype(dtype).newbyteorder("<")
    if path.stat().st_size % kind.itemsize:
        raise InputError(f"{path}: {path.stat().st_size:,} bytes are no whole number of {dtype}")
    return np.fromfile(path, kind).astype(dtype, copy=False)


def _read_archive(path: Path, column: str | None) -> "np.ndarray | torch.Tensor":
    """Return the array `column` (None: `tokens`, or the only one) of an .npz file, or the tensor of a .pt
    file, which may also be a single tensor without a name. Raises InputError if there is none."""
    if path.suffix.lower() == ".npz":
        with named_when_damaged(path, "not an .npz archive of arrays of numbers"):
            with zipfile.ZipFile(path) as archive:
                require_plausible(path, sum(part.file_size for part in archive.infolist()))
            with np.load(path, allow_pickle=False) as arrays:
                return arrays[_chosen(path, arrays.files, column)]
    try:
        import torch
    except ImportError:
        raise InputError(f'{path}: needs the package torch: pip install "pairflow[train]"') from None
    with named_when_damaged(path, "not a PyTorch file of tensors"):
        content = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(content, Mapping):
            content = content[_chosen(path, list(content), column)]
    if not isinstance(content, torch.Tensor):
        raise InputError(f"{path}: expected a tensor, found {type(content).__name__}")
    return content


def _chosen(path: Path, names: list[str], column: str | None) -> str:
    """Return the name among `names` of the column, or array, with the tokens: `column`, or else the only
    name, or `tokens`. Raises InputError unless there is exactly one with this name."""
    name = column or (names[0] if len(names) == 1 else "tokens")
    if names.count(name) != 1:
        found, example = ", ".join(map(str, names)), "input_ids" if "input_ids" in names else "NAME"
        raise InputError(
            f"{path}: expected one column {name!r}; it has {found}; choose one by `column` "
            f"(--column {example})"
        )
    return name


@contextmanager
def named_when_damaged(path: Path, problem: str) -> Iterator[None]:
    """Turn any exception of a block that reads the file `path` into an InputError with the path and the
    reason.

    `problem` is the reason if nothing says more. An InputError passes as it is.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is: {error}") from None
    except Exception as error:  # damaged content makes readers raise anything
        reason = getattr(error, "strerror", None)
        reason = f"cannot be read: {reason}" if reason else fault(path) or problem
        raise InputError(f"{path}: {reason}") from error


def read_array(path: Path) -> np.ndarray:
    """Return the array in a .npy file; InputError with the file's name if it cannot be read."""
    with named_when_damaged(path, "not a .npy array of numbers"), path.open("rb") as file:
        rows = np.load(file, allow_pickle=False)
        more = not isinstance(rows, np.ndarray) or file.read(1)
    if more:
        raise InputError(f"{path}: several arrays; expected a .npy file with one")
    return rows


def _read_column(path: Path, name: str | None) -> np.ndarray:
    """Return the column `name` (None: `tokens`, or the only one), which has lists of one length, as an array
    (M, N). Raises InputError if there is none."""
    with named_when_damaged(path, "not a Parquet file, or damaged"):
        name = _chosen(path, pq.read_schema(path).names, name)
        column = pq.ParquetFile(path).read(columns=[name])[name].combine_chunks()
    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(fits(column.type) for fits in is_list):
        raise InputError(f"{path}: column '{name}': expected a list of integers, found {column.type}")
    values = column.flatten()
    if column.null_count or values.null_count:
        raise InputError(f"{path}: column '{name}': has missing tokens")
    lengths = pc.list_value_length(column).to_numpy()
    if len(others := np.flatnonzero(lengths != lengths[:1])):
        unequal = f"{lengths[0]} tokens in row 0 and {lengths[others[0]]} in row {others[0]}"
        raise InputError(f"{path}: expected rows of one length, found {unequal}")
    return values.to_numpy(zero_copy_only=False).reshape(len(column), lengths[0] if len(lengths) else 0)


def read_words(path: Path, column: str) -> list[str]:
    """Return the words (M) in a column of a .parquet file; a missing word becomes an empty one."""
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
