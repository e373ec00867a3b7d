"""How well every key matches the query, in vertical bit planes: for an index of bitmaps.

Plane b of a block holds bit b of the match counts of its 512 keys, so one instruction works on 512 of them.
`planes` is (places, P, 8) uint64 with P >= 3: the planes of a block lie side by side.
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

OCTAVE = 8  # match counts that share all but their three lowest bits
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def planes_for(length: int) -> int:
    """P: the planes that match counts of 0..`length` need."""
    return max(3, length.bit_length())


@compiled
def move(planes, bitmaps, lost, gained):
    """Moves the query from the symbol of row `lost` to that of row `gained`. No key is in both."""
    blocks, places, starts = bitmaps.blocks, bitmaps.places, bitmaps.starts
    old, old_end = starts[lost], starts[lost + 1]
    new, new_end = starts[gained], starts[gained + 1]
    count = planes.shape[1]
    nothing = fill(np.uint64(0))
    end = len(planes)
    while old < old_end or new < new_end:
        old_place = places[old] if old < old_end else end
        new_place = places[new] if new < new_end else end
        place = min(old_place, new_place)
        lose = nothing
        if old_place == place:
            lose = load(blocks, old)
            old += 1
        gain = nothing
        if new_place == place:
            gain = load(blocks, new)
            new += 1
        for plane in range(place * count, place * count + count):
            bits = load(planes, plane)
            store(planes, plane, bits ^ (gain | lose))
            gain = gain & bits
            lose = lose & ~bits


@compiled
def move_binary(planes, bitmaps, gained, whole):
    """Moves the query to the symbols of the `gained` rows, where K = 2.

    A key that does not hold the new symbol held the old one, and loses a match. Seven rows at a time are
    summed by carry-save adders, so that the planes are read and written once for all of them. `whole`
    (7, places, 8) is scratch.
    """
    places, none = len(planes), len(bitmaps.starts) - 2
    for start in range(0, len(gained), 7):
        rows = gained[start : start + 7]
        for n in range(7):
            _spread(
                bitmaps.blocks, bitmaps.places, bitmaps.starts, rows[n] if n < len(rows) else none, whole[n]
            )
        for place in range(places):
            ones, two_a = _full_add(
                load(whole, place), load(whole, places + place), load(whole, 2 * places + place)
            )
            one_b, two_b = _full_add(
                load(whole, 3 * places + place),
                load(whole, 4 * places + place),
                load(whole, 5 * places + place),
            )
            ones, two_c = _full_add(ones, one_b, load(whole, 6 * places + place))
            twos, fours = _full_add(two_a, two_b, two_c)
            _add_sum(planes, place, ones, twos, fours, len(rows))


@compiled
def _spread(blocks, places, starts, row, whole):
    """Writes a row of the index to `whole` (places, 8), with its empty blocks."""
    following, end = starts[row], starts[row + 1]
    for place in range(len(whole)):
        bits = fill(np.uint64(0))
        if following < end and places[following] == place:
            bits = load(blocks, following)
            following += 1
        store(whole, place, bits)


@compiled
def _add_sum(planes, place, ones, twos, fours, number):
    """Counters of a block += 2 (ones + 2 twos + 4 fours) - `number`."""
    count = planes.shape[1]
    gain = carry = borrow = fill(np.uint64(0))
    for plane in range(count):
        bits, carry = _full_add(load(planes, place * count + plane), gain, carry)
        lose = fill(_ONES * np.uint64(number >> plane & 1))
        half = bits ^ lose
        store(planes, place * count + plane, half ^ borrow)
        borrow = (~bits & lose) | (~half & borrow)
        gain, ones, twos, fours = ones, twos, fours, fill(np.uint64(0))


@compiled
def _full_add(a, b, c):
    """Sum and carry of three bits, in every bit of a block: three instructions where there is VPTERNLOG."""
    return a ^ b ^ c, a ^ ((a ^ b) & (a ^ c))


@compiled
def split_octave(planes, valid, octave, masks, touched, counts):
    """Finds the keys whose match count is 8 `octave` + k, for k = 0..7: bitmaps masks[k], numbers counts[k].

    Only places with such a key are written; they are listed in `touched`, and their number is returned.
    """
    places, bits = planes.shape[:2]
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = fill(np.uint64(0))
    written = 0
    for place in range(places):
        first = place * bits
        high = load(valid, place)
        for plane in range(3, bits):
            wanted = (octave >> (plane - 3)) & 1
            high = high & (load(planes, first + plane) ^ fill(_ONES * np.uint64(1 - wanted)))
        if not any_bit(high):
            continue
        touched[written] = place
        written += 1
        bit_0, bit_1, bit_2 = load(planes, first), load(planes, first + 1), load(planes, first + 2)
        above, below = high & bit_2, high & ~bit_2
        n0 = plus(n0, _keep(masks, place, below & ~bit_1 & ~bit_0))
        n1 = plus(n1, _keep(masks, places + place, below & ~bit_1 & bit_0))
        n2 = plus(n2, _keep(masks, 2 * places + place, below & bit_1 & ~bit_0))
        n3 = plus(n3, _keep(masks, 3 * places + place, below & bit_1 & bit_0))
        n4 = plus(n4, _keep(masks, 4 * places + place, above & ~bit_1 & ~bit_0))
        n5 = plus(n5, _keep(masks, 5 * places + place, above & ~bit_1 & bit_0))
        n6 = plus(n6, _keep(masks, 6 * places + place, above & bit_1 & ~bit_0))
        n7 = plus(n7, _keep(masks, 7 * places + place, above & bit_1 & bit_0))
    counts[0], counts[1], counts[2], counts[3] = total(n0), total(n1), total(n2), total(n3)
    counts[4], counts[5], counts[6], counts[7] = total(n4), total(n5), total(n6), total(n7)
    return written


@compiled
def _keep(masks, place, mask):
    """Stores a mask and counts its bits."""
    store(masks, place, mask)
    return popcount(mask)


@compiled
def clear_untouched(mask, touched, written):
    """Makes one of the masks (places, 8) whole after `split_octave`: zero in all other places."""
    following = 0
    for place in range(len(mask)):
        if following < written and touched[following] == place:
            following += 1
        else:
            mask[place] = 0


@compiled
def list_keys(mask, touched, listed):
    """Writes the keys in `mask` (places, 8) to `listed`; only the places `touched` are looked at."""
    count = 0
    for place in touched:
        if any_bit(load(mask, place)):
            for word in range(WORDS):
                bits = mask[place, word]
                while bits != np.uint64(0):
                    listed[count] = place * BITS + word * 64 + lowest_bit(bits)
                    count += 1
                    bits &= bits - np.uint64(1)
