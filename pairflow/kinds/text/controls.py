"""Trivial baselines of text ("controls"), drawn from the training text without a model.

Each is good in one respect only: `shuffled` has the right symbols, but in random order, `chain` has the right
trigrams, and `snippet` is real text, but always the same.
"""

from collections.abc import Callable

import numpy as np

Control = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def draw_shuffled(training: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """(count, N): tokens drawn independently from all tokens of the training rows (M, N)."""
    return random.choice(training[training >= 0], (count, training.shape[1]))


def draw_chain(training: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """(count, N): each token is drawn from the tokens that follow the last two in the training rows (M, N).

    A training row gives the first two tokens. If nothing follows two tokens, any third token of a
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
    """(count, N): one training row, repeated."""
    return np.repeat(random.choice(training, 1), count, axis=0)


CONTROLS: dict[str, Control] = {"shuffled": draw_shuffled, "chain": draw_chain, "snippet": draw_snippet}
