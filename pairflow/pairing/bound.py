"""How near uniform sources (rows of noise) can be to their data rows, whatever the coupling."""

import numpy as np
from scipy.special import xlog1py, xlogy

# From this share of the independent distance on, a coupling is called nearly independent.
NEARLY = 0.99


def independent_distance(length: int, vocabulary_size: int) -> float:
    """Return the mean Hamming distance of a row and an independent uniform source, N (K-1) / K positions."""
    return length * (vocabulary_size - 1) / vocabulary_size


def least_distance(rows: int, length: int, vocabulary_size: int) -> float:
    """Return a lower bound on the mean Hamming distance between uniform sources and data, for any coupling.

    A source has at most log M nats of information about its row. By the rate-distortion function of uniform
    symbols (Cover and Thomas, Elements of Information Theory, section 10.3) the distance is then at least N
    D, where log K - H_b(D) - D log(K-1) = log(M) / N and H_b is the binary entropy.

    Args:
        rows: M, the number of data rows.
        length: N, the positions of a row.
        vocabulary_size: K, the number of symbols.

    Returns:
        The bound, in positions.
    """
    from scipy.optimize import brentq  # slow to import, and every pairing imports this module

    nats = np.log(rows) / length
    if nats >= np.log(vocabulary_size):
        return 0.0

    def excess(share: float) -> float:
        """Return the nats per position that a `share` of differing positions needs, minus those available."""
        # xlogy is 0 at the share 0, where brentq begins; 0 * log(0) would be NaN there.
        entropy = -xlogy(share, share) - xlog1py(1 - share, -share)
        return float(np.log(vocabulary_size) - entropy - share * np.log(vocabulary_size - 1) - nats)

    independent = independent_distance(1, vocabulary_size)
    return length * (brentq(excess, 0.0, independent) if rows > 1 else independent)
