"""The schedule kappa(t) of the flow: noise at t = 0, data at t = 1. Diffusion papers write alpha for kappa.

These functions take floats, NumPy arrays and torch tensors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflow.errors import InputError


@dataclass(frozen=True)
class Linear:
    """kappa(t) = start + (1 - start) t: the probability that a position holds its data symbol at time t.

    Args:
        start: kappa(0), in [0, 1).

    Raises:
        InputError: if `start` is out of range.
    """

    start: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.start < 1:
            raise InputError(f"start: expected a number in [0, 1), found {self.start!r}")

    def kappa(self, t: Any) -> Any:
        """Return the schedule at times `t` in [0, 1]: a number or an array, as `t` is."""
        return self.start + (1 - self.start) * t

    def derivative(self, t: object) -> float:
        """Return d kappa / dt = 1 - start, a number; it does not depend on `t`."""
        return 1 - self.start


PAIRING = Linear(0.0)
"""kappa = t: the schedule of the closed forms and of Algorithm 1."""

DIFFUSION = Linear(1e-3)
"""kappa = 1e-3 + 0.999 t: the schedule of training and sampling; -log kappa stays finite at t = 0."""


def gamma(kappa: Any, vocabulary_size: int) -> Any:
    """Return (1 + (K-1) kappa) / (1 - kappa), the likelihood ratio of the data's symbol to any other symbol.

    PairFlow, the closed-form forward velocity; docs/method.md, "Closed-form fields".

    Args:
        kappa: a number or an array, in [0, 1].
        vocabulary_size: K, the number of symbols.

    Returns:
        gamma, float64 in the shape of `kappa`; infinite at kappa = 1.
    """
    if isinstance(kappa, int | float):
        kappa = np.float64(kappa)  # a Python float would raise at 1 instead of giving infinity
    with np.errstate(divide="ignore"):
        return (1 + (vocabulary_size - 1) * kappa) / (1 - kappa)
