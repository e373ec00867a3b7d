"""Finds the longest span of tokens that a sample shares with the training text, exactly, by a suffix array.

A suffix is the rest of a row from some position on. The suffixes of all samples are sorted. Each suffix of a
training row is then looked up among them by binary search: its two neighbours share the longest prefix with
it (Manber and Myers 1993, "Suffix arrays"). So one pass over the training rows is enough.
"""

import numpy as np

from pairflow.pairing.cpu.compiled import compiled


def longest_copies(rows: np.ndarray, training: np.ndarray) -> np.ndarray:
    """Count the tokens of the longest span of each row (B, N) that a row of `training` (M, N) contains.
    Returns (B,) int64. A negative number is a missing token, which ends a span."""
    length = rows.shape[1]
    padded = np.pad(rows, ((0, 0), (0, length)), constant_values=np.iinfo(rows.dtype).min)
    suffixes = np.lib.stride_tricks.sliding_window_view(padded, length, axis=1)[:, :length]
    order = np.lexsort(suffixes.reshape(-1, length).T[::-1])  # row * N + first position of each suffix
    shared = np.zeros(len(order), np.int64)
    _look_up(rows, order, training, shared)
    _spread(rows, order, shared, np.zeros_like(shared))
    longest = np.zeros(len(rows), np.int64)
    np.maximum.at(longest, order // length, shared)
    return longest


@compiled
def _match(rows: np.ndarray, suffix: int, others: np.ndarray, row: int, first: int) -> tuple[int, bool]:
    """Return the number of first tokens that two suffixes share, and whether the first one sorts first. It is
    `suffix` of `rows`, numbered row * N + position; the other starts at `first` in a `row` of `others`."""
    length, width = rows.shape[1], others.shape[1]
    i, start = suffix // length, suffix % length
    shared = 0
    while start + shared < length and first + shared < width:
        one, other = rows[i, start + shared], others[row, first + shared]
        if one != other or one < 0:
            return shared, one < other
        shared += 1
    return shared, start + shared == length


@compiled
def _look_up(rows: np.ndarray, order: np.ndarray, training: np.ndarray, shared: np.ndarray) -> None:
    """Find for each suffix of `training` its two neighbours in `order`, and note in `shared` the largest
    number of tokens that each of them shares."""
    for row in range(len(training)):
        for first in range(training.shape[1]):
            low, high = 0, len(order)
            while low < high:
                middle = (low + high) // 2
                if _match(rows, order[middle], training, row, first)[1]:
                    low = middle + 1
                else:
                    high = middle
            for k in range(max(low - 1, 0), min(low + 1, len(order))):
                shared[k] = max(shared[k], _match(rows, order[k], training, row, first)[0])


@compiled
def _spread(rows: np.ndarray, order: np.ndarray, shared: np.ndarray, equal: np.ndarray) -> None:
    """Let suffixes share as much with the training text as their neighbours do, as far as they are equal.

    `equal` is an array to work in: the number of first tokens that each suffix shares with the one before it.
    """
    length, count = rows.shape[1], len(order)
    for k in range(1, count):
        equal[k] = _match(rows, order[k - 1], rows, order[k] // length, order[k] % length)[0]
        shared[k] = max(shared[k], min(shared[k - 1], equal[k]))
    for k in range(count - 1, 0, -1):
        shared[k - 1] = max(shared[k - 1], min(shared[k], equal[k]))
