"""Turns rows in memory into a file that preprocessing reads: token rows into .npy, strings into a table."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pairflow.arguments import checked_integer
from pairflow.arrays import as_array, checked_pairs, checked_tokens
from pairflow.artifacts import atomic
from pairflow.artifacts.pairs import write_pairs
from pairflow.errors import InputError
from pairflow.files import checked_path
from pairflow.limits import MAX_VOCABULARY

LABEL, TEXT = "label", "text"  # columns of the table


def file_of(data: Any, vocabulary_size: int | None, labels: Any, folder: Path) -> Path:
    """Return the path of the user's file, or of a file in `folder` with the user's rows.

    `data` is a path, token rows (M, N), M strings, or a table; `labels` has the class of each row, or is
    None. Raises InputError if there is no such file, if the rows are something else, or if `labels` or
    `vocabulary_size` do not go with them.
    """
    if isinstance(data, str | Path):
        path = checked_path("data", data)
        if not path.exists():
            raise InputError(f"data: no such file or folder: {path}")
        if labels is not None:
            raise InputError("labels: only for rows in memory; of a file, name the column by `condition`")
        return path.resolve()
    rows = plain(data)
    if isinstance(rows, pd.DataFrame) or _are_strings(rows):
        if vocabulary_size is not None:
            raise InputError("vocabulary_size: only for rows of integers; found strings or a table")
        return _stored(folder / "rows.parquet", _table(rows, labels).to_parquet)
    if vocabulary_size is None:
        raise InputError("vocabulary_size: expected the number of symbols K of the token rows, found none")
    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    tokens = checked_tokens(rows, size, "data")
    if labels is None:
        return _stored(folder / "rows.npy", partial(_save, tokens))
    table = _labelled(pd.DataFrame({"tokens": list(tokens)}), labels)
    return _stored(folder / "rows.parquet", table.to_parquet)


def own_pairs(data: Any, sources: Any, vocabulary_size: int | None, folder: Path) -> Path | None:
    """Write the pairs of given sources (M, N) and token rows into `folder`, and return their file.

    Returns None if `sources` is None. Raises InputError for data that are no token rows, and for sources that
    are not integers from 0 to K - 1 in the shape of the data.
    """
    if sources is None:
        return None
    if vocabulary_size is None or isinstance(data, str | Path):
        raise InputError("sources: only for token rows in memory, with their vocabulary_size")
    path = folder / "sources.parquet"
    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    x0, x1 = checked_pairs(sources, plain(data), size, ("sources", "data"))
    write_pairs(x0, x1, path, vocabulary_size=size)
    return path


def plain(data: Any) -> Any:
    """Return a user's data as an array or an object of pandas, if they are a table or a column.

    A table (of pandas, Arrow or polars) with only integers becomes an array, one with one column a Series,
    and any other a DataFrame. A column of Arrow or polars becomes a Series. Other data stay as they are.
    """
    if hasattr(data, "to_pandas"):  # of Arrow and polars
        data = data.to_pandas()
    if isinstance(data, pd.DataFrame):
        if all(kind.kind in "iu" for kind in data.dtypes):
            return data.to_numpy()
        return data.iloc[:, 0] if data.shape[1] == 1 else data
    return data


def _are_strings(rows: Any) -> bool:
    try:
        return isinstance(next(iter(rows)), str)
    except (TypeError, StopIteration):
        return False


def _table(rows: Any, labels: Any) -> pd.DataFrame:
    if isinstance(rows, pd.DataFrame):
        if labels is not None:
            raise InputError("labels: only for rows without columns; name the column by `condition`")
        return rows
    table = pd.DataFrame({TEXT: pd.Series(list(rows), dtype=object)})
    if wrong := [row for row, text in enumerate(table[TEXT]) if not isinstance(text, str)]:
        raise InputError(f"data: row {wrong[0]}: expected a string, found {table[TEXT][wrong[0]]!r:.50}")
    return table if labels is None else _labelled(table, labels)


def _labelled(table: pd.DataFrame, labels: Any) -> pd.DataFrame:
    names = as_array(labels, "labels")
    if names.ndim != 1:
        raise InputError(f"labels: expected one dimension (rows,), found shape {names.shape}")
    classes: Sequence[Any] = names.tolist()
    if len(classes) != len(table):
        raise InputError(f"labels: expected one for each of {len(table):,} rows, found {len(classes):,}")
    return table.assign(**{LABEL: list(map(str, classes))})


def _stored(path: Path, write: Callable[[Path], object]) -> Path:
    with atomic(path) as [temporary]:
        write(temporary)
    return path


def _save(tokens: np.ndarray, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, tokens)
