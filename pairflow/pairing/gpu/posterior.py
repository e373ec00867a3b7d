"""Draws data rows for sources by the law of `pairing.posterior` on a torch device, with the CPU's results.

The device computes the distances of rows and sources and counts the cells, in whole numbers only. Weights and
draws are computed by the code of the CPU engine, so no rounding depends on the device.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from pairflow.pairing import posterior
from pairflow.pairing.cpu.posterior import Law, cells_of_counts
from pairflow.pairing.rule import TOLERANCE

_CELLS = {"cpu": 1 << 22, "cuda": 1 << 27}  # in memory at once: sources times rows, or times cells
_ONE_HOT = 1 << 13  # largest N K for which matches are computed as a matrix product


class TorchPosterior:
    """Draws data rows d_m for sources z by torch from P(m | z), proportional to exp((g_m - h(z, d_m)) / tau).

    `tokens` (M, N) are the data rows, h is the Hamming distance, and `tau` the temperature. `buckets` (M,)
    are the numbers of units tau / 4 by which the rows' potentials g_m are below the greatest.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        buckets: np.ndarray,
        vocabulary_size: int,
        tau: float,
        device: torch.device,
    ):
        self.rows = posterior.sorted_by_bucket(tokens, buckets)
        self.device, self.size = device, vocabulary_size
        self.law = Law(posterior.nearness(tau, tokens.shape[1]), posterior.heights(int(buckets.max()) + 1))
        self.levels = _levels_that_matter(self.law, len(tokens))
        self.buckets = torch.from_numpy(buckets[self.rows].astype(np.int64)).to(device)
        self.tokens = self._tensor(tokens[self.rows])
        self.product = tokens.shape[1] * vocabulary_size <= _ONE_HOT
        if self.product:
            self.tokens = self._one_hot(self.tokens).T.contiguous()

    def draw(
        self,
        sources: np.ndarray,
        numbers: np.ndarray,
        seed: int,
        draws: int = 1,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `draws` data rows for each of `sources` (S, N), with the same results as the CPU engine.

        Returns the numbers (S, draws) int32 of the rows, and the entropies (S,) of P(m | z) in nats.
        `numbers` (S,) are the numbers of the sources, which select their random numbers. `threads` is
        ignored, because torch and Numba have their own settings.
        """
        rows, entropies = np.empty((len(sources), draws), np.int32), np.empty(len(sources))
        numbers = np.asarray(numbers, np.uint64)
        size = max(1, _CELLS[self.device.type] // max(len(self.rows), self.levels * len(self.law.high)))
        for first in range(0, len(sources), size):
            part = slice(first, first + size)
            cells, counts = self._count_cells(sources[part])
            drawn = np.empty((len(counts), draws, 3), np.int64)
            weights, totals = np.empty(counts.shape[1:], np.int64), np.empty(counts.shape[1], np.int64)
            sizes = len(self.rows), np.uint64(seed), numbers[part], weights, totals
            cells_of_counts(self.law, counts, *sizes, drawn, entropies[part])
            rows[part] = self.rows[self._find_rows(cells, drawn)]
        return rows, entropies

    def _count_cells(self, sources: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """Return the number of each row's cell (S, M), and how many rows each cell has (S, L, B).

        A cell has the rows of one level (distance) and bucket (potential); its number is level * B + bucket.
        Rows beyond the levels that matter share one additional cell, which is not counted.
        """
        matches = self._matches(self._tensor(sources))
        levels = (matches.amax(dim=1, keepdim=True) - matches).clamp_max(self.levels)
        last = self.levels * len(self.law.high)
        cells = (levels * len(self.law.high) + self.buckets).clamp_max(last)
        counts = torch.zeros(len(sources), last + 1, dtype=torch.int64, device=self.device)
        # A GPU adds in any order, which does not matter for whole numbers.
        counts.scatter_add_(1, cells, torch.ones_like(cells))
        return cells, counts[:, :last].reshape(len(sources), self.levels, -1).cpu().numpy()

    def _matches(self, sources: Tensor) -> Tensor:
        """Return in how many positions each source (S, N) equals each data row, (S, M) int64."""
        if self.product:
            return (self._one_hot(sources) @ self.tokens).long()
        matches = torch.zeros(len(sources), len(self.tokens), dtype=torch.int64, device=self.device)
        for position in range(sources.shape[1]):
            matches += sources[:, position, None] == self.tokens[:, position]
        return matches

    def _find_rows(self, cells: Tensor, drawn: np.ndarray) -> np.ndarray:
        """Return where the drawn rows (S, D) are among the sorted data rows.

        `cells` (S, M) has the number of each row's cell, and `drawn` (S, D, 3) the level, the bucket and the
        number in this cell of each draw.
        """
        wanted = torch.from_numpy(drawn[:, :, 0] * len(self.law.high) + drawn[:, :, 1]).to(self.device)
        numbers = torch.from_numpy(drawn[:, :, 2].astype(np.int32)).to(self.device)
        indices = torch.empty_like(wanted)
        for draw in range(wanted.shape[1]):
            one = slice(draw, draw + 1)
            so_far = (cells == wanted[:, one]).cumsum(dim=1, dtype=torch.int32)
            indices[:, one] = torch.searchsorted(so_far, numbers[:, one] + 1)
        return indices.cpu().numpy()

    def _tensor(self, tokens: np.ndarray) -> Tensor:
        return torch.from_numpy(tokens.astype(np.int64)).to(self.device)

    def _one_hot(self, tokens: Tensor) -> Tensor:
        """Return one-hot tokens (S, N K), whose products are exact: float16 has all integers up to 2,048."""
        half = self.device.type == "cuda" and tokens.shape[1] <= 2048
        return one_hot(tokens, self.size).flatten(1).to(torch.float16 if half else torch.float32)


def _levels_that_matter(law: Law, rows: int) -> int:
    """Return the largest number of levels that point 3 of the law uses, for any source."""
    # The nearest level has a row, whose weight is at least that of the last bucket.
    least = TOLERANCE * law.high[-1]
    return int(np.argmax(np.r_[rows * law.near[1:] <= least, True])) + 1
