"""What token rows may be: rows (M, N) of integers below K."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflow.arguments import require_unmasked
from pairflow.errors import InputError
from pairflow.limits import MAX_LENGTH


def checked_tokens(tokens: ArrayLike, vocabulary_size: int, name: str = "tokens") -> np.ndarray:
    """`tokens` as an array (M, N) of integers in [0, K), in a dtype that holds K - 1, as source states need.

    InputError, which begins with `name`, names the first token that is out of range.
    """
    require_unmasked(tokens, name)
    try:
        tokens = np.asarray(tokens)
    except ValueError:
        raise InputError(f"{name}: expected rows of one length, found {_ragged_rows(tokens)}") from None
    except (TypeError, RuntimeError) as error:  # a tensor that NumPy cannot read says why
        raise InputError(f"{name}: cannot be read as a NumPy array: {error}") from None
    if tokens.ndim != 2:
        raise InputError(f"{name}: expected a 2-D array (rows, positions), found {tokens.ndim} dimension(s)")
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


def _ragged_rows(tokens: Any) -> str:
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in tokens]
    other = next((row for row, length in enumerate(lengths) if length != lengths[0]), 0)
    return f"{lengths[0]} tokens in row 0 and {lengths[other]} in row {other}"
