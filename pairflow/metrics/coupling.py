"""Measures a coupling of sources x0 and data x1: distances of pairs, and how far x0 is from noise."""

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.errors import InputError

_COMPARED = 2 * 10**10  # the most tokens to compare for nearest rows, which takes some seconds


def hamming_histogram(x0: ArrayLike, x1: ArrayLike) -> np.ndarray:
    """Return the number of pairs at each Hamming distance 0..N.

    Args:
        x0: source tokens (M, N).
        x1: data tokens (M, N).

    Returns:
        (N+1,) int64.

    Raises:
        InputError: if the shapes differ or are not 2-D.
    """
    x0, x1 = np.asarray(x0), np.asarray(x1)
    if x0.ndim != 2 or x0.shape != x1.shape:
        raise InputError(f"x0, x1: expected one shape (rows, positions), found {x0.shape} and {x1.shape}")
    distance = np.count_nonzero(x0 != x1, axis=1)
    return np.bincount(distance, minlength=x0.shape[1] + 1)


def symbol_frequencies(x0: ArrayLike, vocabulary_size: int) -> np.ndarray:
    """Return the share of each symbol in `x0` (M, N): (K,) float64, about 1/K for uniform sources."""
    x0 = np.asarray(x0)
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for column in x0.T:  # by column, because bincount converts its input to 64 bits
        counts += np.bincount(column, minlength=vocabulary_size)
    return counts / x0.size


def diagnose(
    x0: ArrayLike, x1: ArrayLike, vocabulary_size: int, pi: np.ndarray | None = None
) -> dict[str, float]:
    """Return metrics of a coupling of source tokens `x0` and data tokens `x1`, both (M, N).

    - `hamming_mean`, `hamming_std`: the mean and standard deviation of the Hamming distance of x0 and x1, the
      number of positions where they differ. `hamming_independent`: the mean N (K-1) / K for uniform noise x0
      that is independent of x1, with K symbols.
    - `hamming_nearest`: the mean distance of uniform noise rows from the nearest data row.
    - `hamming_share_<d>` for d = 0..N: the share of pairs at distance d.
    - `symbol_deviation`: the total variation of x0's symbol frequencies from 1/K each.
      `symbol_deviation_expected`: its mean for M N independent uniform symbols, sqrt((K-1) / (2 pi M N)).

    With noise by frequency, its probabilities `pi` (N, K) take the place of 1/K and of uniform noise.
    """
    histogram = hamming_histogram(x0, x1)
    length = len(histogram) - 1
    share = histogram / histogram.sum()
    mean = float(share @ np.arange(length + 1))
    variance = float(share @ (np.arange(length + 1) - mean) ** 2)
    frequencies, tokens = symbol_frequencies(x0, vocabulary_size), np.asarray(x1)
    noise, independent = 1 / vocabulary_size, length * (vocabulary_size - 1) / vocabulary_size
    expected = ((vocabulary_size - 1) / (2 * np.pi * tokens.size)) ** 0.5
    if pi is not None:
        noise, independent = pi.mean(axis=0), length - float(pi[np.arange(length), tokens].sum(axis=1).mean())
        expected = float(np.sqrt((pi * (1 - pi)).mean(axis=0) / (2 * np.pi * tokens.size)).sum())
    return {
        "hamming_mean": mean,
        "hamming_std": variance**0.5,
        "hamming_independent": independent,
        "hamming_nearest": nearest_distance(x1, vocabulary_size, pi),
        "symbol_deviation": float(np.abs(frequencies - noise).sum() / 2),
        "symbol_deviation_expected": expected,
        **{f"hamming_share_{distance}": float(value) for distance, value in enumerate(share)},
    }


def nearest_distance(x1: ArrayLike, vocabulary_size: int, pi: np.ndarray | None = None) -> float:
    """Return the mean Hamming distance, in positions, of noise rows from the nearest row of `x1` (M, N).

    The noise is uniform, or has the probabilities `pi` (N, K). No coupling of such noise with these rows has
    a lower mean distance. The estimate uses 256 noise rows, or fewer (at least 16) if `x1` has more than 8 *
    10^7 tokens.
    """
    rows = np.asarray(x1)
    numbers = np.arange(np.clip(_COMPARED // rows.size, 16, 256))
    seed = rng.stream_seed("nearest")
    sources = rng.uniform_tokens(seed, numbers, rows.shape[1], vocabulary_size)
    if pi is not None:
        uniforms = rng.draws(seed, numbers, 0, rows.shape[1])[0]
        columns = zip(pi.cumsum(axis=1)[:, :-1], uniforms.T, strict=True)
        sources = np.stack([np.searchsorted(*column, side="right") for column in columns], axis=1)
    return float(np.mean([np.count_nonzero(rows != source, axis=1).min() for source in sources]))


def diagnose_points(
    x0: np.ndarray, x1: np.ndarray, target: np.ndarray | None = None, moved: np.ndarray | None = None
) -> dict[str, float]:
    """Return metrics of a coupling of sources `x0` ~ N(0, I) and data or samples `x1`, both (M, d).

    - `squared_distance`: the mean of |x1 - x0|^2. `squared_distance_independent`: the same for sources that
      are independent of x1: d + the mean of |x1|^2.
    - `reached`: the share of data points at which a trajectory ends. `target` (M,) has the row number of the
      data point of each trajectory.
    - `moved`: the mean of `moved` (M,), the distances from trajectories' ends to their data points.

    The last two are measured only if both `target` and `moved` are given.
    """
    squares = np.square(x1, dtype=np.float64).sum(axis=1).mean()
    values = {
        "squared_distance": float(np.square(x1 - x0, dtype=np.float64).sum(axis=1).mean()),
        "squared_distance_independent": float(x0.shape[1] + squares),
    }
    if target is not None and moved is not None:
        values |= {
            "reached": len(np.unique(target)) / len(target),
            "moved": float(moved.mean(dtype=np.float64)),
        }
    return values
