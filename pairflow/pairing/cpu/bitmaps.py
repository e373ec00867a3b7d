"""An index as bitmaps: the keys (data rows) of an index row are bits, in blocks of 512 keys.

Only non-empty blocks are stored, as in a compressed sparse row matrix. So rare symbols cost little, and
because keys are sorted, even common symbols cluster. With two symbols few blocks are empty: all are stored,
also for `none`, so that `planes.move_binary` finds a block without a search.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu.block import BITS, fill, load, plus, popcount, total, zero_blocks
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.index import Index


class Bitmaps(NamedTuple):
    """For each row r of an index (a symbol in a column), the keys (data rows) that have the symbol, as bits.

    Row r has the stored blocks starts[r]..starts[r + 1] - 1, whose bits are in `blocks`; `numbers` says which
    of all blocks of keys each stored block is. `valid` (all blocks, 8) has a bit for every real key, because
    the last block may be partly empty.
    """

    blocks: np.ndarray
    numbers: np.ndarray
    starts: np.ndarray
    valid: np.ndarray


def row_starts(columns: np.ndarray, index: Index, vocabulary_size: int) -> np.ndarray:
    """Return `Bitmaps.starts`: where the blocks of each row of the index begin.

    `columns` (C, M) are the transposed tokens of the keys (data rows).
    """
    if vocabulary_size == 2:
        return np.arange(index.none + 2) * -(-columns.shape[1] // BITS)
    # Blocks are counted before they are made, because `keys.prepare` may still choose lists.
    starts, last = np.zeros(index.none + 2, np.int64), np.full(index.none, -1)
    for rows in index.rows_of_keys(columns, vocabulary_size):
        _count_blocks(rows, starts[1:], last)
    return np.cumsum(starts, out=starts)


def build(columns: np.ndarray, index: Index, starts: np.ndarray, vocabulary_size: int) -> Bitmaps:
    """Make the bitmaps of the keys (data rows) with the transposed tokens `columns` (C, M).

    `starts` is the result of `row_starts`.
    """
    keys = columns.shape[1]
    valid = _packed(np.ones(keys, bool))
    bitmaps = Bitmaps(zero_blocks(starts[-1]), np.empty(starts[-1], np.int32), starts, valid)
    if vocabulary_size == 2:
        bitmaps.numbers[:] = np.arange(starts[-1]) % max(1, len(valid))
        for column, first, end in zip(columns, index.first_rows, index.first_rows[1:], strict=False):
            for row in range(first, end):
                bitmaps.blocks[starts[row] : starts[row + 1]] = _packed(column == index.symbols[row])
        return bitmaps
    following, last = starts.copy(), np.full(index.none, -1)
    for rows in index.rows_of_keys(columns, vocabulary_size):
        _fill_blocks(rows, following, bitmaps.blocks, bitmaps.numbers, last)
    return bitmaps


def _packed(keys: np.ndarray) -> np.ndarray:
    """Pack booleans (M,) as the bits of blocks, (blocks, 8) uint64; the rest of the last block is 0."""
    blocks = zero_blocks(-(-len(keys) // BITS))
    # Key k must be bit k of its word, as in `_fill_blocks`: hence the little order.
    bits = np.packbits(keys, bitorder="little")
    blocks.reshape(-1).view(np.uint8)[: len(bits)] = bits
    return blocks


@compiled
def _count_blocks(rows, counts, last):
    """Add to `counts`, for each row of the index, the number of blocks that it needs for one column.

    `rows` (M,) has the index row of each key in this column. last[r] is the last block that is counted for
    index row r, -1 for none; it is updated.
    """
    for key in range(len(rows)):
        row = rows[key]
        if last[row] != key // BITS:
            last[row] = key // BITS
            counts[row] += 1


@compiled
def _fill_blocks(rows, following, blocks, numbers, last):
    """Set the bits of one column in `blocks`, and write the numbers of these blocks to `numbers`.

    `rows` (M,) has the index row of each key in this column. following[r] is the next free block of index row
    r, and last[r] the number of its last block; both are updated.
    """
    for key in range(len(rows)):
        row = rows[key]
        if last[row] != key // BITS:
            last[row] = key // BITS
            numbers[following[row]] = key // BITS
            following[row] += 1
        blocks[following[row] - 1, key % BITS // 64] |= np.uint64(1) << np.uint64(key % 64)


@compiled
def count_in_row(bitmaps, row, mask):
    """Return how many keys of a row of the index are also in `mask` (all blocks, 8), a bitmap of keys."""
    blocks, numbers = bitmaps.blocks, bitmaps.numbers
    counts = fill(np.uint64(0))
    for at in range(bitmaps.starts[row], bitmaps.starts[row + 1]):
        counts = plus(counts, popcount(load(blocks, at) & load(mask, numbers[at])))
    return total(counts)
