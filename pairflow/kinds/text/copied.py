"""The longest span of tokens that a sample shares with the training text, exactly.

All ends of all samples (suffixes of rows) are sorted. Each end of a training row is then looked up among
them: the samples beside its place share the most tokens with it, and the others less and less (Manber and
Myers 1993, "Suffix arrays"). The time is that of one pass over the training rows.
"""

import numpy as np

from pairflow.pairing.cpu.compiled import compiled


def longest_copies(rows: np.ndarray, training: np.ndarray) -> np.ndarray:
    """(B,) int64: tokens in the longest span of each row (B, N) that a row of `training` (M, N) contains.
    Missing tokens, which are negative, end a span."""
    length = rows.shape[1]
    padded = np.pad(rows, ((0, 0), (0, length)), constant_values=np.iinfo(rows.dtype).min)
    ends = np.lib.stride_tricks.sliding_window_view(padded, length, axis=1)[:, :length]
    order = np.lexsort(ends.reshape(-1, length).T[::-1])  # row * N + first place of each end, by its tokens
    shared = np.zeros(len(order), np.int64)
    _look_up(rows, order, training, shared)
    _spread(rows, order, shared, np.zeros_like(shared))
    longest = np.zeros(len(rows), np.int64)
    np.maximum.at(longest, order // length, shared)
    return longest


@compiled
def _match(rows: np.ndarray, end: int, others: np.ndarray, row: int, first: int) -> tuple[int, bool]:
    """Tokens that an end of `rows` shares with an end of `others`, and whether it sorts before that."""
    length, width = rows.shape[1], others.shape[1]
    own, place = end // length, end % length
    shared = 0
    while place + shared < length and first + shared < width:
        one, other = rows[own, place + shared], others[row, first + shared]
        if one != other or one < 0:
            return shared, one < other
        shared += 1
    return shared, place + shared == length


@compiled
def _look_up(rows: np.ndarray, order: np.ndarray, training: np.ndarray, shared: np.ndarray) -> None:
    """For the two ends beside each end of `training`, the most tokens that they share with it."""
    for row in range(len(training)):
        for first in range(training.shape[1]):
            low, high = 0, len(order)
            while low < high:
                middle = (low + high) // 2
                if _match(rows, order[middle], training, row, first)[1]:
                    low = middle + 1
                else:
                    high = middle
            for place in range(max(low - 1, 0), min(low + 1, len(order))):
                shared[place] = max(shared[place], _match(rows, order[place], training, row, first)[0])


@compiled
def _spread(rows: np.ndarray, order: np.ndarray, shared: np.ndarray, equal: np.ndarray) -> None:
    """Pass what an end shares with the training text on to its neighbours, as far as they are equal to it.
    `equal` is room for the tokens that an end shares with the one before it."""
    length, count = rows.shape[1], len(order)
    for place in range(1, count):
        equal[place] = _match(rows, order[place - 1], rows, order[place] // length, order[place] % length)[0]
        shared[place] = max(shared[place], min(shared[place - 1], equal[place]))
    for place in range(count - 1, 0, -1):
        shared[place - 1] = max(shared[place - 1], min(shared[place], equal[place]))
