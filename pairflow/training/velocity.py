"""Continuous flows: the loss of a velocity model, and its samples. See docs/continuous.md."""

import numpy as np
import torch
from torch import Tensor, nn

from pairflow.artifacts import row_column, token_column, token_dtype
from pairflow.artifacts.tables import from_points
from pairflow.config import FlowSampleSettings
from pairflow.flow.continuous import Trajectories, interpolate, trace, velocity_loss
from pairflow.flow.corruption import in_parts
from pairflow.settings.sampling import EULER
from pairflow.training.model import VelocityModel
from pairflow.training.objectives import BatchLoss, PairObjective, random_generator


class VelocityObjective(PairObjective):
    """The loss of flow matching: the mean of (v_theta(x_t, t) - (x1 - x0))^2 over a batch.

    The mean is over the batch's rows of x1 (M, ...) and over the elements of a row. x_t = (1 - t) x0 + t x1
    for a uniform t, and x0 comes from N(0, I) or from the pairs.
    """

    def batch(self, network: nn.Module, iteration: int) -> BatchLoss:
        generator = self.generator(iteration)
        x0, x1 = self.pairs(self.batches(iteration), generator)
        t = torch.rand(len(x1), generator=generator, device=self.device)
        x_t = interpolate(x0, x1, t)
        return lambda network, rows: velocity_loss(network(x_t[rows], t[rows]), x0[rows], x1[rows]).mean()

    def draw(self, generator: torch.Generator) -> Tensor:
        return torch.randn(self.shape, generator=generator, device=self.device)


@torch.no_grad()
def integrate(
    model: VelocityModel, seed: int, rows: int, *labels: str | int, steps: int, solver: str = EULER
) -> tuple[Tensor, Trajectories]:
    """Return sources (B, d) from N(0, I) and their trajectories to t = 1 along the model's flow, on the CPU.

    B is `rows`. Sources are a function of the seed and the `labels`, the name of the random numbers. So all
    models of the same data, and all numbers of steps, start from the same sources.
    """
    generator = random_generator(model.device, seed, *labels)
    x0 = torch.randn((rows, model.length), generator=generator, device=model.device)

    def part(x: Tensor, t: Tensor) -> Tensor:
        return model.network(x.unflatten(1, model.row_shape), t).flatten(1)

    def velocity(x: Tensor, t: float) -> Tensor:
        return in_parts(part, x, torch.full((len(x),), t, device=x.device))

    paths = trace(velocity, x0, steps, solver)
    return x0.cpu(), Trajectories(*(column.cpu() for column in paths))


def draw_samples(
    model: VelocityModel, settings: FlowSampleSettings, rows: int, trial: int, first: int
) -> np.ndarray:
    """Return a batch of samples (B, d + 2): the tokens of images, or vectors, and two more columns.

    These have the energy and the straightness of the trajectories. B is `rows`, and the random numbers depend
    on the `trial` and on `first`, the number of the batch's first sample. The dtype is float32 for images,
    float64 for vectors.
    """
    labels = ("sample", trial, first)
    _, paths = integrate(model, settings.seed, rows, *labels, steps=settings.nfe, solver=settings.solver)
    end, size = paths.end.numpy(), model.vocabulary_size
    ends = end if size is None else from_points(end, size)
    drawn = np.column_stack([ends, paths.energy, paths.straightness])
    return drawn.astype(np.float64 if size is None else np.float32, copy=False)


def path_columns(drawn: np.ndarray, vocabulary_size: int | None) -> dict[str, object]:
    """Return the columns of a table of samples from `draw_samples`; `vocabulary_size` is None for vectors."""
    values, energy, straightness = np.split(drawn, [-2, -1], axis=1)
    if vocabulary_size is None:
        rows = {"values": row_column(values.astype(np.float32))}
    else:
        rows = {"tokens": token_column(values.astype(token_dtype(vocabulary_size)), vocabulary_size)}
    return {**rows, "energy": energy[:, 0], "straightness": straightness[:, 0]}
