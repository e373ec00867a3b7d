"""Semidiscrete transport: each new source is assigned to a row of the whole data set."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from pairflow.flow.couple.coupling import Coupling, Draw

Rows = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A function of sources (B, N) and their numbers (B,); it returns the data rows (B,) for them."""


class Semidiscrete(Coupling):
    """Assigns each source to a data row by a semidiscrete coupling. `assign` maps each class to the function
    that assigns its sources; without classes the only key is None."""

    def __init__(self, assign: Mapping[int | None, Rows]):
        super().__init__()
        self.assign = assign

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        def rows(iteration: int) -> Tensor:
            x0 = sources(iteration).cpu().numpy()
            # Every source of a training has a number of its own, so that no random number is used twice.
            numbers = iteration * len(x0) + np.arange(len(x0))
            if labels is None:
                return torch.from_numpy(self.assign[None](x0, numbers)).to(x1.device)
            wanted = labels[batches(iteration)].cpu().numpy()
            assigned = np.empty(len(x0), np.int64)
            for label in np.unique(wanted):
                members = wanted == label
                assigned[members] = self.assign[int(label)](x0[members], numbers[members])
            return torch.from_numpy(assigned).to(x1.device)

        return rows
