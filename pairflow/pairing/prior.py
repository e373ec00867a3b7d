"""The law of the sources whose symbols are as frequent as in the data, position by position.

See docs/method.md, "Noise by frequency".
"""

import numpy as np

from pairflow.pairing.cpu.block import WORDS
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.numbers import draw, split

SHARE = 0.99  # of the data's frequencies in the law; the rest is uniform, so that no symbol is impossible


def frequencies(tokens: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Return pi (N, K) float64: 0.99 times the share of each symbol at each position, plus 0.01 / K.

    `tokens` (M, N) are the training rows, `vocabulary_size` is K.
    """
    counts = [np.bincount(column, minlength=vocabulary_size) for column in tokens.T]
    return SHARE * np.array(counts) / len(tokens) + (1 - SHARE) / vocabulary_size


def draw_rows(seed: int, rows: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """Draw rows of noise (B, N) by `pi` (N, K), with the uniform numbers of `rng.draws` in step 0.

    `rows` (B,) are the numbers of the rows. The dtype is the smallest unsigned integer that holds K - 1.
    """
    cumulative = pi.cumsum(axis=1)
    cumulative[:, -1] = 1.0
    tokens = np.empty((len(rows), len(pi)), np.min_scalar_type(pi.shape[1] - 1))
    positions = np.arange(-(-len(pi) // WORDS) * WORDS, dtype=np.uint64)
    numbers, scratch = np.asarray(rows, np.uint64), (np.empty_like(positions), np.empty(len(positions)))
    _fill(numbers, np.uint64(seed), cumulative, positions, *scratch, tokens)
    return tokens


@compiled
def _fill(rows, seed, cumulative, positions, words, uniforms, tokens):
    """Fills `tokens` (B, N): a uniform number u draws the first symbol with a cumulative probability > u."""
    seed_words = split(seed)
    for number in range(len(rows)):
        draw(positions, np.uint64(0), split(rows[number]), seed_words, words, uniforms)
        for position in range(tokens.shape[1]):
            tokens[number, position] = np.searchsorted(cumulative[position], uniforms[position], side="right")
