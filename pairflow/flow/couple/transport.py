"""Minibatch optimal transport between sources and data, continuous or tokens."""

import numpy as np

from pairflow.errors import InputError
from pairflow.flow.couple.coupling import Assignment


class Transport(Assignment):
    """Assigns sources to data rows of a pool at the least total cost.

    The cost is the squared distance of continuous rows (OT-CFM, Tong et al. 2024), or the Hamming distance of
    tokens (Haxholli et al. 2024). Many assignments of tokens cost the same; batches are in random order, so
    no data row is preferred.
    """

    def order(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        return minibatch_ot(x0, x1)


def minibatch_ot(x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
    """Return the permutation (B,) int64 that minimises the sum over b of cost(x0[b], x1[order[b]]).

    `x0` and `x1` are (B, ...). The cost is the squared distance, or the Hamming distance between integers.
    The solution is exact and takes 8 B^2 bytes and O(B^3) time. Raises InputError unless both are finite and
    have one shape.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    flat0, flat1 = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (x0, x1))
    if flat0.shape != flat1.shape:
        raise InputError(f"x1: expected shape {tuple(np.shape(x0))}, found {tuple(np.shape(x1))}")
    tokens = all(np.issubdtype(np.asarray(x).dtype, np.integer) for x in (x0, x1))
    # `cdist` divides Hamming distances by N, which does not change the best order.
    costs = cdist(flat0, flat1, "hamming" if tokens else "sqeuclidean")
    if not np.isfinite(costs).all():
        raise InputError("x0 and x1: expected finite numbers, whose squared distances are finite")
    return linear_sum_assignment(costs)[1]
