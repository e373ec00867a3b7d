"""Distances between samples of points, and metrics of trajectories. See docs/continuous.md, "Metrics"."""

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from pairflow.arrays import checked_points
from pairflow.errors import InputError

TREE_DIMENSIONS = 8  # in more dimensions a tree visits nearly all pairs and is slower
_CHUNK = 1 << 22  # distances in memory at once


def chamfer(a: ArrayLike, b: ArrayLike) -> float:
    """Return the Chamfer distance: mean over a of min over b of |a - b|^2, plus mean over b of min over a.

    Distances are squared, as in PairFlow, appendix E.

    Args:
        a: a sample (A, d).
        b: a sample (B, d).

    Raises:
        InputError: if these are not finite numbers in such shapes.
    """
    a, b = _samples(a, b)
    from_a, from_b = _nearest_squares(a, b)
    return float(from_a.mean() + from_b.mean())


def wasserstein(a: ArrayLike, b: ArrayLike) -> float:
    """Return the exact 2-Wasserstein distance of two samples of equal size.

    It is the root of the least mean |a_i - b_order(i)|^2 over all orders of b. The time is O(n^3): half a
    second for n = 2,000.

    Args:
        a: a sample (n, d).
        b: a sample (n, d).

    Raises:
        InputError: if these are not finite numbers in such shapes.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    a, b = _samples(a, b)
    if len(a) != len(b):
        raise InputError(f"a, b: expected samples of one size, found {len(a)} and {len(b)} rows")
    costs = cdist(a, b, "sqeuclidean")
    return float(np.sqrt(costs[linear_sum_assignment(costs)].mean()))


def _nearest_squares(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared distances (A,) from each row of `a` to the nearest of `b`, and (B,) from b to a.

    Trees find the nearest rows in few dimensions, else all pairs are compared.
    """
    from scipy.spatial import KDTree

    if a.shape[1] <= TREE_DIMENSIONS:
        return KDTree(b).query(a)[0] ** 2, KDTree(a).query(b)[0] ** 2
    # |a|^2 - 2 a.b + |b|^2 needs one matrix product only. Centring limits its cancellation.
    centre = b.mean(axis=0)
    a, b = a - centre, b - centre
    b_squares, from_b, from_a = (b * b).sum(axis=1), np.full(len(b), np.inf), []
    size = max(1, _CHUNK // len(b))
    for chunk in np.split(a, range(size, len(a), size)):
        squares = (chunk * chunk).sum(axis=1)[:, None] - 2 * chunk @ b.T + b_squares
        from_a.append(squares.min(axis=1))
        from_b = np.minimum(from_b, squares.min(axis=0))
    return np.maximum(np.concatenate(from_a), 0), np.maximum(from_b, 0)


def _samples(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both samples as float64 (A, d), (B, d); InputError unless they are finite numbers of one d."""
    a, b = (checked_points(points, name).astype(np.float64) for points, name in ((a, "a"), (b, "b")))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"a, b: expected two arrays (rows, d) of one d, found shapes {a.shape} and {b.shape}"
        )
    return a, b


def average_paths(table: pa.Table, rows: np.ndarray) -> list[dict[str, object]]:
    """Return metric rows of the trajectories of some samples: dicts with the keys `metric` and `value`.

    v is the velocity along a trajectory of the model's solver, from noise x0 to the end x1.

    - `path_energy`: the mean of the integral over t of |v|^2. It is at least the mean of |x1 - x0|^2, with
      equality for straight trajectories.
    - `straightness`: the mean of the integral over t of |v - (x1 - x0)|^2, the S of rectified flow (Liu et
      al. 2023). It is 0 for straight trajectories, where one Euler step is exact.

    Args:
        table: a table of samples. Without the columns `energy` and `straightness` the list is empty.
        rows: the row numbers (B,) of the samples.
    """
    columns = {"path_energy": "energy", "straightness": "straightness"}
    return [
        {"metric": metric, "value": float(table[column].to_numpy()[rows].mean())}
        for metric, column in columns.items()
        if column in table.column_names
    ]
