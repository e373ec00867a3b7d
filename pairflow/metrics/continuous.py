"""Distances between samples of points, and the paths that lead there. See docs/continuous.md, "Metrics"."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflow.arrays import checked_points
from pairflow.errors import InputError

TREE_DIMENSIONS = 8  # a tree in more dimensions looks at nearly all pairs, and slower
_CHUNK = 1 << 22  # distances held at a time


def chamfer(a: ArrayLike, b: ArrayLike) -> float:
    """mean over a of min over b of |a - b|^2, plus mean over b of min over a of |a - b|^2.

    `a` (A, d) and `b` (B, d) are samples. Distances are squared (PairFlow, appendix E).
    """
    a, b = _samples(a, b)
    from_a, from_b = _nearest_squares(a, b)
    return float(from_a.mean() + from_b.mean())


def wasserstein(a: ArrayLike, b: ArrayLike) -> float:
    """The 2-Wasserstein distance of two samples (n, d) of one size, exactly.

    It is the root of the smallest mean of |a_i - b_order(i)|^2 over all orders of b. The time grows with n^3:
    half a second for n = 2,000.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    a, b = _samples(a, b)
    if len(a) != len(b):
        raise InputError(f"a, b: expected samples of one size, found {len(a)} and {len(b)} rows")
    costs = cdist(a, b, "sqeuclidean")
    return float(np.sqrt(costs[linear_sum_assignment(costs)].mean()))


def _nearest_squares(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """min over b of |a - b|^2 (A,), and min over a (B,): by trees in few dimensions, else by all pairs."""
    from scipy.spatial import KDTree

    if a.shape[1] <= TREE_DIMENSIONS:
        return KDTree(b).query(a)[0] ** 2, KDTree(a).query(b)[0] ** 2
    centre = b.mean(axis=0)  # keeps the digits of |a|^2 - 2 a.b + |b|^2, which one matrix product gives
    a, b = a - centre, b - centre
    b_squares, from_b, from_a = (b * b).sum(axis=1), np.full(len(b), np.inf), []
    size = max(1, _CHUNK // len(b))
    for chunk in np.split(a, range(size, len(a), size)):
        squares = (chunk * chunk).sum(axis=1)[:, None] - 2 * chunk @ b.T + b_squares
        from_a.append(squares.min(axis=1))
        from_b = np.minimum(from_b, squares.min(axis=0))
    return np.maximum(np.concatenate(from_a), 0), np.maximum(from_b, 0)


def _samples(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Two samples as rows of float64 numbers."""
    a, b = (checked_points(points, name).astype(np.float64) for points, name in ((a, "a"), (b, "b")))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"a, b: expected two arrays (rows, d) of one d, found shapes {a.shape} and {b.shape}"
        )
    return a, b


def average_paths(table: Any, rows: np.ndarray) -> list[dict[str, Any]]:
    """Metric rows of the paths of some samples of a table; none if it does not hold them.

    - `path_energy`: E of the integral over t of |v|^2 along the paths of a model's own solver. It is at least
      E |x1 - x0|^2, and equal to it for straight paths.
    - `straightness`: E of the integral over t of |v - (x1 - x0)|^2, x1 the path's own end: 0 if straight. It
      is the S of rectified flow (Liu et al. 2023); one Euler step is then exact.
    """
    columns = {"path_energy": "energy", "straightness": "straightness"}
    return [
        {"metric": metric, "value": float(table[column].to_numpy()[rows].mean())}
        for metric, column in columns.items()
        if column in table.column_names
    ]
