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

LARGEST_GAMMA = 12  # the range of the table and of the settings
_SPACING = 1 / 128
_REACH = 9.0  # limits of the quadrature: a standard normal exceeds 9 with probability 1e-19
_TOLERANCE = 1e-10  # absolute error of the quadrature


@dataclass(frozen=True, eq=False)
class Transformation:
    """The table of T, from a level gamma of Gaussian noise to alpha, the share of data that is kept.

        T(gamma) = (K P - 1) / (K - 1),   P = integral of phi(x - a/s) Phi(x)^(K-1) dx

    with a/s = exp(-gamma / 2), and the density phi and distribution function Phi of a standard normal number.
    P is the probability that the argmax of a noised one-hot symbol is still the symbol. The table has gamma
    from -12 to 12 in steps of 1/128, accurate to 1e-10; it is interpolated by monotone cubics, with an error
    of less than 1e-7 for K from 2 to 65,536. Outside of the table T is constant.
    """

    gamma: np.ndarray
    alpha: np.ndarray

    @classmethod
    def compute(cls, vocabulary_size: int) -> "Transformation":
        """Tabulate T for K = `vocabulary_size` symbols."""
        gamma = np.linspace(-LARGEST_GAMMA, LARGEST_GAMMA, round(2 * LARGEST_GAMMA / _SPACING) + 1)
        alpha = np.clip(transform(gamma, vocabulary_size), 0.0, 1.0)
        return cls(gamma, np.minimum.accumulate(alpha))  # rounding must not let it rise

    def __call__(self, gamma: ArrayLike) -> np.ndarray:
        """Return alpha = T(gamma), float64 in the shape of `gamma`."""
        return self._interpolator(np.clip(gamma, self.gamma[0], self.gamma[-1]))

    @functools.cached_property
    def _interpolator(self) -> PchipInterpolator:
        return PchipInterpolator(self.gamma, self.alpha)


def transform(gamma: ArrayLike, vocabulary_size: int) -> np.ndarray:
    """Compute T(gamma) of `Transformation`, the share of data kept at a noise level, to within 1e-10.

    P = 1/K at a/s = 0 is subtracted inside the integral, so that no digits cancel near T = 0. In terms of u =
    x - a/s, with a/s = exp(-gamma / 2):

        T = K / (K - 1) * integral of phi(u) [Phi(u + a/s)^(K-1) - Phi(u)^(K-1)] du

    phi and Phi are the density and the distribution function of a standard normal number.

    Args:
        gamma: negative log-SNR, a number or an array.
        vocabulary_size: K, the number of symbols.

    Returns:
        T, float64 in the shape of `gamma`.

    Raises:
        InputError: if K is out of range.
    """
    vocabulary_size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY + 1)
    ratio = np.exp(-np.asarray(gamma, dtype=np.float64) / 2)

    def integrand(u: float) -> np.ndarray:
        gain = _maximum_cdf(u + ratio, vocabulary_size) - _maximum_cdf(u, vocabulary_size)
        return np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) * gain

    value, _ = quad_vec(integrand, -_REACH, _REACH, epsabs=_TOLERANCE, epsrel=0.0, norm="max")
    return vocabulary_size / (vocabulary_size - 1) * value


def _maximum_cdf(x: np.ndarray | float, vocabulary_size: int) -> np.ndarray:
    """Return Phi(x)^(K-1), the cumulative distribution of the maximum of K - 1 standard normal numbers."""
    return np.exp((vocabulary_size - 1) * log_ndtr(x))


class SharedNoise(NamedTuple):
    """The Gaussian noise of token rows, as far as it decides the noised symbols.

    A symbol x1, noised to a onehot(x1) + s eps with standard normal eps, becomes the argmax. This is x1 where
    a/s > `threshold`, else `other`: the symbol with the largest eps except x1. `threshold` is that eps minus
    the eps at x1. Both are (B, N).
    """

    threshold: Tensor
    other: Tensor

    def state(self, x1: Tensor, gamma: Level) -> Tensor:
        """Return the noised symbols (B, N) at levels `gamma`, (B,) or a number, always with the same eps."""
        x1, gamma = as_tokens("x1", x1, self.other.shape), each_row("gamma", gamma, len(x1))
        ratio = torch.exp(-gamma / 2) if isinstance(gamma, Tensor) else math.exp(-gamma / 2)
        return torch.where(ratio > self.threshold, x1, self.other)

    def select(self, rows: slice) -> "SharedNoise":
        """Return the noise of a slice of the B rows."""
        return SharedNoise(self.threshold[rows], self.other[rows])


def shared_noise(x1: Tensor, vocabulary_size: int, generator: Generator | None = None) -> SharedNoise:
    """Draw Gaussian noise for every token of x1, reduced to what decides the noised symbol at any level.

    The K normal numbers of a token are not drawn. The maximum of K - 1 of them is Phi^-1(U^(1/(K-1))), and
    its symbol is independent of its value. It is computed as -Phi^-1(q) with q = 1 - U^(1/(K-1)), which keeps
    its digits where q is near 0.

    Args:
        x1: data tokens (B, N).
        vocabulary_size: K, the number of symbols.
        generator: random numbers, on the device of x1.

    Raises:
        InputError: if x1 is not (B, N) integers, or K is out of range.
    """
    x1 = as_tokens("x1", x1)
    vocabulary_size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY + 1)
    # One generator makes the next three tensors: another order would change every model of DCD.
    u = torch.rand(x1.shape, dtype=torch.float64, generator=generator, device=x1.device)
    maximum = -torch.special.ndtri(-torch.expm1(u.log() / (vocabulary_size - 1)))
    at_x1 = torch.randn(x1.shape, dtype=torch.float64, generator=generator, device=x1.device)
    other = torch.randint(vocabulary_size - 1, x1.shape, generator=generator, device=x1.device)
    # One of K - 1 numbers, raised by 1 from x1 on: uniform over all symbols except x1.
    return SharedNoise(maximum - at_x1, other + (other >= x1))
