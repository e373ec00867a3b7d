"""A user's own token rows, from an array or from a file that pairflow has not written, and own pairs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from pairflow.arguments import checked_integer
from pairflow.arrays import checked_tokens
from pairflow.artifacts.atomic import atomic
from pairflow.artifacts.tables import Metadata, token_column, write_table
from pairflow.errors import InputError
from pairflow.files import checked_path, require_file, require_regular
from pairflow.limits import MAX_VOCABULARY

SUFFIXES = (".npy", ".parquet")


def read_rows(path: Path, vocabulary_size: int) -> np.ndarray:
    """The token rows (M, N) in a .npy file, or in the column `tokens` of a .parquet file.

    Raises InputError, with the file's name, if it is missing or cannot be read, and as `checked_tokens`.
    """
    if path.suffix not in SUFFIXES:
        expected = " or ".join(SUFFIXES)
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; expected token rows in {expected}")
    require_regular(path)
    rows = read_array(path) if path.suffix == ".npy" else _read_column(path)
    return checked_tokens(rows, vocabulary_size, str(path))


@contextmanager
def named_when_damaged(path: Path, problem: str) -> Iterator[None]:
    """InputError that names a file, and the problem, in place of what its reader raises."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is: {error}") from None
    except Exception as error:  # whatever damaged content makes a reader raise
        reason = getattr(error, "strerror", None)
        raise InputError(f"{path}: {f'cannot be read: {reason}' if reason else problem}") from error


def read_array(path: Path) -> np.ndarray:
    """The array in a .npy file; InputError, with the file's name, if it is none or cannot be read."""
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
        found = f"{lengths[0]} tokens in row 0 and {lengths[others[0]]} in row {others[0]}"
        raise InputError(f"{path}: expected rows of one length, found {found}")
    return values.to_numpy(zero_copy_only=False).reshape(len(column), lengths[0] if len(lengths) else 0)


OWN = "own"  # the coupling of such pairs
ADOPTED = ("unpaired_rows", "held_out_pairs")  # counts among the parameters of those that a model trains on


def write_pairs(x0: ArrayLike, x1: ArrayLike, path: str | Path, *, vocabulary_size: int) -> None:
    """Write pairs of your own as a file that an experiment can train on.

    The experiment names the file under `pairs`, and the method `pairs-<name>` trains on it: see
    docs/tokens.md.

    Args:
        x0: (M, N) integers in [0, K): the source of each data row.
        x1: (M, N) integers in [0, K): training rows, in any order and as often as you like.
        path: the file to write, which ends in .parquet; its folder has to be there.
        vocabulary_size: K, the number of symbols.

    Raises:
        InputError: if a token is out of range or masked, the shapes differ, or the file cannot be written.
    """
    path = checked_path("path", path)
    require_file("path", path)
    if path.suffix != ".parquet":
        raise InputError(f"{path}: expected a name that ends in .parquet")
    if not path.parent.is_dir():
        raise InputError(f"{path}: expected a file in a folder that is there, found no folder {path.parent}")
    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    columns = {"x0": checked_tokens(x0, size, "x0"), "x1": checked_tokens(x1, size, "x1")}
    shapes = [rows.shape for rows in columns.values()]
    if shapes[0] != shapes[1]:
        raise InputError(f"x0, x1: expected one shape (rows, positions), found {shapes[0]} and {shapes[1]}")
    coupling = {"coupling": OWN}
    metadata = Metadata(kind="pairs", length=shapes[0][1], vocabulary_size=size, parameters=coupling)
    with atomic(path) as [temporary]:
        table = pa.table({name: token_column(rows, size) for name, rows in columns.items()})
        write_table(temporary, table, metadata)
