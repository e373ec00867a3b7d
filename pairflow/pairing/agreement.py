"""c_g[i]: how many keys of level g agree with the query at position i. Three exact ways to count.

- By rows: the bits that a row of the index and the level's mask have in common. Best where a level has many
  keys: 512 keys per instruction.
- By keys: the tokens of each key of the level, compared one by one. Best where a level has few.
- By packed keys: one bit per token (K = 2; two for K <= 4), added up by carry-save adders in vertical
  counters. Best where rows are long and levels are many, as with images.
"""

import numpy as np

from pairflow.pairing.bitmaps import scan_blocks
from pairflow.pairing.block import BITS, WORDS, any_bit, fill, load, lowest_bit, plus, popcount, store, total
from pairflow.pairing.compiled import compiled

TILE = 32  # blocks at a time: the masks of four levels stay in the first-level cache


@compiled
def add_by_rows(bitmaps, rows, state, masks, chosen, counts, scratch):
    """counts[chosen[n, 1], i] += common bits of position i's row and masks[chosen[n, 0]], for every n.

    `rows` (A,) are the rows of the query's symbols (-1: none), `state` (A,) the symbols themselves.
    """
    places = masks.shape[1]
    following = np.zeros(len(rows), np.int64)
    if bitmaps.stored:
        for i in range(len(rows)):
            following[i] = bitmaps.starts[rows[i]] if rows[i] >= 0 else 0
    for tile in range(0, places, TILE):
        tile_end = min(tile + TILE, places)
        for i in range(len(rows)):
            if rows[i] < 0:
                continue
            if bitmaps.stored:
                first, end = following[i], following[i]
                row_end = bitmaps.starts[rows[i] + 1]
                while end < row_end and bitmaps.places[end] < tile_end:
                    end += 1
                following[i] = end
                _add_common(bitmaps.blocks, bitmaps.places, first, end, masks, chosen, counts, i)
            else:
                scan_blocks(bitmaps.columns[i], state[i], tile, tile_end, scratch.blocks)
                _add_common(
                    scratch.blocks, scratch.places[tile:], 0, tile_end - tile, masks, chosen, counts, i
                )


@compiled
def _add_common(blocks, places, first, end, masks, chosen, counts, i):
    size = masks.shape[1]
    n = 0
    while n < len(chosen):
        m0 = chosen[n, 0] * size
        if len(chosen) - n >= 3:
            m1 = chosen[n + 1, 0] * size
            m2 = chosen[n + 2, 0] * size
            m3 = chosen[min(n + 3, len(chosen) - 1), 0] * size
            c0, c1, c2, c3 = _common_of_four(blocks, places, first, end, masks, m0, m1, m2, m3)
            counts[chosen[n, 1], i] += c0
            counts[chosen[n + 1, 1], i] += c1
            counts[chosen[n + 2, 1], i] += c2
            if n + 3 < len(chosen):
                counts[chosen[n + 3, 1], i] += c3
            n += 4
        else:
            counts[chosen[n, 1], i] += _common(blocks, places, first, end, masks, m0)
            n += 1


@compiled
def _common_of_four(blocks, places, first, end, masks, m0, m1, m2, m3):
    n0 = n1 = n2 = n3 = fill(np.uint64(0))
    for j in range(first, end):
        block, place = load(blocks, j), places[j]
        n0 = plus(n0, popcount(block & load(masks, m0 + place)))
        n1 = plus(n1, popcount(block & load(masks, m1 + place)))
        n2 = plus(n2, popcount(block & load(masks, m2 + place)))
        n3 = plus(n3, popcount(block & load(masks, m3 + place)))
    return total(n0), total(n1), total(n2), total(n3)


@compiled
def _common(blocks, places, first, end, masks, m0):
    n0 = fill(np.uint64(0))
    for j in range(first, end):
        n0 = plus(n0, popcount(load(blocks, j) & load(masks, m0 + places[j])))
    return total(n0)


@compiled
def list_keys(mask, touched, listed):
    """Writes the keys whose bits are set in `mask` (blocks, 8) to `listed` and returns their number.

    `touched` names the places to look at.
    """
    found = 0
    for place in touched:
        if not any_bit(load(mask, place)):
            continue
        for word in range(WORDS):
            bits = mask[place, word]
            while bits != np.uint64(0):
                listed[found] = place * BITS + word * 64 + lowest_bit(bits)
                found += 1
                bits &= bits - np.uint64(1)
    return found


@compiled
def add_by_keys(tokens, state, listed, counts):
    """counts[i] += the number of `listed` keys with tokens[key, i] == state[i]."""
    for key in listed:
        _add_equal(tokens[key], state, counts)


@compiled
def _add_equal(row, state, counts):
    for i in range(len(state)):
        counts[i] += row[i] == state[i]


@compiled
def add_by_packed_keys(packed, state, listed, sums, counts):
    """The same by carry-save adders; `state` is packed like a row of `packed` (M, bits, blocks, 8).

    `sums` (32, 8) is scratch: the vertical counters of 512 positions.
    """
    bits, blocks = packed.shape[1:3]
    for block in range(blocks):
        planes = _sum_differences(packed, state, listed, sums, bits, blocks, block)
        _subtract_counters(sums, planes, len(listed), counts[block * BITS : (block + 1) * BITS])


@compiled
def _differences(packed, state, key, bits, blocks, block):
    """The positions of one block in which a key differs from the query."""
    differs = load(packed, key * bits * blocks + block) ^ load(state, block)
    for bit in range(1, bits):
        other = load(packed, (key * bits + bit) * blocks + block) ^ load(state, bit * blocks + block)
        differs = differs | other
    return differs


@compiled
def _full_add(a, b, c):
    """Sum and carry of three bits, in every bit of a block."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@compiled
def _sum_differences(packed, state, listed, sums, bits, blocks, block):
    """Vertical counters of the listed keys' differences in one block; returns how many planes they take."""
    ones = twos = fours = fill(np.uint64(0))
    planes = 3
    grouped = len(listed) // 8 * 8
    for n in range(0, grouped, 8):
        d0 = _differences(packed, state, listed[n], bits, blocks, block)
        d1 = _differences(packed, state, listed[n + 1], bits, blocks, block)
        d2 = _differences(packed, state, listed[n + 2], bits, blocks, block)
        d3 = _differences(packed, state, listed[n + 3], bits, blocks, block)
        d4 = _differences(packed, state, listed[n + 4], bits, blocks, block)
        d5 = _differences(packed, state, listed[n + 5], bits, blocks, block)
        d6 = _differences(packed, state, listed[n + 6], bits, blocks, block)
        d7 = _differences(packed, state, listed[n + 7], bits, blocks, block)
        ones, two_a = _full_add(ones, d0, d1)
        ones, two_b = _full_add(ones, d2, d3)
        twos, four_a = _full_add(twos, two_a, two_b)
        ones, two_a = _full_add(ones, d4, d5)
        ones, two_b = _full_add(ones, d6, d7)
        twos, four_b = _full_add(twos, two_a, two_b)
        fours, carry = _full_add(fours, four_a, four_b)
        planes = _ripple(sums, 3, planes, carry)
    store(sums, 0, ones)
    store(sums, 1, twos)
    store(sums, 2, fours)
    for n in range(grouped, len(listed)):
        carry = _differences(packed, state, listed[n], bits, blocks, block)
        planes = _ripple(sums, 0, planes, carry)
    return planes


@compiled
def _ripple(sums, plane, planes, carry):
    """Adds `carry` at a plane and returns the number of planes, one more where it ran over the top."""
    while plane < planes:
        bits = load(sums, plane)
        store(sums, plane, bits ^ carry)
        carry = carry & bits
        plane += 1
    if any_bit(carry):
        store(sums, planes, carry)
        planes += 1
    return planes


@compiled
def _subtract_counters(sums, planes, keys, counts):
    """counts[i] += keys - counter i: agreements from differences."""
    halves = sums.view(np.uint32)
    for half in range(2 * WORDS):
        _subtract_half(halves[:planes, half], np.int32(keys), counts[half * 32 : half * 32 + 32])


@compiled
def _subtract_half(half, keys, counts):
    for i in range(len(counts)):
        counts[i] += keys
    for plane in range(len(half)):
        bits = half[plane]
        for i in range(len(counts)):
            counts[i] -= np.int32((bits >> np.uint32(i)) & np.uint32(1)) << plane
