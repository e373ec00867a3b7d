"""c_g[i]: how many keys of level g agree with the query at position i. Three exact ways to count.

- By rows: the bits that a row of the index and the level's mask have in common. Best where a level has many
  keys: 512 keys per instruction.
- By keys: the tokens of each key of the level, compared one by one. Best where a level has few.
- By packed keys: the same for K = 2 with one bit per token, added up by carry-save adders in vertical
  counters. Best where rows are long and levels are many, as with images.
"""

import numpy as np

from pairflow.pairing.cpu.bitmaps import scan_blocks
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

TILE = 64  # blocks at a time: the masks of four levels stay in the first-level cache


@compiled
def add_by_rows(blocks, places, starts, rows, masks, chosen, counts):
    """counts[g, i] += common bits of the row rows[i] (A,) and masks[k], for every pair (k, g) of `chosen`.

    A row below 0 is empty. `blocks`, `places` and `starts` are those of a stored index (`Bitmaps`).
    """
    following = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        if rows[i] >= 0:
            following[i] = starts[rows[i]]
    for tile_end in range(TILE, masks.shape[1] + TILE, TILE):
        for i in range(len(rows)):
            if rows[i] >= 0:
                row = following[i], starts[rows[i] + 1], tile_end
                following[i] = _add_common(blocks, places, row, masks, chosen, counts, i)


@compiled
def add_by_scanned_rows(columns, rows, state, masks, chosen, counts, blocks, places):
    """The same without a stored index: the row of state[i] is read from the tokens of columns[i].

    `blocks` is scratch for one row, `places` holds 0, 1, 2, ...
    """
    for i in range(len(rows)):
        if rows[i] >= 0:
            scan_blocks(columns[i], state[i], blocks)
            row = np.int64(0), len(blocks), len(blocks)
            _add_common(blocks, places, row, masks, chosen, counts, i)


@compiled
def _add_common(blocks, places, row, masks, chosen, counts, i):
    """counts[g, i] += common bits of one row and masks[k]; `row` is as in `_common_of_four`."""
    following, size, last = row[0], masks.shape[1], len(chosen) - 1
    for n in range(0, last + 1, 4):
        four = n, min(n + 1, last), min(n + 2, last), min(n + 3, last)  # the last may be counted in vain
        offsets = (
            chosen[four[0], 0] * size,
            chosen[four[1], 0] * size,
            chosen[four[2], 0] * size,
            chosen[four[3], 0] * size,
        )
        following, common = _common_of_four(blocks, places, row, masks, offsets)
        for lane in range(min(4, last + 1 - n)):
            counts[chosen[n + lane, 1], i] += common[lane]
    return following


@compiled
def _common_of_four(blocks, places, row, masks, offsets):
    """The bits that a row has in common with each of four masks, and the block to continue with.

    `row` holds the first block, the end of the row, and the place at which to stop; `offsets` where the masks
    begin.
    """
    following, end, stop = row
    o0, o1, o2, o3 = offsets
    n0 = n1 = n2 = n3 = fill(np.uint64(0))
    while following < end:
        place = places[following]
        if place >= stop:
            break
        block = load(blocks, following)
        n0 = plus(n0, popcount(block & load(masks, o0 + place)))
        n1 = plus(n1, popcount(block & load(masks, o1 + place)))
        n2 = plus(n2, popcount(block & load(masks, o2 + place)))
        n3 = plus(n3, popcount(block & load(masks, o3 + place)))
        following += 1
    return following, (total(n0), total(n1), total(n2), total(n3))


@compiled
def list_keys(mask, touched, listed):
    """Writes the keys whose bits are set in `mask` (blocks, 8) to `listed` and returns their number.

    `touched` names the places to look at.
    """
    count = 0
    for place in touched:
        if not any_bit(load(mask, place)):
            continue
        for word in range(WORDS):
            bits = mask[place, word]
            while bits != np.uint64(0):
                listed[count] = place * BITS + word * 64 + lowest_bit(bits)
                count += 1
                bits &= bits - np.uint64(1)
    return count


@compiled
def add_by_keys(tokens, state, listed, tally, counts):
    """counts[i] += the number of `listed` keys with tokens[key, i] == state[i].

    `tally` (A',) uint8 is scratch: it counts in bytes, for as many keys as a byte can count.
    """
    for start in range(0, len(listed), 255):
        tally[:] = 0
        for n in range(start, min(start + 255, len(listed))):
            key = listed[n]
            for i in range(len(tally)):
                tally[i] += np.uint8(tokens[key, i] == state[i])
        for i in range(len(tally)):
            counts[i] += tally[i]


@compiled
def add_by_packed_keys(packed, state, listed, sums, counts):
    """The same for one bit per token: `packed` (M, blocks, 8) and `state` (blocks, 8).

    `sums` (32, 8) is scratch: the vertical counters of 512 positions.
    """
    blocks = packed.shape[1]
    for block in range(blocks):
        planes = _sum_differences(packed, load(state, block), blocks, block, listed, sums)
        _subtract_counters(sums, planes, len(listed), counts[block * BITS : (block + 1) * BITS])


@compiled
def _sum_differences(packed, state, blocks, block, listed, sums):
    """Vertical counters `sums` of the listed keys' differences in one block; returns how many planes."""
    planes = 3
    while len(listed) >> planes:
        sums[planes] = 0
        planes += 1
    ones = twos = fours = fill(np.uint64(0))
    grouped = len(listed) // 8 * 8
    for n in range(0, grouped, 8):
        d0 = load(packed, listed[n] * blocks + block) ^ state
        d1 = load(packed, listed[n + 1] * blocks + block) ^ state
        d2 = load(packed, listed[n + 2] * blocks + block) ^ state
        d3 = load(packed, listed[n + 3] * blocks + block) ^ state
        d4 = load(packed, listed[n + 4] * blocks + block) ^ state
        d5 = load(packed, listed[n + 5] * blocks + block) ^ state
        d6 = load(packed, listed[n + 6] * blocks + block) ^ state
        d7 = load(packed, listed[n + 7] * blocks + block) ^ state
        ones, two_a = _full_add(ones, d0, d1)
        ones, two_b = _full_add(ones, d2, d3)
        twos, four_a = _full_add(twos, two_a, two_b)
        ones, two_a = _full_add(ones, d4, d5)
        ones, two_b = _full_add(ones, d6, d7)
        twos, four_b = _full_add(twos, two_a, two_b)
        fours, carry = _full_add(fours, four_a, four_b)
        for plane in range(3, planes):
            bits = load(sums, plane)
            store(sums, plane, bits ^ carry)
            carry = carry & bits
    store(sums, 0, ones)
    store(sums, 1, twos)
    store(sums, 2, fours)
    for n in range(grouped, len(listed)):
        carry = load(packed, listed[n] * blocks + block) ^ state
        for plane in range(planes):
            bits = load(sums, plane)
            store(sums, plane, bits ^ carry)
            carry = carry & bits
    return planes


@compiled
def _full_add(a, b, c):
    """Sum and carry of three bits, in every bit of a block."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@compiled
def _subtract_counters(sums, planes, keys, counts):
    """counts[i] += keys - counter i: agreements from differences."""
    halves = sums.view(np.uint32)  # (32, 16)
    for i in range(len(counts)):
        counts[i] += keys
    for half in range(halves.shape[1]):
        _subtract_half(halves, half, planes, counts[32 * half : 32 * half + 32])


@compiled
def _subtract_half(halves, half, planes, counts):
    for plane in range(planes):
        bits = halves[plane, half]
        for i in range(len(counts)):
            counts[i] -= np.int32((bits >> np.uint32(i)) & np.uint32(1)) << plane
