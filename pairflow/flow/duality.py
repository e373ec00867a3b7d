"""Uniform-state diffusion as the argmax of Gaussian diffusion on one-hot symbols (Duo, Sahoo et al. 2025).

A symbol x1 of K, noised to z = a onehot(x1) + s eps with a^2 = sigmoid(-gamma) and s^2 = sigmoid(gamma), has
argmax(z) = x1 with a probability P that depends only on a / s = exp(-gamma / 2), and is uniform over the
other symbols otherwise: uniform-state noise. gamma is the negative log-SNR, larger for more noise. See
docs/method.md, "Discrete Consistency Distillation".
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from scipy.integrate import quad_vec
from scipy.interpolate import PchipInterpolator
from scipy.special import log_ndtr
from torch import Generator, Tensor

from pairflow.arguments import checked_integer
from pairflow.flow.arguments import as_tokens, each_row
from pairflow.flow.losses import Level
from pairflow.limits import MAX_VOCABULARY

LARGEST_GAMMA = 12  # the table and the settings end here
_SPACING = 1 / 128
_REACH = 9.0  # the quadrature ends here: the normal density has 2e-19 beyond it
_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Transformation:
    """The diffusion transformation T of one K: gamma -> alpha, monotone decreasing, in [0, 1].

        T(gamma) = (K P - 1) / (K - 1),   P = integral of phi(x - a/s) Phi(x)^(K-1) dx

    Tabulated for gamma from -12 to 12 every 1/128, each value to 1e-10, with monotone cubics between them:
    the error is below 1e-7 for K from 2 to 65,536. Beyond an end the table holds its last value.
    """

    gamma: np.ndarray
    alpha: np.ndarray

    @classmethod
    def compute(cls, vocabulary_size: int) -> "Transformation":
        gamma = np.linspace(-LARGEST_GAMMA, LARGEST_GAMMA, round(2 * LARGEST_GAMMA / _SPACING) + 1)
        alpha = np.clip(transform(gamma, vocabulary_size), 0.0, 1.0)
        return cls(gamma, np.minimum.accumulate(alpha))  # rounding must not let it rise

    @classmethod
    def from_table(cls, table: pd.DataFrame) -> "Transformation":
        return cls(table["gamma"].to_numpy(), table["alpha"].to_numpy())

    def table(self) -> pd.DataFrame:
        return pd.DataFrame({"gamma": self.gamma, "alpha": self.alpha})

    def __call__(self, gamma: ArrayLike) -> np.ndarray:
        """alpha = T(gamma), float64, of the shape of `gamma`."""
        return self._interpolator(np.clip(gamma, self.gamma[0], self.gamma[-1]))

    @functools.cached_property
    def _interpolator(self) -> PchipInterpolator:
        return PchipInterpolator(self.gamma, self.alpha)


def transform(gamma: ArrayLike, vocabulary_size: int) -> np.ndarray:
    """T at every `gamma` by adaptive quadrature, to 1e-10. Returns float64 in the shape of `gamma`.

    With u = x - a/s, and P = 1/K where a/s = 0 taken off inside the integral, nothing cancels near T = 0:

        T = K / (K - 1) * integral of phi(u) [Phi(u + a/s)^(K-1) - Phi(u)^(K-1)] du
    """
    vocabulary_size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY + 1)
    ratio = np.exp(-np.asarray(gamma, dtype=np.float64) / 2)

    def integrand(u: float) -> np.ndarray:
        gain = _maximum_cdf(u + ratio, vocabulary_size) - _maximum_cdf(u, vocabulary_size)
        return np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) * gain

    value, _ = quad_vec(integrand, -_REACH, _REACH, epsabs=_TOLERANCE, epsrel=0.0, norm="max")
    return vocabulary_size / (vocabulary_size - 1) * value


def _maximum_cdf(x: np.ndarray | float, vocabulary_size: int) -> np.ndarray:
    """Phi(x)^(K-1): the distribution of the maximum of K - 1 normal numbers."""
    return np.exp((vocabulary_size - 1) * log_ndtr(x))


class SharedNoise(NamedTuple):
    """All that argmax(a onehot(x1) + s eps) depends on: it is x1 where a/s > threshold, else `other`.

    `other` is where eps is largest among the symbols that are not x1, and `threshold` is by how much that
    exceeds eps at x1. Both (B, N).
    """

    threshold: Tensor
    other: Tensor

    def state(self, x1: Tensor, gamma: Level) -> Tensor:
        """The symbols (B, N) at the noise levels gamma, (B,) or a number, the same eps at all of them."""
        x1, gamma = as_tokens("x1", x1, self.other.shape), each_row("gamma", gamma, len(x1))
        ratio = torch.exp(-gamma / 2) if isinstance(gamma, Tensor) else math.exp(-gamma / 2)
        return torch.where(ratio > self.threshold, x1, self.other)

    def select(self, rows: slice) -> "SharedNoise":
        """The noise of some rows."""
        return SharedNoise(self.threshold[rows], self.other[rows])


def shared_noise(x1: Tensor, vocabulary_size: int, generator: Generator | None = None) -> SharedNoise:
    """Draw the noise of every position of x1 (B, N), without its K normal numbers.

    The maximum of K - 1 normal numbers is Phi^-1(U^(1/(K-1))), and independent of where it is. With
    q = 1 - U^(1/(K-1)) it is -Phi^-1(q): q keeps its digits where U^(1/(K-1)) is near 1.
    """
    x1 = as_tokens("x1", x1)
    vocabulary_size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY + 1)
    u = torch.rand(x1.shape, dtype=torch.float64, generator=generator, device=x1.device)
    maximum = -torch.special.ndtri(-torch.expm1(u.log() / (vocabulary_size - 1)))
    at_x1 = torch.randn(x1.shape, dtype=torch.float64, generator=generator, device=x1.device)
    other = torch.randint(vocabulary_size - 1, x1.shape, generator=generator, device=x1.device)
    return SharedNoise(maximum - at_x1, other + (other >= x1))
