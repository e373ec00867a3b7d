"""Compiled random numbers: rows of noise, and the numbers of a step of Algorithm 1."""

import numpy as np

from pairflow import rng
from pairflow.pairing.cpu.block import WORDS, fill, load, store
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.frequency_rule import cumulative

split = compiled(rng.split)
philox = compiled(rng.philox4x32)
uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)


def uniform_tokens(seed: int, rows: np.ndarray, length: int, vocabulary_size: int) -> np.ndarray:
    """Draw the same rows of noise (B, N) as `rng.uniform_tokens`, some thirty times as fast.

    `rows` (B,) are the numbers of the rows.
    """
    tokens = np.empty((len(rows), length), np.min_scalar_type(vocabulary_size - 1))
    positions = np.arange(-(-length // WORDS) * WORDS, dtype=np.uint64)
    numbers, size = np.asarray(rows, np.uint64), np.uint64(vocabulary_size)
    _fill_uniform(numbers, np.uint64(seed), size, positions, np.empty_like(positions), tokens)
    return tokens


@compiled
def _fill_uniform(rows, seed, size, positions, words, tokens):
    """Fill `tokens` (B, N) with uniform noise for the row numbers `rows` (B,) and K = `size`.

    `positions` (N',) are 0, 1, 2, ..., and `words` (N',) is scratch memory; eight positions are drawn at a
    time.
    """
    seed_words = split(seed)
    for number in range(len(rows)):
        low, high = split(rows[number])
        for block in range(len(positions) // WORDS):
            step = fill(np.uint64(0))
            _, _, word, _ = philox(load(positions, block), step, fill(low), fill(high), *seed_words)
            store(words, block, _choose(word, fill(size)))
        for position in range(tokens.shape[1]):
            tokens[number, position] = words[position]


def tokens_by_frequency(seed: int, rows: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """Draw rows of noise (B, N), whose symbols have the probabilities `pi` (N, K) at each position.

    They use the uniform numbers of `rng.draws` in step 0. `rows` (B,) are the numbers of the rows. The dtype
    is the smallest unsigned integer that holds K - 1.
    """
    tokens = np.empty((len(rows), len(pi)), np.min_scalar_type(pi.shape[1] - 1))
    positions = np.arange(-(-len(pi) // WORDS) * WORDS, dtype=np.uint64)
    numbers, scratch = np.asarray(rows, np.uint64), (np.empty_like(positions), np.empty(len(positions)))
    _fill_by_frequency(numbers, np.uint64(seed), cumulative(pi), positions, *scratch, tokens)
    return tokens


@compiled
def _fill_by_frequency(rows, seed, cumulative, positions, words, uniforms, tokens):
    """Fill `tokens` (B, N): a uniform number u draws the first symbol with a cumulative probability > u.

    `rows` (B,) are row numbers, `positions` (N',) are 0, 1, 2, ...; `words` and `uniforms` (N',) are scratch
    memory.
    """
    seed_words = split(seed)
    for number in range(len(rows)):
        draw(positions, np.uint64(0), split(rows[number]), seed_words, words, uniforms)
        for position in range(tokens.shape[1]):
            tokens[number, position] = np.searchsorted(cumulative[position], uniforms[position], side="right")


@compiled
def draw(positions, step, row_words, seed_words, words, uniforms):
    """Fill `uniforms` (N',) with the random numbers of one row in one step, eight positions at a time.

    `words` (N',) is scratch memory.
    """
    # Eight positions at a time take 2.5 ns each in place of 14 (benchmarks/records/speed.md).
    low, high = fill(row_words[0]), fill(row_words[1])
    for block in range(len(positions) // WORDS):
        w0, w1, _, _ = philox(load(positions, block), fill(step), low, high, *seed_words)
        store(words, block, w0 | (w1 << np.uint64(32)))
    for position in range(len(positions)):
        uniforms[position] = uniform(*split(words[position]))


@compiled
def other(symbol, column, step, row_words, seed_words, others):
    """Return the new symbol of a position, drawn from the `others` = K - 1 symbols that differ from `symbol`.
    The random number depends on column, step, row and seed."""
    # Words 0 and 1 of this counter have decided that the position changes; word 2 is independent of them.
    _, _, word, _ = philox(np.uint64(column), np.uint64(step), *row_words, *seed_words)
    choice = _choose(word, others)
    return choice + np.uint64(choice >= symbol)
