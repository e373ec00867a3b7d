"""The random numbers of a step: the draws of all positions, and the symbol that one moves to."""

import numpy as np

from pairflow import rng
from pairflow.pairing.cpu.block import WORDS, fill, load, store
from pairflow.pairing.cpu.compiled import compiled

split = compiled(rng.split)
_philox = compiled(rng.philox4x32)
_uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)


@compiled
def draw(positions, step, row_words, seed_words, words, uniforms):
    """Fills uniforms (N',) with the random numbers of a step, eight at a time."""
    low, high = fill(row_words[0]), fill(row_words[1])
    for place in range(len(positions) // WORDS):
        w0, w1, _, _ = _philox(load(positions, place), fill(step), low, high, *seed_words)
        store(words, place, w0 | (w1 << np.uint64(32)))
    for position in range(len(positions)):
        uniforms[position] = _uniform(*split(words[position]))


@compiled
def other(symbol, column, step, row_words, seed_words, others):
    """The symbol that a position moves to: its choice among the `others`."""
    _, _, word, _ = _philox(np.uint64(column), np.uint64(step), *row_words, *seed_words)
    choice = _choose(word, others)
    return choice + np.uint64(choice >= symbol)
