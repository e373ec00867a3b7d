"""What a coupling inside a batch is, and the assignment of sources to data within a pool of batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

Draw = Callable[[int], Tensor]
"""Row numbers (B,), or sources (B, ...), as a function of the iteration."""


class Coupling(ABC):
    """Which data each source of a batch goes to, `count` batches at a time."""

    def __init__(self, count: int = 1):
        self.count = count

    @abstractmethod
    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        """The row numbers of each batch of the data x1 (M, ...), in the order of the batch's sources.

        Rows with `labels` (M,) only change places within their class. Otherwise the sources of a class would
        differ from those that its samples start from.
        """


class Assignment(Coupling):
    """A coupling by an `order` of the data of `count` batches, which the sources of these batches share."""

    @abstractmethod
    def order(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        """The places (P,) int64 in x1 (P, ...) of the data that the sources x0 (P, ...) go to, each once."""

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        return _Assigned(self, batches, x1, sources, labels)


class _Assigned:
    """Row numbers by iteration, in the order of an assignment.

    Which rows an iteration has is a function of its number only, so a training that resumes computes them
    again.
    """

    def __init__(self, coupling: Assignment, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None):
        self.coupling, self.batches, self.x1, self.sources = coupling, batches, x1, sources
        self.labels = labels
        self._pool: int | None = None
        self._rows: Sequence[Tensor] = ()

    def __call__(self, iteration: int) -> Tensor:
        """The row numbers (B,) of an iteration's batch."""
        count = self.coupling.count
        pool, place = divmod(iteration, count)
        if pool != self._pool:
            iterations = range(pool * count, (pool + 1) * count)
            rows = torch.cat([self.batches(number) for number in iterations])
            x0 = torch.cat([self.sources(number) for number in iterations])
            order = self._order(x0.cpu().numpy(), rows)
            self._pool, self._rows = pool, rows[torch.from_numpy(order).to(rows.device)].chunk(count)
        return self._rows[place]

    def _order(self, x0: np.ndarray, rows: Tensor) -> np.ndarray:
        """The places in `rows` (P,) of the data that the sources x0 (P, ...) go to, class by class."""
        x1 = self.x1[rows].cpu().numpy()
        if self.labels is None:
            return self.coupling.order(x0, x1)
        labels, order = self.labels[rows].cpu().numpy(), np.empty(len(rows), np.int64)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            order[members] = members[self.coupling.order(x0[members], x1[members])]
        return order
