"""Checks of arrays: token rows (M, N), each with N integers below K, and points (M, ...), real numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pairflow.arguments import require_unmasked
from pairflow.errors import InputError
from pairflow.limits import MAX_LENGTH

LARGEST = 1e12  # the largest absolute value of a number, so that squared distances are finite in float32


def checked_tokens(tokens: ArrayLike, vocabulary_size: int, name: str = "tokens") -> np.ndarray:
    """Return `tokens` as an array (M, N) of integers in [0, K), K = `vocabulary_size`, in a dtype that can
    hold K - 1.

    The dtype therefore also fits rows of noise, which can have any symbol. Raises InputError for other
    `tokens`; the message begins with `name`, and names the first token that is out of range.
    """
    tokens = as_array(tokens, name)
    if tokens.ndim != 2:
        remedies = {
            0: "; read a file by numpy.load",
            1: "; cut a stream into rows of N tokens, by .reshape(-1, N) or --length N",
            3: "; flatten each row, by .reshape(len(rows), -1)",
        }
        raise InputError(
            f"{name}: expected a 2-D array (rows, positions), found {tokens.ndim} dimension(s)"
            f"{remedies.get(tokens.ndim, '')}"
        )
    if not tokens.size:
        raise InputError(f"{name}: expected at least one row and one position, found shape {tokens.shape}")
    if tokens.dtype.kind not in "iu":
        raise InputError(f"{name}: expected an integer dtype, found {tokens.dtype}")
    if tokens.shape[1] > MAX_LENGTH:
        raise InputError(f"{name}: expected at most {MAX_LENGTH} positions per row, found {tokens.shape[1]}")
    if tokens.min() < 0 or tokens.max() >= vocabulary_size:
        row, position = np.argwhere((tokens < 0) | (tokens >= vocabulary_size))[0]
        raise InputError(
            f"{name}: row {row}, position {position}: expected a token in 0..{vocabulary_size - 1}, "
            f"found {tokens[row, position]}"
        )
    if vocabulary_size - 1 > np.iinfo(tokens.dtype).max:
        return tokens.astype(np.min_scalar_type(vocabulary_size - 1))
    return tokens


def checked_pairs(
    x0: ArrayLike, x1: ArrayLike, vocabulary_size: int, names: tuple[str, str]
) -> list[np.ndarray]:
    """Return sources `x0` and data `x1` (M, N) as arrays of integers in [0, `vocabulary_size`). Raise
    InputError for anything else, and for different shapes; `names` are what messages call the two."""
    pairs = [checked_tokens(rows, vocabulary_size, name) for rows, name in zip((x0, x1), names, strict=True)]
    shapes = [rows.shape for rows in pairs]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"{', '.join(names)}: expected one shape (rows, positions), found {shapes[0]} and {shapes[1]}"
        )
    return pairs


def checked_points(points: ArrayLike, name: str = "data") -> np.ndarray:
    """Return `points` as an array (M, ...), not empty, of finite floating-point numbers.

    Raises InputError for other `points`; the message begins with `name`, and names the first number that is
    not finite, or too large.
    """
    points = as_array(points, name)
    if points.dtype.kind != "f":
        raise InputError(f"{name}: expected a floating-point dtype, found {points.dtype}")
    if points.ndim < 2:
        raise InputError(f"{name}: expected an array (rows, ...), found {points.ndim} dimension(s)")
    if not points.size:
        raise InputError(f"{name}: expected at least one row and one number, found shape {points.shape}")
    flat = points.reshape(len(points), -1)
    if not (float(flat.max()) <= LARGEST and float(flat.min()) >= -LARGEST):  # a NaN is not below anything
        row, position = np.argwhere(~(np.abs(flat.astype(np.float64)) <= LARGEST))[0]
        raise InputError(
            f"{name}: row {row}, position {position}: expected a finite number of at most {LARGEST:g}, "
            f"found {flat[row, position]}"
        )
    return points


def checked_pair(
    name: str, rows: ArrayLike, data: ArrayLike, dtype: DTypeLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return `rows` (B, d) and `data` (M, d) as arrays. Raise InputError for other shapes, no data, or masked
    values; `name` is what messages call `rows`."""
    require_unmasked(rows, name)
    require_unmasked(data, "data")
    rows, data = np.asarray(rows, dtype=dtype), np.asarray(data, dtype=dtype)
    if rows.ndim != 2 or data.ndim != 2 or rows.shape[1] != data.shape[1] or not data.size:
        raise InputError(
            f"{name}, data: expected two arrays with rows of the same length, and at least one row of "
            f"data; found shapes {rows.shape} and {data.shape}"
        )
    return rows, data


def as_array(values: Any, name: str) -> np.ndarray:
    """Return `values` as a NumPy array: also a Series or an Arrow array of lists, or Python's integers.

    Raise InputError, which begins with `name`, if some values are masked, if rows have different lengths, or
    if `values` are a mapping or cannot be read as an array.
    """
    require_unmasked(values, name)
    if isinstance(values, Mapping):
        raise InputError(
            f"{name}: expected an array; pass one of {', '.join(map(repr, values))} of the mapping"
        )
    try:
        array = np.asarray(values)
        return np.asarray(array.tolist()) if array.dtype == object and array.ndim else array
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in values]
        others = [f"{length} in row {row}" for row, length in enumerate(lengths) if length != lengths[0]]
        first = f"{lengths[0]} in row 0 and {others[0]}" if others else "rows of several shapes"
        raise InputError(f"{name}: expected rows of one length, found {first}") from None
    except (TypeError, RuntimeError) as error:  # a tensor that NumPy cannot read says why
        raise InputError(f"{name}: cannot be read as a NumPy array: {error}") from None
