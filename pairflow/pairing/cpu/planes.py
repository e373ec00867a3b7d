"""Match counts of all keys in vertical bit planes: for an index of bitmaps.

Plane b of a block holds bit b of the match counts of its 512 keys, so one instruction updates 512 keys.
`planes` is (blocks, P, 8) uint64 with P >= 3: the planes of a block are neighbours in memory.
"""

import numpy as np

from pairflow.pairing.cpu.block import (
    BITS,
    WORDS,
    any_bit,
    fill,
    load,
    lowest_bit,
    plus,
    popcount,
    store,
    total,
)
from pairflow.pairing.cpu.compiled import compiled

OCTAVE = 8  # match counts that differ only in their three lowest bits
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def planes_for(length: int) -> int:
    """Return P, the number of bit planes that hold match counts from 0 to `length`."""
    # `split_octave` reads three planes of every block, even if rows have fewer than four positions.
    return max(3, length.bit_length())


@compiled
def move(planes, bitmaps, lost, gained):
    """Update all match counts after a symbol of the query has changed.

    Keys of the index row `lost` lose a match, and keys of the index row `gained` gain one.
    """
    blocks, numbers, starts = bitmaps.blocks, bitmaps.numbers, bitmaps.starts
    old, old_end = starts[lost], starts[lost + 1]
    new, new_end = starts[gained], starts[gained + 1]
    count = planes.shape[1]
    nothing = fill(np.uint64(0))
    end = len(planes)
    # Both lists of blocks ascend, so that one pass reads and writes each block of planes only once.
    while old < old_end or new < new_end:
        old_block = numbers[old] if old < old_end else end
        new_block = numbers[new] if new < new_end else end
        block = min(old_block, new_block)
        lose = nothing
        if old_block == block:
            lose = load(blocks, old)
            old += 1
        gain = nothing
        if new_block == block:
            gain = load(blocks, new)
            new += 1
        for plane in range(block * count, block * count + count):
            bits = load(planes, plane)
            # Ripple carry and borrow: no key is in both `gain` and `lose`.
            store(planes, plane, bits ^ (gain | lose))
            gain = gain & bits
            lose = lose & ~bits


@compiled
def move_binary(planes, bitmaps, gained):
    """Update all match counts after the query took the symbols of the `gained` rows of the index, if K = 2.

    A key (data row) without the new symbol has the old one, and loses a match. Carry-save adders sum seven
    rows at a time, so that the planes are read and written only once for them.
    """
    rows = bitmaps.blocks
    for n in range(0, len(gained), 7):
        a, b = _first_block(bitmaps, gained, n), _first_block(bitmaps, gained, n + 1)
        c, d = _first_block(bitmaps, gained, n + 2), _first_block(bitmaps, gained, n + 3)
        e, f = _first_block(bitmaps, gained, n + 4), _first_block(bitmaps, gained, n + 5)
        g = _first_block(bitmaps, gained, n + 6)
        for block in range(len(planes)):
            one_a, two_a = _full_add(load(rows, a + block), load(rows, b + block), load(rows, c + block))
            one_b, two_b = _full_add(load(rows, d + block), load(rows, e + block), load(rows, f + block))
            ones, two_c = _full_add(one_a, one_b, load(rows, g + block))
            twos, fours = _full_add(two_a, two_b, two_c)
            _add_sum(planes, block, ones, twos, fours, min(7, len(gained) - n))


@compiled
def _first_block(bitmaps, gained, n):
    """Return where in `bitmaps.blocks` the index row gained[n] begins.

    For n >= len(gained) this is where the row without keys begins.
    """
    return bitmaps.starts[gained[n]] if n < len(gained) else bitmaps.starts[-2]


@compiled
def _add_sum(planes, block, ones, twos, fours, number):
    """Add 2 (ones + 2 twos + 4 fours) - `number` to the match counts of the keys in the block number `block`.

    `ones`, `twos` and `fours` are blocks, with a bit for each key.
    """
    count = planes.shape[1]
    # A bit of 1 adds 1 and a bit of 0 subtracts 1: `number` bits of sum s change a count by 2 s - number.
    gain = carry = borrow = fill(np.uint64(0))
    for plane in range(count):
        bits, carry = _full_add(load(planes, block * count + plane), gain, carry)
        lose = fill(_ONES * np.uint64(number >> plane & 1))
        half = bits ^ lose
        store(planes, block * count + plane, half ^ borrow)
        borrow = (~bits & lose) | (~half & borrow)
        # `ones` enters at plane 1 and not at plane 0, which doubles the sum.
        gain, ones, twos, fours = ones, twos, fours, fill(np.uint64(0))


@compiled
def _full_add(a, b, c):
    """Return sum and carry of three bits, for every bit of a block: three instructions with VPTERNLOG."""
    return a ^ b ^ c, a ^ ((a ^ b) & (a ^ c))


@compiled
def split_octave(planes, valid, octave, masks, touched, counts):
    """Find the keys with the match counts 8 `octave` + k, for k = 0..7, among the `valid` ones.

    Writes them as bitmaps to masks[k], and their number to counts[k]. Only blocks with such a key are
    written. These blocks are listed in `touched`, and their number is returned.
    """
    size, bits = planes.shape[:2]
    # Masks of only the levels that are asked for were slower: 176 us a query in place of 151 on QM9
    # (benchmarks/records/speed.md).
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = fill(np.uint64(0))
    written = 0
    for block in range(size):
        first = block * bits
        # Bits behind the last key have match counts, too; `valid` keeps them out of all levels.
        high = load(valid, block)
        for plane in range(3, bits):
            wanted = (octave >> (plane - 3)) & 1
            high = high & (load(planes, first + plane) ^ fill(_ONES * np.uint64(1 - wanted)))
        if not any_bit(high):
            continue
        touched[written] = block
        written += 1
        bit_0, bit_1, bit_2 = load(planes, first), load(planes, first + 1), load(planes, first + 2)
        above, below = high & bit_2, high & ~bit_2
        n0 = plus(n0, _store_and_count(masks, block, below & ~bit_1 & ~bit_0))
        n1 = plus(n1, _store_and_count(masks, size + block, below & ~bit_1 & bit_0))
        n2 = plus(n2, _store_and_count(masks, 2 * size + block, below & bit_1 & ~bit_0))
        n3 = plus(n3, _store_and_count(masks, 3 * size + block, below & bit_1 & bit_0))
        n4 = plus(n4, _store_and_count(masks, 4 * size + block, above & ~bit_1 & ~bit_0))
        n5 = plus(n5, _store_and_count(masks, 5 * size + block, above & ~bit_1 & bit_0))
        n6 = plus(n6, _store_and_count(masks, 6 * size + block, above & bit_1 & ~bit_0))
        n7 = plus(n7, _store_and_count(masks, 7 * size + block, above & bit_1 & bit_0))
    counts[0], counts[1], counts[2], counts[3] = total(n0), total(n1), total(n2), total(n3)
    counts[4], counts[5], counts[6], counts[7] = total(n4), total(n5), total(n6), total(n7)
    return written


@compiled
def _store_and_count(masks, block, mask):
    """Store `mask` as block number `block` of `masks`; return the numbers of bits in its eight words."""
    store(masks, block, mask)
    return popcount(mask)


@compiled
def clear_untouched(mask, touched, written):
    """Set to zero the blocks of a mask (blocks, 8) that `split_octave` has not written.

    These are all blocks except touched[:written].
    """
    # One pass is enough, because `split_octave` lists the blocks in ascending order.
    following = 0
    for block in range(len(mask)):
        if following < written and touched[following] == block:
            following += 1
        else:
            mask[block] = 0


@compiled
def list_keys(mask, touched, listed):
    """Write the numbers of the keys in the `touched` blocks of `mask` (blocks, 8) to `listed`, ascending."""
    count = 0
    for block in touched:
        if any_bit(load(mask, block)):
            for word in range(WORDS):
                bits = mask[block, word]
                while bits != np.uint64(0):
                    listed[count] = block * BITS + word * 64 + lowest_bit(bits)
                    count += 1
                    bits &= bits - np.uint64(1)
