"""The keys of the CPU engine: the data rows, sorted, without constant columns, and with an index.

Memory for M keys of N tokens: the tokens (1 byte each up to K = 256, else 2), and the index, at most 17 bytes
per token as bitmaps (much less if similar keys are neighbours) and 4 as lists. Building it takes two more
copies of the tokens.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu import bitmaps, index, lists

SPARSE = 4  # average keys in a block of the bitmaps below which lists are faster, and much smaller


class Keys(NamedTuple):
    """The M = `number` keys of a pairing: the data rows that queries are compared with.

    Attributes:
        number: M.
        columns: the positions (A,) where keys have different symbols, the varying columns. The other columns
            change all distances by the same number.
        constants: the symbol (N,) of each constant column, -1 for varying ones.
        tokens: the varying columns of the keys (M, A).
        rows: the index of the varying columns.
        bitmaps, lists: the keys of each row of the index; only one of the two is filled.
        listed: whether `lists` is filled, and not `bitmaps`.
        binary: whether K is 2.
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
    """Make the keys from `data` (M, N) of an unsigned dtype.

    `order` (M,) lists the row numbers in the order of the keys, by default that of `sorted_rows`.
    """
    constants = np.where((data == data[0]).all(axis=0), data[0].astype(np.int64), -1)
    varying = np.flatnonzero(constants < 0)
    if not len(varying):  # the kernels need a column
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
    """Return the row numbers (M,) of `data` (M, N), sorted by the last position, then the one before, ...

    So rows with equal ends are neighbours, and rows of padded sequences are sorted by their lengths first.
    """
    # The draws of semidiscrete transport depend on this order, also of equal rows (`pairing.posterior`).
    reversed_rows = np.ascontiguousarray(data[:, ::-1])
    return np.argsort(reversed_rows.view(f"V{data.itemsize * data.shape[1]}")[:, 0], kind="stable")
