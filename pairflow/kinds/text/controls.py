"""Trivial baselines of text ("controls"), drawn from the training text without a model.

Each is good in only one respect: `shuffled` has the right symbols, but in random order, `chain` has the right
trigrams, and `snippet` is real text, but always the same.
"""

from collections.abc import Callable

import numpy as np

Control = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def draw_shuffled(training: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Draw rows (count, N) whose tokens are drawn independently from all tokens of training rows (M, N)."""
    return random.choice(training[training >= 0], (count, training.shape[1]))


def draw_chain(training: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Draw rows (count, N) of a chain: each token is one that follows the last two in training rows (M, N).

    The first two tokens come from a training row. If nothing follows two tokens, the third token of any
    trigram is drawn.
    """
    length = training.shape[1]
    rows = np.empty((count, length), training.dtype)
    rows[:, :2] = random.choice(training, count)[:, :2]
    if length < 3:
        return rows
    triples = np.lib.stride_tricks.sliding_window_view(training, 3, axis=1).reshape(-1, 3)
    triples = triples[(triples >= 0).all(axis=1)]
    symbols = int(training.max()) + 1
    codes = triples[:, 0].astype(np.int64) * symbols + triples[:, 1]
    order = np.argsort(codes, kind="stable")
    codes, following = codes[order], triples[order, 2]
    for position in range(2, length):
        context = rows[:, position - 2].astype(np.int64) * symbols + rows[:, position - 1]
        low, high = (np.searchsorted(codes, context, side) for side in ("left", "right"))
        low, high = np.where(low < high, low, 0), np.where(low < high, high, len(codes))
        rows[:, position] = following[random.integers(low, high)]
    return rows


def draw_snippet(training: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Draw one training row and repeat it: (count, N)."""
    return np.repeat(random.choice(training, 1), count, axis=0)


CONTROLS: dict[str, Control] = {"shuffled": draw_shuffled, "chain": draw_chain, "snippet": draw_snippet}
