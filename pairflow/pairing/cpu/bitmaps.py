"""Where each symbol is: for every occurring (column, symbol) the set of keys that hold it, as a bitmap.

Keys come in blocks of 512. A row of the index stores only its blocks that are not empty, so a rare symbol
costs little, and sorting the keys makes even common symbols cluster. An index that would take more than
`MAX_BYTES` is not stored: its rows are made from the columns whenever they are needed.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pairflow.pairing.cpu.block import BITS, WORDS, zero_blocks
from pairflow.pairing.cpu.compiled import compiled, inlined

MAX_BYTES = 1 << 30  # of a stored index
_BYTES_PER_BLOCK = BITS // 8 + 4


class Bitmaps(NamedTuple):
    """Row r holds blocks starts[r]..starts[r + 1]: their bits in `blocks`, their places in `places`.

    The rows of column c are first_rows[c]..first_rows[c + 1], one for each of its `symbols`, ascending.
    Without a stored index (`stored` is False) there are no rows, and `columns` (C, M') has the tokens.
    `valid` (blocks, 8) has the bits of real keys: the last block may be partly empty.
    """

    stored: bool
    blocks: np.ndarray
    places: np.ndarray
    starts: np.ndarray
    symbols: np.ndarray
    first_rows: np.ndarray
    columns: np.ndarray
    valid: np.ndarray


class IndexRow(NamedTuple):
    """Blocks first..end of a row of the index, and the places of its blocks."""

    blocks: np.ndarray
    places: np.ndarray
    first: int
    end: int


def build(columns: np.ndarray, vocabulary_size: int) -> Bitmaps:
    """The index of `columns` (C, M), the transposed tokens of the keys."""
    keys = columns.shape[1]
    places = -(-keys // BITS)
    seen = [np.flatnonzero(np.bincount(column, minlength=vocabulary_size)) for column in columns]
    first_rows = np.cumsum([0, *map(len, seen)])
    starts = np.zeros(first_rows[-1] + 1, np.int64)
    ranks = np.empty(vocabulary_size, np.int64)  # of a symbol among the symbols of its column
    for column, symbols, first in zip(columns, seen, first_rows, strict=False):
        ranks[symbols] = np.arange(len(symbols))
        _count_blocks(column, ranks, starts[first + 1 : first + 1 + len(symbols)])
    np.cumsum(starts, out=starts)
    stored = bool(starts[-1] * _BYTES_PER_BLOCK <= MAX_BYTES)
    valid = zero_blocks(places)
    real = np.arange(places * BITS) < keys
    valid.reshape(-1)[:] = np.packbits(real, bitorder="little").view(np.uint64)
    bitmaps = Bitmaps(
        stored=stored,
        blocks=zero_blocks(starts[-1] if stored else 0),
        places=np.empty(starts[-1] if stored else 0, np.int32),
        starts=starts,
        symbols=np.concatenate(seen).astype(columns.dtype),
        first_rows=first_rows,
        columns=columns[:, :0] if stored else np.pad(columns, ((0, 0), (0, places * BITS - keys))),
        valid=valid,
    )
    if stored:
        for column, symbols, first in zip(columns, seen, first_rows, strict=False):
            ranks[symbols] = np.arange(len(symbols))
            rows = starts[first : first + len(symbols)]
            _fill_blocks(column, ranks, rows.copy(), bitmaps.blocks, bitmaps.places)
    return bitmaps


@compiled
def _count_blocks(column, ranks, counts):
    """Adds to `counts` (rows,) in how many blocks each symbol of the column occurs."""
    last = np.full(len(counts), -1, np.int64)
    for key in range(len(column)):
        row = ranks[column[key]]
        if last[row] != key // BITS:
            last[row] = key // BITS
            counts[row] += 1


@compiled
def _fill_blocks(column, ranks, following, blocks, places):
    """Sets the bits of one column; `following` (rows,) is where the next block of each row goes."""
    last = np.full(len(following), -1, np.int64)
    for key in range(len(column)):
        row = ranks[column[key]]
        if last[row] != key // BITS:
            last[row] = key // BITS
            places[following[row]] = key // BITS
            following[row] += 1
        blocks[following[row] - 1, key % BITS // 64] |= np.uint64(1) << np.uint64(key % 64)


@compiled
def find_row(bitmaps, column, symbol):
    """The row of a symbol in a column, or -1 where no key holds it."""
    low, high = bitmaps.first_rows[column], bitmaps.first_rows[column + 1]
    while low < high:
        middle = (low + high) // 2
        if bitmaps.symbols[middle] < symbol:
            low = middle + 1
        else:
            high = middle
    return low if low < bitmaps.first_rows[column + 1] and bitmaps.symbols[low] == symbol else -1


@compiled
def row_blocks(bitmaps, row):
    """The number of blocks in a row; none in row -1."""
    return bitmaps.starts[row + 1] - bitmaps.starts[row] if row >= 0 else 0


@inlined
def index_row(bitmaps, column, row, symbol, scratch, every_place):
    """The row of a symbol in a column; where the index is not stored, it is made in `scratch`."""
    if bitmaps.stored or row < 0:
        first = bitmaps.starts[row] if row >= 0 else 0
        return IndexRow(bitmaps.blocks, bitmaps.places, first, first + row_blocks(bitmaps, row))
    scan_blocks(bitmaps.columns[column], symbol, scratch)
    return IndexRow(scratch, every_place, 0, len(scratch))


@compiled
def scan_blocks(column, symbol, blocks):
    """Writes the whole row of `symbol` to `blocks`, read from the tokens of its column."""
    for place in range(len(blocks)):
        for word in range(WORDS):
            blocks[place, word] = _equal_bits(column, place * BITS + word * 64, symbol)


@intrinsic
def _equal_bits(typing, tokens, first, symbol):
    """A uint64 whose bit k is 1 where tokens[first + k] == symbol."""

    def build(context, builder, signature, arguments):
        array, start, wanted = arguments
        element = context.get_data_type(signature.args[0].dtype)
        vector = ir.VectorType(element, 64)
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, array).data
        loaded = builder.load(builder.bitcast(builder.gep(data, [start]), vector.as_pointer()))
        loaded.align = 1
        undefined = ir.Constant(vector, ir.Undefined)
        lane = builder.insert_element(undefined, wanted, ir.Constant(ir.IntType(32), 0))
        everywhere = builder.shuffle_vector(
            lane, undefined, ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
        )
        return builder.bitcast(builder.icmp_unsigned("==", loaded, everywhere), ir.IntType(64))

    return types.uint64(tokens, types.intp, tokens.dtype), build
