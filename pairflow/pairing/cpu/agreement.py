"""c_g[i]: how many keys of level g agree with the query at position i. Two exact ways to count.

- By rows: the bits that a row of the index and the level's mask have in common. Best where a level has many
  keys: 512 keys per instruction.
- By keys: the symbols of each key of the level, compared one by one. Best where a level has few.
"""

import numpy as np

from pairflow.pairing.cpu.block import BITS, WORDS, any_bit, fill, load, lowest_bit, plus, popcount, total
from pairflow.pairing.cpu.compiled import compiled


@compiled
def count_by_row(row, mask):
    """The number of keys in a row of the index (`IndexRow`) and in `mask` (blocks, 8)."""
    found = fill(np.uint64(0))
    for following in range(row.first, row.end):
        found = plus(found, popcount(load(row.blocks, following) & load(mask, row.places[following])))
    return total(found)


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
def count_by_keys(tokens, listed, symbols, columns, chosen, tally):
    """tally[n] = the number of `listed` keys that agree with `symbols` (A,) in column columns[chosen[n]]."""
    for n in range(len(chosen)):
        tally[n] = 0
    for key in listed:
        for n in range(len(chosen)):
            i = columns[chosen[n]]
            tally[n] += tokens[key, i] == symbols[i]
