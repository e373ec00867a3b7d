"""The rows of an index of keys (data rows): one for every pair of a column and a symbol that occurs there.

An index row has the keys with its symbol, in the faster of two layouts: `bitmaps` if symbols have many
keys, `lists` if few.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu.compiled import compiled


class Index(NamedTuple):
    """Numbers the pairs of a column and a symbol that occurs there: each pair is a row of the index.

    Column c has the rows first_rows[c]..first_rows[c + 1] - 1, in ascending order of their `symbols`. The
    last row, `none`, has no keys (data rows): it stands for symbols that do not occur.
    """

    symbols: np.ndarray
    first_rows: np.ndarray
    none: int

    def rows_of_keys(self, columns: np.ndarray, vocabulary_size: int) -> Iterator[np.ndarray]:
        """Yield for each of the `columns` (C, M), the transposed tokens, the index row (M,) of each key."""
        rows = np.empty(vocabulary_size, np.int64)
        for column, first, end in zip(columns, self.first_rows, self.first_rows[1:], strict=False):
            # Entries of other symbols are old or unset, but no token of this column has such a symbol.
            rows[self.symbols[first:end]] = np.arange(first, end)
            yield rows[column]


def build(columns: np.ndarray, vocabulary_size: int) -> Index:
    """Make the index of the keys (data rows) with the transposed tokens `columns` (C, M)."""
    seen = [np.flatnonzero(np.bincount(column, minlength=vocabulary_size)) for column in columns]
    first_rows = np.cumsum([0, *map(len, seen)])
    return Index(np.concatenate(seen).astype(columns.dtype), first_rows, int(first_rows[-1]))


@compiled
def find_row(index, column, symbol):
    """Return the index row of `symbol` in `column`, or `index.none` if no key has the symbol there."""
    low, high = index.first_rows[column], index.first_rows[column + 1]
    while low < high:
        middle = (low + high) // 2
        if index.symbols[middle] < symbol:
            low = middle + 1
        else:
            high = middle
    is_there = low < index.first_rows[column + 1] and index.symbols[low] == symbol
    return low if is_there else index.none
