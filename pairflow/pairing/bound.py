"""How near a coupling can bring uniform sources to data: the rate-distortion bound."""

import numpy as np
from scipy.special import xlog1py, xlogy

NEARLY = 0.99  # of the distance of independent sources: a coupling is then nearly independent, too


def independent_distance(length: int, vocabulary_size: int) -> float:
    """The mean Hamming distance of a row from an independent uniform source, N (K-1) / K positions."""
    return length * (vocabulary_size - 1) / vocabulary_size


def least_distance(rows: int, length: int, vocabulary_size: int) -> float:
    """A mean Hamming distance, in positions, that no coupling of uniform sources with data can fall below.

    A source knows at most log M nats about its row. The rate-distortion function of uniform symbols says how
    near that brings the two (Cover and Thomas, Elements of Information Theory, section 10.3): N D positions
    with log K - H_b(D) - D log(K-1) = log(M) / N, where H_b is the binary entropy.

    Args:
        rows: M, the number of data rows.
        length: N, the positions of a row.
        vocabulary_size: K, the number of symbols.
    """
    from scipy.optimize import brentq  # slow to import, and every pairing imports this module

    nats = np.log(rows) / length
    if nats >= np.log(vocabulary_size):
        return 0.0

    def spare(share: float) -> float:
        """Nats a symbol that a source at this share of differing positions must know, less those it can."""
        entropy = -xlogy(share, share) - xlog1py(1 - share, -share)
        return float(np.log(vocabulary_size) - entropy - share * np.log(vocabulary_size - 1) - nats)

    independent = independent_distance(1, vocabulary_size)
    return length * (brentq(spare, 0.0, independent) if rows > 1 else independent)
