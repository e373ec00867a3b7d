"""The NELBO of a single row, an upper bound on its -log p, by Monte Carlo, with its standard error.

The share of data kept is kappa = 1 - (1 - w)^2 for uniform w, because the integrand varies most near the
data. w is stratified, with two draws per stratum, whose difference estimates the variance. A few strata near
the data have most of the variance, so the standard error is itself uncertain, and intervals use Student's t.
See docs/method.md, "Noising and losses".
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from pairflow.flow.corruption import Corruption, Network, interpolate
from pairflow.flow.schedule import DIFFUSION
from pairflow.training.objectives import random_generator

LEAST_NOISE = 1e-5  # 1 - kappa: at kappa = 1 both bounds divide by 0
LARGEST_W = 1 - LEAST_NOISE**0.5
MOST_BOUNDS, DRAWS = 400, 16  # of held-out rows under all classes, and noised copies for each


class RowBound(NamedTuple):
    """The bound of a row in nats, its standard error, and the degrees of freedom of that error."""

    value: float
    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the bound, by Student's t."""
        half = float(stdtrit(self.freedom, 0.975)) * self.error
        return self.value - half, self.value + half


@torch.no_grad()
def bound_row(
    network: Network,
    corruption: Corruption,
    prediction: str,
    row: np.ndarray,
    *,
    draws: int,
    seed: int,
    padding: int | None = None,
    device: torch.device | None = None,
) -> RowBound:
    """Return the NELBO of a row (N,), an upper bound on its -log p, from `draws` noised copies.

    `draws` is even. The noise is a function of the seed and the row, so the result does not depend on other
    rows. Positions with the symbol `padding`, if any, are left out of the sum. `prediction` is what the
    `network` predicts: "leave_one_out" or "posterior".
    """
    device = device or torch.device("cpu")
    # Drawn on the CPU, so that the noise is the same on every device.
    generator = random_generator(torch.device("cpu"), seed, "bound", *map(int, row))
    w = stratified_pairs(draws // 2, generator)  # (D,)
    alpha, slope = 1 - (1 - w) ** 2, 2 * (1 - w)  # slope = d alpha / d w
    x1 = torch.from_numpy(row.astype(np.int64)).expand(draws, -1)  # (D, N)
    x_t = interpolate(corruption.source(tuple(x1.shape), generator), x1, alpha, generator)
    shown = alpha.clamp(min=DIFFUSION.kappa(0.0)).float()  # networks are not trained for less kappa
    counts = torch.ones_like(x1) if padding is None else x1 != padding
    size = corruption.rows_at_once(len(row))
    parts = (tensor.to(device).split(size) for tensor in (x1, x_t, alpha, slope, shown))
    bounds = []
    for part_x1, part_x_t, part_alpha, part_slope, kappa in zip(*parts, strict=True):
        log_p = corruption.log_probabilities(network, part_x_t, kappa).double()  # (B, N, K)
        bounds.append(corruption.bound(log_p, prediction, part_x1, part_x_t, part_alpha, part_slope).cpu())
    # An integral over w is the mean at uniform w, times the length of the interval.
    values = LARGEST_W * (torch.cat(bounds) * counts).sum(-1).view(2, -1)  # (2, D / 2)
    squares = (values[0] - values[1]).square()  # (D / 2,)
    # Welch-Satterthwaite: degrees of freedom of a sum of variances with one degree of freedom each.
    freedom = squares.sum().square() / squares.square().sum() if squares.any() else draws / 2
    return RowBound(float(values.mean()), float(squares.sum().sqrt() / draws), float(freedom))


def compare_classes(
    network: Network, corruption: Corruption, rows: np.ndarray, labels: np.ndarray, classes: int, **more: Any
) -> dict[str, float]:
    """Measure how often rows are likelier under their own class than under any other, by `bound_row`.

    Args:
        network: a conditional denoiser.
        corruption: the noise.
        rows: token rows (V, N), of which some are taken at equal distances, for at most MOST_BOUNDS bounds.
        labels: the classes (V,) of the rows; `classes` for none.
        classes: the number of classes.
        more: arguments of `bound_row`. All bounds of a row have the same noise.

    Returns:
        `likelier_rows`, the number of rows; `likelier_in_class`, the share of rows whose bound on -log p is
        least under their own class, where equal bounds count in part; and `likelier_by_chance`, that share
        of a network that ignores the class. Empty if no row has a class.
    """
    labelled = np.flatnonzero(labels < classes)
    chosen = labelled[:: max(1, -(-len(labelled) * classes // MOST_BOUNDS))]
    if not len(chosen):
        return {}
    given = [
        partial(network, label=torch.tensor(label, device=more.get("device"))) for label in range(classes)
    ]
    bounds = np.array(
        [
            [bound_row(each, corruption, row=row, draws=DRAWS, **more).value for each in given]
            for row in rows[chosen]
        ]
    )  # (V, classes)
    least = bounds == bounds.min(axis=1, keepdims=True)
    shares = least[np.arange(len(chosen)), labels[chosen]] / least.sum(axis=1)
    by_chance = {"likelier_by_chance": 1 / classes, "likelier_rows": float(len(chosen))}
    return {"likelier_in_class": float(shares.mean()), **by_chance}


def stratified_pairs(strata: int, generator: torch.Generator) -> Tensor:
    """Draw two uniform numbers w in each of `strata` equal parts of [0, LARGEST_W].

    Returns (2 strata,) float64; entries n and strata + n are from part n.
    """
    u = torch.rand((2, strata), generator=generator, dtype=torch.float64)
    return (LARGEST_W * (torch.arange(strata) + u) / strata).flatten()
