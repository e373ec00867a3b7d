"""The random numbers of a step: uniform numbers of all positions, and the new symbol of a position."""

import numpy as np

from pairflow import rng
from pairflow.pairing.cpu.block import WORDS, fill, load, store
from pairflow.pairing.cpu.compiled import compiled

split = compiled(rng.split)
philox = compiled(rng.philox4x32)
uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)


@compiled
def draw(positions, step, row_words, seed_words, words, uniforms):
    """Fills `uniforms` (N',) with the random numbers of a step, made from `words`, eight at a time."""
    low, high = fill(row_words[0]), fill(row_words[1])
    for block in range(len(positions) // WORDS):
        w0, w1, _, _ = philox(load(positions, block), fill(step), low, high, *seed_words)
        store(words, block, w0 | (w1 << np.uint64(32)))
    for position in range(len(positions)):
        uniforms[position] = uniform(*split(words[position]))


@compiled
def other(symbol, column, step, row_words, seed_words, others):
    """Returns the new symbol of a position: one of the `others` = K - 1 symbols that differ from `symbol`."""
    _, _, word, _ = philox(np.uint64(column), np.uint64(step), *row_words, *seed_words)
    choice = _choose(word, others)
    return choice + np.uint64(choice >= symbol)
