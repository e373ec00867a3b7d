"""The data points as the CPU engine holds them: sorted, without constant columns, in two layouts.

Memory, for M keys of N tokens (1 byte each up to K = 256, else 2): the tokens, the index of `bitmaps` (at
most 1 GiB, else the tokens once more), and while they are built two further copies of the tokens.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu import bitmaps


class Keys(NamedTuple):
    """M keys with A varying columns. A constant column shifts all distances alike: it never decides a level.

    `columns` (A,) are the varying columns' places, `constants` (N,) the symbol of a column that does not vary
    (-1: it does). `tokens` (M, A) are the varying columns. `binary`: K is 2 and the index is stored.
    """

    number: int
    columns: np.ndarray
    constants: np.ndarray
    tokens: np.ndarray
    bitmaps: bitmaps.Bitmaps
    binary: bool


def prepare(data: np.ndarray, vocabulary_size: int) -> Keys:
    """The keys of `data` (M, N), unsigned."""
    constants = np.where((data == data[0]).all(axis=0), data[0].astype(np.int64), -1)
    varying = np.flatnonzero(constants < 0)
    if not len(varying):
        constants[0], varying = -1, np.array([0])
    tokens = np.ascontiguousarray(data[sorted_rows(data)][:, varying])
    index = bitmaps.build(np.ascontiguousarray(tokens.T), vocabulary_size)
    return Keys(
        number=len(data),
        columns=varying,
        constants=constants,
        tokens=tokens,
        bitmaps=index,
        binary=vocabulary_size == 2 and index.stored,
    )


def sorted_rows(data: np.ndarray) -> np.ndarray:
    """An order of the rows in which those that end alike stand together: by length, then by their tails."""
    reversed_rows = np.ascontiguousarray(data[:, ::-1])
    return np.argsort(reversed_rows.view(f"V{data.itemsize * data.shape[1]}")[:, 0], kind="stable")
