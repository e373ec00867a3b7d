"""Writes a user's own pairs as a file that an experiment can train on, and reads such files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from pairflow.arguments import checked_integer
from pairflow.arrays import checked_pairs
from pairflow.artifacts.atomic import atomic
from pairflow.artifacts.tables import Metadata, read_table, token_array, token_column, write_table
from pairflow.errors import InputError
from pairflow.files import checked_path, require_file
from pairflow.limits import MAX_VOCABULARY

OWN = "own"  # the name of their coupling in the metadata
ADOPTED = ("unpaired_rows", "held_out_pairs")  # counts in the parameters of pairs that `adopt` has checked


def write_pairs(x0: ArrayLike, x1: ArrayLike, path: str | Path, *, vocabulary_size: int) -> None:
    """Write pairs of your own as a file that an experiment can train on.

    The experiment names the file under `pairs`, and the method `pairs-<name>` trains on it: see
    docs/tokens.md.

    Args:
        x0: (M, N) integers in [0, K): the source of each data row.
        x1: (M, N) integers in [0, K): training rows, in any order and as often as you like.
        path: the file to write, which ends in .parquet; its folder must exist.
        vocabulary_size: K, the number of symbols.

    Raises:
        InputError: if a token is out of range or masked, the shapes differ, or the file cannot be written.

    Example:
        >>> pairflow.write_pairs(x0, x1, "pairs.parquet", vocabulary_size=8)  # doctest: +SKIP
    """
    path = checked_path("path", path)
    require_file("path", path)
    if path.suffix != ".parquet":
        raise InputError(f"{path}: expected a name that ends in .parquet")
    if not path.parent.is_dir():
        raise InputError(f"{path}: expected a file in a folder that is there, found no folder {path.parent}")
    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    pairs = checked_pairs(x0, x1, size, ("x0", "x1"))
    coupling = {"coupling": OWN}
    metadata = Metadata(kind="pairs", length=pairs[0].shape[1], vocabulary_size=size, parameters=coupling)
    with atomic(path) as [temporary]:
        table = pa.table([token_column(rows, size) for rows in pairs], ["x0", "x1"])
        write_table(temporary, table, metadata)


def read_pairs(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the pairs in a file, of an experiment (results/demo/seed0/pairs/pairflow.parquet) or your own.

    Args:
        path: a file that `write_pairs`, `pairflow pair` or another step of the workflow wrote.

    Returns:
        x0 and x1, each (M, N): the sources, and the data rows in the same order. They are integers, or
        numbers (M, d) for a continuous flow.

    Raises:
        InputError: if the file is missing, is damaged or holds no pairs.

    Example:
        >>> x0, x1 = pairflow.read_pairs("results/demo/seed0/pairs/pairflow.parquet")  # doctest: +SKIP
    """
    table, _ = read_table(checked_path("path", path), "pairs", "vector pairs")
    return token_array(table["x0"]), token_array(table["x1"])
