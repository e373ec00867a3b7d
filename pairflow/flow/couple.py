"""Couplings of sources and data in a batch; `config.BASES` assigns them to methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from pairflow.errors import InputError

Draw = Callable[[int], Tensor]
"""A function of a training iteration's number; it returns row numbers (B,), or sources (B, ...)."""

Rows = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A function of sources (B, N) and their numbers (B,); it returns the data rows (B,) for them."""


class Coupling(ABC):
    """Assigns a data row to each source of a batch; `count` successive batches are coupled together."""

    def __init__(self, count: int = 1):
        self.count = count

    @abstractmethod
    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        """Return a function that assigns to each source of an iteration the number of a data row.

        Args:
            batches: a function from an iteration to the row numbers (B,) of its batch.
            x1: all data (M, ...).
            sources: a function from an iteration to its sources (B, ...).
            labels: the class (M,) of each data row. Sources are assigned within classes only: otherwise the
                sources of a class would no longer follow the distribution that sampling starts from.

        Returns:
            The function from an iteration to the row numbers (B,) that its sources are assigned to.
        """


class Independent(Coupling):
    """Pairs source b of a batch with data row b of the batch: both are drawn independently."""

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        return batches


class Assignment(Coupling):
    """A one-to-one coupling of sources and data rows in a pool, which is `count` successive batches."""

    @abstractmethod
    def order(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        """Return a permutation `order` (P,) int64: the source x0[p] gets x1[order[p]]; both are (P, ...)."""

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        # A function of the iteration's number only, so that a training that resumes computes them again.
        @lru_cache(maxsize=1)
        def assigned(pool: int) -> Sequence[Tensor]:
            iterations = range(pool * self.count, (pool + 1) * self.count)
            rows = torch.cat([batches(number) for number in iterations])
            x0 = torch.cat([sources(number) for number in iterations]).cpu().numpy()
            data, order = x1[rows].cpu().numpy(), np.empty(len(rows), np.int64)
            classes = np.zeros(len(rows)) if labels is None else labels[rows].cpu().numpy()
            for label in np.unique(classes):
                members = np.flatnonzero(classes == label)
                order[members] = members[self.order(x0[members], data[members])]
            return rows[torch.from_numpy(order).to(rows.device)].chunk(self.count)

        def rows(iteration: int) -> Tensor:
            pool, batch = divmod(iteration, self.count)
            return assigned(pool)[batch]

        return rows


class Transport(Assignment):
    """Assigns sources to data rows of a pool at the least total cost.

    The cost is the squared distance of continuous rows (OT-CFM, Tong et al. 2024), or the Hamming distance of
    tokens (Haxholli et al. 2024). Many assignments of tokens cost the same; batches are in random order, so
    no data row is preferred.
    """

    def order(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        return minibatch_ot(x0, x1)


def minibatch_ot(x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
    """Return the permutation `order` (B,) int64 that minimises the sum over b of cost(x0[b], x1[order[b]]).

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


class Semidiscrete(Coupling):
    """Assigns each source to a data row by a semidiscrete coupling.

    `assign` has for each class of data rows (without classes for 0) a function that returns the row number
    (S,) of the data row of each source. It takes the sources (S, ...) and numbers (S,), which select its
    random numbers: each source of a training has another number.
    """

    def __init__(self, assign: Mapping[int, Rows]):
        super().__init__()
        self.assign = assign

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        def rows(iteration: int) -> Tensor:
            x0 = sources(iteration).cpu().numpy()
            # Every source of a training has a number of its own, so that no random number is used twice.
            numbers = iteration * len(x0) + np.arange(len(x0))
            assigned, wanted = np.empty(len(x0), np.int64), np.zeros(len(x0))
            if labels is not None:
                wanted = labels[batches(iteration)].cpu().numpy()
            for label in np.unique(wanted):
                members = wanted == label
                assigned[members] = self.assign[int(label)](x0[members], numbers[members])
            return torch.from_numpy(assigned).to(x1.device)

        return rows


COUPLINGS: dict[str, type[Coupling]] = {
    "independent": Independent,
    "transport": Transport,
}
