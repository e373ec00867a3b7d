"""The data points as the CPU engine holds them: sorted, without constant columns, and with an index.

Memory for M keys of N tokens: the tokens (1 byte each up to K = 256, else 2), and the index, at most 17 bytes
a token as bitmaps (much less where like keys stand together) and 4 as lists. While it is built, two further
copies of the tokens.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu import bitmaps, index, lists

SPARSE = 4  # keys in a block of the bitmaps on average: with fewer, lists are faster, and much smaller


class Keys(NamedTuple):
    """M keys with A varying columns. A constant column shifts all distances alike: it never decides a level.

    `columns` (A,) are the varying columns' places, `constants` (N,) the symbol of a column that does not vary
    (-1: it does). `tokens` (M, A) are the varying columns. If `listed`, the keys of the index's `rows` are in
    `lists`, else in `bitmaps`; the other is empty.
    """

    number: int
    columns: np.ndarray
    constants: np.ndarray
    tokens: np.ndarray
    rows: index.Index
    bitmaps: bitmaps.Bitmaps
    lists: lists.Lists
    listed: bool
    binary: bool  # K is 2


def prepare(data: np.ndarray, vocabulary_size: int, order: np.ndarray | None = None) -> Keys:
    """The keys of `data` (M, N), unsigned; in an `order` of its rows, by default that of `sorted_rows`."""
    constants = np.where((data == data[0]).all(axis=0), data[0].astype(np.int64), -1)
    varying = np.flatnonzero(constants < 0)
    if not len(varying):
        constants[0], varying = -1, np.array([0])
    order = sorted_rows(data) if order is None else order
    tokens = np.ascontiguousarray(data[order][:, varying])
    columns = np.ascontiguousarray(tokens.T)
    rows = index.build(columns, vocabulary_size)
    starts = bitmaps.row_starts(columns, rows, vocabulary_size)
    listed = columns.size < SPARSE * int(starts[-1])
    no_keys = columns[:, :0], rows, 0 * starts
    return Keys(
        number=len(order),
        columns=varying,
        constants=constants,
        tokens=tokens,
        rows=rows,
        bitmaps=bitmaps.build(*(no_keys if listed else (columns, rows, starts)), vocabulary_size),
        lists=lists.build(columns if listed else columns[:0], vocabulary_size),
        listed=listed,
        binary=vocabulary_size == 2,
    )


def sorted_rows(data: np.ndarray) -> np.ndarray:
    """An order of the rows in which those that end alike stand together: by length, then by their tails."""
    reversed_rows = np.ascontiguousarray(data[:, ::-1])
    return np.argsort(reversed_rows.view(f"V{data.itemsize * data.shape[1]}")[:, 0], kind="stable")
