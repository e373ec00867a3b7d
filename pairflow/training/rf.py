"""ReFlow (Liu et al. 2023): training on pairs that a teacher's flow generates."""

from pathlib import Path

import torch

from pairflow.config import Rf, SolveSettings
from pairflow.training.fit import TrainingRows
from pairflow.training.model import VelocityModel
from pairflow.training.velocity import VelocityObjective, integrate


def draw_pairs(teacher: VelocityModel, settings: SolveSettings, first: int, rows: int) -> torch.Tensor:
    """Draw pairs (2, rows, d) on the CPU: sources x0 ~ N(0, I), and the ends of the teacher's trajectories.

    A batch is a function of the seed, the method and the number of its first row.
    """
    labels = ("pairs", settings.method, first)
    x0, paths = integrate(teacher, settings.seed, rows, *labels, steps=settings.steps, solver=settings.solver)
    return torch.stack([x0, paths.end])


def objective(
    settings: Rf, model: VelocityModel, rows: TrainingRows, cache: Path | None
) -> VelocityObjective:
    """The loss of the base method on the teacher's pairs x0, x1 (M, ...)."""
    return VelocityObjective(rows.x1, rows.x0, settings.batch_size, model.seed, model.device)
