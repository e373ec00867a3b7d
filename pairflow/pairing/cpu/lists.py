"""An index as lists of keys (data rows), with a counter of matches for every key: for symbols with few keys.

A change of one symbol of the query updates only the keys of two rows.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu.block import COMPARED, bit_count, equal_bits, lowest_bit, prefetch
from pairflow.pairing.cpu.compiled import compiled

_AHEAD = 4  # rows whose keys are prefetched, because they are far apart in memory
_LINE = 16  # keys in a cache line
_NO_KEY = 65535  # padding of the last counters; no key has as many matches


class Lists(NamedTuple):
    """The data rows (keys) that have a certain symbol at a certain position, for all symbols and positions.

    Each pair of position and symbol has a number r in the index, and its keys are
    keys[starts[r]:starts[r + 1]], ascending.
    """

    keys: np.ndarray
    starts: np.ndarray


def build(columns: np.ndarray, vocabulary_size: int) -> Lists:
    """List, for each position and symbol, the data rows that have this symbol there.

    `columns` (C, M) are the tokens of the M data rows, a line for each of C positions.
    """
    keys, sizes = np.empty(columns.shape, np.int32), [0]
    for sorted_keys, column in zip(keys, columns, strict=True):
        # Only a stable sort leaves the keys of a symbol in ascending order.
        sorted_keys[:] = np.argsort(column, kind="stable")
        size = np.bincount(column, minlength=vocabulary_size)
        sizes.extend(size[size > 0])
    # The 0 is the size of the last index row, `none`, which has no keys.
    return Lists(keys.reshape(-1), np.cumsum([*sizes, 0]))


def counters_for(keys: int) -> np.ndarray:
    """Return match counters (M',) uint16: 0 for each of the M = `keys` keys (data rows), then padding."""
    # 16 bits are enough for N <= 16,384. `equal_bits` reads COMPARED counters at a time, hence the padding.
    counters = np.full(-(-keys // COMPARED) * COMPARED, _NO_KEY, np.uint16)
    counters[:keys] = 0
    return counters


@compiled
def move(lists, counters, lost, gained):
    """Update the match `counters` of all keys (data rows) after the query has changed some of its symbols.

    Keys of the index rows `lost` lose a match, and keys of the index rows `gained` gain one.
    """
    keys, starts = lists.keys, lists.starts
    for n in range(len(lost)):
        ahead = min(n + _AHEAD, len(lost) - 1)
        _prefetch(keys, starts[lost[ahead]], starts[lost[ahead] + 1])
        _prefetch(keys, starts[gained[ahead]], starts[gained[ahead] + 1])
        for at in range(starts[lost[n]], starts[lost[n] + 1]):
            counters[keys[at]] -= np.uint16(1)
        for at in range(starts[gained[n]], starts[gained[n] + 1]):
            counters[keys[at]] += np.uint16(1)


@compiled
def restart(lists, counters, number, rows):
    """Count the matches of the M = `number` keys (data rows) with a query from zero; fill `counters`.

    `rows` (C,) are the index rows of the query's symbols.
    """
    keys, starts = lists.keys, lists.starts
    for key in range(number):
        counters[key] = np.uint16(0)
    for n in range(len(rows)):
        ahead = rows[min(n + _AHEAD, len(rows) - 1)]
        _prefetch(keys, starts[ahead], starts[ahead + 1])
        for at in range(starts[rows[n]], starts[rows[n] + 1]):
            counters[keys[at]] += np.uint16(1)


@compiled
def _prefetch(keys, start, end):
    for at in range(start, end, _LINE):
        prefetch(keys, at)


@compiled
def sizes(lists, rows):
    """Return how many keys (data rows) the given `rows` of the index have in total."""
    total = 0
    for row in rows:
        total += lists.starts[row + 1] - lists.starts[row]
    return total


@compiled
def greatest(counters, keys):
    """Return the greatest of the match `counters` of M = `keys` keys (data rows), without their padding."""
    most = counters[0]
    # The padding must be left out, because it has the greatest number of all.
    for key in range(keys):
        most = max(most, counters[key])
    return np.int64(most)


@compiled
def level_size(counters, matches):
    """Return how many keys (data rows) have exactly `matches` matches."""
    count = 0
    for first in range(0, len(counters), COMPARED):
        count += bit_count(equal_bits(counters, first, np.uint16(matches)))
    return count


@compiled
def list_level(counters, matches, listed):
    """Write the keys (data rows) with exactly `matches` matches to `listed`, as ascending numbers."""
    count = 0
    for first in range(0, len(counters), COMPARED):
        bits = equal_bits(counters, first, np.uint16(matches))
        while bits != np.uint64(0):
            listed[count] = first + lowest_bit(bits)
            count += 1
            bits &= bits - np.uint64(1)


@compiled
def count_in_row(lists, row, counters, matches):
    """Return how many keys (data rows) of the index row `row` have exactly `matches` matches."""
    count = 0
    for at in range(lists.starts[row], lists.starts[row + 1]):
        count += counters[lists.keys[at]] == matches
    return count
