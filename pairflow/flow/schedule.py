"""The clock of the flow: noise at t = 0, data at t = 1 (diffusion papers write alpha for kappa).

Everything here is plain arithmetic, so it takes floats, NumPy arrays and torch tensors alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflow.errors import InputError


@dataclass(frozen=True)
class Linear:
    """kappa(t) = start + (1 - start) t: the share of positions that show the data at time t.

    `start` is kappa(0), in [0, 1).
    """

    start: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.start < 1:
            raise InputError(f"start: expected a number in [0, 1), found {self.start!r}")

    def kappa(self, t: Any) -> Any:
        """kappa(t), in the type and shape of `t` (in [0, 1])."""
        return self.start + (1 - self.start) * t

    def derivative(self, t: Any) -> float:
        """d kappa / dt = 1 - start, which does not depend on `t`."""
        return 1 - self.start


PAIRING = Linear(0.0)
"""kappa = t: the clock of the closed forms and of Algorithm 1."""

DIFFUSION = Linear(1e-3)
"""kappa = 1e-3 + 0.999 t: the clock of training and sampling, on which nothing diverges at t = 0."""


def gamma(kappa: Any, vocabulary_size: int) -> Any:
    """gamma = (1 + (K-1) kappa) / (1 - kappa): how much likelier the data's symbol is seen than any other.

    PairFlow, the closed-form forward velocity; docs/method.md, "Closed-form fields". Infinite at kappa = 1.
    It has the shape of `kappa`.
    """
    if isinstance(kappa, int | float):
        kappa = np.float64(kappa)  # a Python float would raise at 1 instead of giving infinity
    with np.errstate(divide="ignore"):
        return (1 + (vocabulary_size - 1) * kappa) / (1 - kappa)
