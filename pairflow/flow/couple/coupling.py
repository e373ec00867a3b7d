"""The interface of couplings inside a batch, and assignments of sources to data within a pool of batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

Draw = Callable[[int], Tensor]
"""A function of a training iteration's number; it returns row numbers (B,), or sources (B, ...)."""


class Coupling(ABC):
    """Assigns a data row to each source of a batch. Batches are coupled in pools of `count`."""

    def __init__(self, count: int = 1):
        self.count = count

    @abstractmethod
    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        """Return a function that gives the data rows of an iteration, in the order of its sources.

        Args:
            batches: gives the row numbers (B,) of an iteration's batch.
            x1: all data (M, ...).
            sources: gives the sources (B, ...) of an iteration.
            labels: the class (M,) of each data row. Sources are assigned within classes only: otherwise the
                sources of a class would no longer follow the distribution that sampling starts from.

        Returns:
            The function from an iteration to the row numbers (B,) that its sources are assigned to.
        """


class Assignment(Coupling):
    """A one-to-one coupling of the sources and the data in a pool of `count` batches."""

    @abstractmethod
    def order(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        """Return a permutation `order` (P,) int64: the source x0[p] gets x1[order[p]]; both are (P, ...)."""

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        return _Assigned(self, batches, x1, sources, labels)


class _Assigned:
    """Gives the row numbers (B,) of an iteration's batch, after an assignment within its pool.

    They are a function of the iteration's number only, so a resumed training run computes them again.
    """

    def __init__(self, coupling: Assignment, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None):
        self.coupling, self.batches, self.x1, self.sources = coupling, batches, x1, sources
        self.labels = labels
        self._pool: int | None = None
        self._rows: Sequence[Tensor] = ()

    def __call__(self, iteration: int) -> Tensor:
        """Return the row numbers (B,) that the sources of an iteration are assigned to."""
        count = self.coupling.count
        pool, batch = divmod(iteration, count)
        if pool != self._pool:
            iterations = range(pool * count, (pool + 1) * count)
            rows = torch.cat([self.batches(number) for number in iterations])
            x0 = torch.cat([self.sources(number) for number in iterations])
            order = self._order(x0.cpu().numpy(), rows)
            self._pool, self._rows = pool, rows[torch.from_numpy(order).to(rows.device)].chunk(count)
        return self._rows[batch]

    def _order(self, x0: np.ndarray, rows: Tensor) -> np.ndarray:
        """Return a permutation (P,) that assigns `rows` (P,) to sources x0 (P, ...), class by class."""
        x1 = self.x1[rows].cpu().numpy()
        if self.labels is None:
            return self.coupling.order(x0, x1)
        labels, order = self.labels[rows].cpu().numpy(), np.empty(len(rows), np.int64)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            order[members] = members[self.coupling.order(x0[members], x1[members])]
        return order
