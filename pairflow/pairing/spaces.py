"""The noise, the distance and the law P(m | z) of semidiscrete transport, for token rows and for points."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.arrays import checked_points, checked_tokens
from pairflow.errors import InputError
from pairflow.pairing.cpu.numbers import tokens_by_frequency, uniform_tokens
from pairflow.pairing.cpu.posterior import Posterior
from pairflow.pairing.posterior import STEP, UNITS

if TYPE_CHECKING:
    import torch

_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}  # in memory at once: sources times points


class Space(ABC):
    """The data (M, ...) that sources (rows of noise) are assigned to, with their noise and distance."""

    def __init__(self, data: np.ndarray):
        self.data = data
        self.length = data[0].size

    @abstractmethod
    def sources(self, seed: int, numbers: np.ndarray) -> np.ndarray:
        """Draw the sources (S, N) with the numbers `numbers` (S,), which select their random numbers."""

    @abstractmethod
    def checked(self, sources: ArrayLike) -> np.ndarray:
        """Return a user's sources as an array (S, N). Raise InputError if they do not fit the data."""

    @abstractmethod
    def law(self, buckets: np.ndarray, tau: float) -> Any:
        """Return an object that draws data rows for sources from P(m | z), as `Posterior.draw` does.

        `buckets` (M,) are the units (tau / 4) by which each row's potential is below the greatest; `tau` is
        the temperature.
        """

    @abstractmethod
    def distances(self, sources: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the distances (S,) between sources (S, N) and the data rows with the numbers `rows` (S,)."""

    def require_length(self, sources: np.ndarray) -> np.ndarray:
        if sources.shape[1] != self.length:
            raise InputError(f"sources: expected {self.length} positions, found {sources.shape[1]}")
        return sources


class TokenSpace(Space):
    """Token rows (M, N), their noise, and Hamming distances, computed by Numba if `device` is None.

    Sources have the probabilities `pi` (N, K) of noise by frequency, or are uniform if that is None.
    """

    def __init__(
        self,
        data: np.ndarray,
        vocabulary_size: int,
        device: "torch.device | None" = None,
        pi: np.ndarray | None = None,
    ):
        super().__init__(data)
        self.vocabulary_size, self.device, self.pi = vocabulary_size, device, pi

    def sources(self, seed: int, numbers: np.ndarray) -> np.ndarray:
        if self.pi is None:
            drawn = uniform_tokens(seed, numbers, self.length, self.vocabulary_size)
        else:
            drawn = tokens_by_frequency(seed, numbers, self.pi)
        return drawn.astype(self.data.dtype, copy=False)

    def checked(self, sources: ArrayLike) -> np.ndarray:
        return self.require_length(checked_tokens(sources, self.vocabulary_size, "sources"))

    def law(self, buckets: np.ndarray, tau: float) -> Any:
        if self.device is None:
            return Posterior(self.data, buckets, self.vocabulary_size, tau)
        from pairflow.pairing.gpu.posterior import TorchPosterior

        return TorchPosterior(self.data, buckets, self.vocabulary_size, tau, self.device)

    def distances(self, sources: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (self.data[rows] != sources).sum(axis=1)


class PointSpace(Space):
    """Points (M, ...) of real numbers, sources from N(0, I), and squared distances."""

    def __init__(self, data: np.ndarray, device: "torch.device | None"):
        super().__init__(data)
        self.flat, self.device = data.reshape(len(data), -1).astype(np.float32, copy=False), device

    def sources(self, seed: int, numbers: np.ndarray) -> np.ndarray:
        return rng.normals(seed, numbers, self.length)

    def checked(self, sources: ArrayLike) -> np.ndarray:
        sources = checked_points(sources, "sources")
        return self.require_length(sources.reshape(len(sources), -1).astype(np.float32, copy=False))

    def law(self, buckets: np.ndarray, tau: float) -> "PointPosterior":
        return PointPosterior(self._centred, buckets, tau, self.device)

    def distances(self, sources: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.square(self.flat[rows] - sources, dtype=np.float64).sum(axis=1)

    @cached_property
    def _centred(self) -> np.ndarray:
        return (self.flat - self.flat.mean(axis=0, dtype=np.float64)).astype(np.float32)


def space_of(
    data: np.ndarray, vocabulary_size: int | None, device: "torch.device", pi: np.ndarray | None = None
) -> Space:
    """Return a TokenSpace for integers, else a PointSpace; `device` (torch) computes the law P(m | z).

    On a CPU, Numba computes the law of token rows instead, because it is faster.
    """
    if np.issubdtype(data.dtype, np.integer):
        assert vocabulary_size is not None
        return TokenSpace(data, vocabulary_size, None if device.type == "cpu" else device, pi)
    return PointSpace(data, device)


class PointPosterior:
    """Draws points d_m (M, d) float32 by P(m | z), proportional to exp((g_m - |z - d_m|^2 / 2) / tau).

    `buckets` (M,) are the units (tau / 4) by which each potential g_m is below the greatest, apart from the
    guess that follows. Shifting all points, or adding a number to all logits, does not change the law. So the
    logits are z.d_m / tau + a_m - buckets_m / UNITS, where a_m is an initial guess that the buckets correct.
    The guess would balance the rows if all z.d_m were independent normal numbers. With s = |d_m| / tau, the
    mean of exp(z.d_m / tau) over M sources is then exp(s^2 / 2) if s <= sqrt(2 log M); beyond that the
    largest term dominates, exp(s sqrt(2 log M)) / M (the random energy model). a_m is minus the logarithm of
    this mean.
    """

    def __init__(self, points: np.ndarray, buckets: np.ndarray, tau: float, device: "torch.device | None"):
        import torch

        spread = np.linalg.norm(points.astype(np.float64), axis=1) / tau
        most = np.sqrt(2 * np.log(len(points)))
        guess = np.where(spread <= most, -(spread**2) / 2, most**2 / 2 - spread * most)
        offsets = guess - buckets / UNITS
        self.points = torch.from_numpy(points).to(device)
        self.offsets = torch.from_numpy(offsets - offsets.max()).float().to(device)
        self.tau = tau

    def draw(
        self,
        sources: np.ndarray,
        numbers: np.ndarray,
        seed: int,
        draws: int = 1,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `draws` points for each of `sources` (S, d).

        Returns the row numbers (S, draws) int64 of the points, and the entropies (S,) of P(m | z) in nats.
        `numbers` (S,) are the numbers of the sources, which select their random numbers. `threads` is
        ignored, because torch has its own number of threads.
        """
        import torch

        device = self.points.device
        rows, entropies = np.empty((len(sources), draws), np.int64), np.empty(len(sources))
        size = max(1, _LOGITS[device.type] // len(self.points))
        for first in range(0, len(sources), size):
            part = slice(first, first + size)
            z = torch.from_numpy(np.ascontiguousarray(sources[part])).to(device)
            logits = torch.addmm(self.offsets, z, self.points.T, alpha=1 / self.tau)
            logs = torch.log_softmax(logits, dim=1)
            shares = logs.exp()
            # Clamped, because 0 * -inf would be NaN.
            entropies[part] = -(shares * logs.clamp_min(-100)).sum(dim=1, dtype=torch.float64).cpu()
            # Near 1 a float32 sum cannot grow by less than 3e-8, and points of small shares would be lost.
            sums = shares.cumsum(dim=1, dtype=torch.float64)
            uniforms = torch.from_numpy(rng.draws(seed, numbers[part], STEP, draws)[0]).to(device)
            picked = torch.searchsorted(sums, uniforms * sums[:, -1:], right=True)
            rows[part] = picked.clamp_max(len(self.points) - 1).cpu()
        return rows, entropies
