"""Conditional total correlation: how much the N positions of a sample x1 depend on one another, given x0.

It is the sum of the entropies of the positions, minus the entropy of whole rows: see docs/method.md, "Total
correlation". Entropies are estimated from the counts of symbols, or of rows, among R samples of one x0. So no
estimate exceeds (N - 1) min(log2 R, log2 K) for K symbols. At the usual R = 10 it is nearly all bias: compare
it only with the same estimate for independent data rows (`data_total_correlation`). Samples that are more
diverse than the data get a greater value than these.
"""

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.errors import InputError

_CHUNK = 1 << 22  # tokens in memory at once


def total_correlation(samples: ArrayLike) -> np.ndarray:
    """Return the total correlation between the N positions of samples, for each source state.

    Args:
        samples: integers (S, R, N): R samples from each of S source states.

    Returns:
        (S,) float64, in bits. The values of a source state do not depend on other source states.

    Raises:
        InputError: for another shape or dtype.
    """
    samples = np.asarray(samples)
    if samples.ndim != 3 or samples.dtype.kind not in "iu" or 0 in samples.shape[1:]:
        kind = f"{samples.dtype} {samples.shape}"
        raise InputError(f"samples: expected integers (states, samples, positions), found {kind}")
    rows = np.ascontiguousarray(samples).reshape(-1, samples.shape[2])
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    numbers = np.unique(whole, return_inverse=True)[1]  # equal where rows are
    return _entropy(samples) - _entropy(numbers.reshape(*samples.shape[:2], 1))


def data_total_correlation(tokens: ArrayLike, samples: int, groups: int, seed: int) -> np.ndarray:
    """Return the total correlation between the N positions of rows that are drawn at random from the data.

    Reports compare it with that of samples which start from one source. It is estimated several times, each
    time from a group of R rows.

    Args:
        tokens: the data (M, N).
        samples: R, rows per group, drawn with replacement.
        groups: the number of groups.
        seed: the draws are a function of (seed, group).

    Returns:
        (groups,) float64, in bits.
    """
    tokens = np.asarray(tokens)
    stream = rng.stream_seed(seed, "correlation of the data")
    size = max(1, _CHUNK // (samples * tokens.shape[1]))
    values = [np.empty(0)]
    for first in range(0, groups, size):
        rows = rng.uniform_tokens(stream, np.arange(first, min(first + size, groups)), samples, len(tokens))
        values.append(total_correlation(tokens[rows]))
    return np.concatenate(values)


def describe(values: np.ndarray, of_data: np.ndarray) -> dict[str, float]:
    """Return metrics of a model's total correlations, `values` (S,) by source state, and the data's, in bits.

    - `total_correlation`: the mean of `values`, and `total_correlation_se`: its standard error over the
      source states.
    - `total_correlation_ceiling`: the mean of `of_data` (groups,), one for each group of data rows.
    """
    return {
        "total_correlation": float(values.mean()),
        "total_correlation_se": float(values.std(ddof=1) / len(values) ** 0.5),
        "total_correlation_ceiling": float(of_data.mean()),
    }


def _entropy(samples: np.ndarray) -> np.ndarray:
    """Return the sum over positions of the entropies in bits of `samples` (S, R, N), from counts: (S,).

    A symbol in c of R samples contributes c / R (log2 R - log2 c).
    """
    groups, count, length = samples.shape
    ordered = np.sort(np.swapaxes(samples, 1, 2), axis=-1)  # (S, N, R)
    begins = np.ones(ordered.shape, dtype=bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=begins[..., 1:])
    first = np.flatnonzero(begins)  # of each run of equal symbols
    runs = np.diff(first, append=begins.size)
    counts = np.arange(1, count + 1)
    bits = np.concatenate([[0.0], counts / count * np.log2(count / counts)])
    return np.bincount(first // (length * count), weights=bits[runs], minlength=groups)
