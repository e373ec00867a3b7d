"""Continuous flows: the loss of a velocity, and the paths along one. See docs/continuous.md."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pairflow.artifacts import row_column, token_column, token_dtype
from pairflow.artifacts.points import from_points
from pairflow.config import FlowSampleSettings
from pairflow.flow.continuous import Trajectories, interpolate, minibatch_ot, solve, trace, velocity_loss
from pairflow.flow.corruption import in_parts
from pairflow.training.model import Model
from pairflow.training.objectives import WHOLE, Batches, Objective, random_generator


class VelocityObjective(Objective):
    """Mean of (v_theta(x_t, t) - (x1 - x0))^2 over the numbers of a batch of x1 (M, ...), t in [0, 1].

    x0 (M, ...) holds a fixed source per row (`pairflow`, or a teacher's pairs); if it is None, sources are
    drawn from N(0, I) in each iteration. With a `pool` they are paired with their data by optimal transport,
    that many rows at a time. Random numbers are drawn for the whole batch, even if the network sees only
    some rows.
    """

    def __init__(
        self,
        x1: np.ndarray,
        x0: np.ndarray | None,
        batch_size: int,
        seed: int,
        device: torch.device,
        pool: int | None = None,
    ):
        self.x1 = torch.tensor(x1, device=device)
        self.x0 = None if x0 is None else torch.tensor(x0, device=device)
        self.seed, self.device = seed, device
        self.shape = (batch_size, *self.x1.shape[1:])
        self.batches: Callable[[int], Tensor] = Batches(len(self.x1), batch_size, seed, device)
        if pool:
            self.batches = Transported(self.batches, self.x1, self._sources, pool // batch_size)

    def __call__(self, network: nn.Module, iteration: int, rows: slice = WHOLE) -> Tensor:
        batch = self.batches(iteration)
        generator = self._generator(iteration)
        x1 = self.x1[batch]
        x0 = self._draw(generator) if self.x0 is None else self.x0[batch]
        t = torch.rand(len(x1), generator=generator, device=self.device)
        x0, x1, t = x0[rows], x1[rows], t[rows]
        return velocity_loss(network(interpolate(x0, x1, t), t), x0, x1).mean()

    def _generator(self, iteration: int) -> torch.Generator:
        return random_generator(self.device, self.seed, "noise", iteration)

    def _draw(self, generator: torch.Generator) -> Tensor:
        return torch.randn(self.shape, generator=generator, device=self.device)

    def _sources(self, iteration: int) -> Tensor:
        return self._draw(self._generator(iteration))


class Transported:
    """Row numbers of a batch by iteration, in the order in which optimal transport gives them to its sources.

    `count` batches at a time share one assignment to `sources(iteration)` (B, ...). Which rows an iteration
    has is a function of its number only, so a training that resumes computes them again.
    """

    def __init__(
        self, batches: Callable[[int], Tensor], x1: Tensor, sources: Callable[[int], Tensor], count: int
    ):
        self.batches, self.x1, self.sources, self.count = batches, x1, sources, count
        self._pool: int | None = None
        self._rows: Sequence[Tensor] = ()

    def __call__(self, iteration: int) -> Tensor:
        """The row numbers (B,) of an iteration's batch."""
        pool, place = divmod(iteration, self.count)
        if pool != self._pool:
            iterations = range(pool * self.count, (pool + 1) * self.count)
            rows = torch.cat([self.batches(number) for number in iterations])
            x0 = torch.cat([self.sources(number) for number in iterations])
            order = minibatch_ot(x0.cpu().numpy(), self.x1[rows].cpu().numpy())
            rows = rows[torch.from_numpy(order).to(rows.device)]
            self._pool, self._rows = pool, rows.chunk(self.count)
        return self._rows[place]


@torch.no_grad()
def walk(
    model: Model, seed: int, rows: int, *labels: str | int, steps: int, solver: str = "euler"
) -> tuple[Tensor, Trajectories]:
    """Sources (B, d) from N(0, I), and the paths on which the model's flow takes them to t = 1, on the CPU.

    They are a function of the seed and the `labels`: every model of the same data, and every number of steps,
    starts from the same sources. The energy and the straightness of the paths of dopri5 are not known: NaN.
    """
    generator = random_generator(model.device, seed, *labels)
    x0 = torch.randn((rows, model.length), generator=generator, device=model.device)
    shape: Sequence[int] = model.shape or [model.length]

    def part(x: Tensor, t: Tensor) -> Tensor:
        return model.network(x.unflatten(1, tuple(shape)), t).flatten(1)

    def velocity(x: Tensor, t: float) -> Tensor:
        return in_parts(part, x, torch.full((len(x),), t, device=x.device))

    if solver == "dopri5":
        unknown = torch.full((rows,), torch.nan, dtype=torch.float64)
        return x0.cpu(), Trajectories(solve(velocity, x0, steps, solver).cpu(), unknown, unknown)
    paths = trace(velocity, x0, steps, solver)
    return x0.cpu(), Trajectories(*(column.cpu() for column in paths))


def follow(model: Model, settings: FlowSampleSettings, rows: int, trial: int, first: int) -> np.ndarray:
    """A batch of a trial's samples (B, d + 2): token rows of images or vectors, and the energy and the
    straightness of their paths as two further columns; float32 for images, float64 for vectors."""
    labels = ("sample", trial, first)
    _, paths = walk(model, settings.seed, rows, *labels, steps=settings.nfe, solver=settings.solver)
    end, size = paths.end.numpy(), model.vocabulary_size
    drawn = np.column_stack(
        [end if size is None else from_points(end, size), paths.energy, paths.straightness]
    )
    return drawn.astype(np.float64 if size is None else np.float32, copy=False)


def path_columns(drawn: np.ndarray, vocabulary_size: int | None) -> dict[str, Any]:
    """The columns of a table of samples that `follow` has drawn; `vocabulary_size` is None for vectors."""
    values, energy, straightness = np.split(drawn, [-2, -1], axis=1)
    if vocabulary_size is None:
        rows = {"values": row_column(values.astype(np.float32))}
    else:
        rows = {"tokens": token_column(values.astype(token_dtype(vocabulary_size)), vocabulary_size)}
    return {**rows, "energy": energy[:, 0], "straightness": straightness[:, 0]}
