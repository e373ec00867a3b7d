"""Conditional total correlation: how much the positions of x1 still depend on one another, given x0.

The equation and its use are in docs/method.md, "Total correlation". The entropies are plug-in estimates from
the counts over R samples: no estimate exceeds (N - 1) min(log2 R, log2 K), and R samples that all differ give
H(x) = log2 R exactly, whatever the model. At the usual R = 10 the estimate is nearly all bias. Read it only
beside the same estimate for independent rows of the data (`data_total_correlation`), which samples that are
more diverse than data exceed.
"""

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.errors import InputError

_CHUNK = 1 << 22  # tokens that are sorted at once: bounds the memory


def total_correlation(samples: ArrayLike) -> np.ndarray:
    """TC in bits per source state, (S,) float64, of `samples` (S, R, N): R samples of each of them.

    Each source state's value is its own: values of batches, put together, are those of the whole.
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
    """TC in bits per group, (groups,), of `samples` independent draws each from the rows of `tokens` (M, N).

    The draws are with replacement, and a function only of (seed, group).
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
    """Metrics in bits per sample, of a model's TC per source state and of the data's per group.

    - `total_correlation`: mean; `total_correlation_se`: its standard error over the source states.
    - `total_correlation_ceiling`: mean over the data's groups.
    """
    return {
        "total_correlation": float(values.mean()),
        "total_correlation_se": float(values.std(ddof=1) / len(values) ** 0.5),
        "total_correlation_ceiling": float(of_data.mean()),
    }


def _entropy(samples: np.ndarray) -> np.ndarray:
    """Plug-in entropies of the positions of (S, R, N) in bits, summed over them: (S,).

    A symbol that c of R samples have contributes c / R (log2 R - log2 c).
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
