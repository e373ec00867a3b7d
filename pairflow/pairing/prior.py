"""The law of the sources whose symbols are as frequent as in the data, position by position.

See docs/method.md, "Noise by frequency".
"""

import numpy as np

NOISES = ("uniform", "frequencies")  # the laws of sources by name
SHARE = 0.99  # of the data's frequencies in the law; the rest is uniform, so that no symbol is impossible


def frequencies(tokens: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Return pi (N, K) float64: 0.99 times the share of each symbol at each position, plus 0.01 / K.

    `tokens` (M, N) are the training rows, `vocabulary_size` is K.
    """
    counts = [np.bincount(column, minlength=vocabulary_size) for column in tokens.T]
    return SHARE * np.array(counts) / len(tokens) + (1 - SHARE) / vocabulary_size
