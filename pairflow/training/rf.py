"""ReFlow (Liu et al. 2023): pairs that a teacher's flow makes, and training on them."""

from pathlib import Path

import numpy as np
import torch

from pairflow.config import Rf, SolveSettings
from pairflow.training.model import Model
from pairflow.training.velocity import VelocityObjective, walk


def draw_pairs(teacher: Model, settings: SolveSettings, first: int, rows: int) -> torch.Tensor:
    """A batch of pairs (2, rows, d) on the CPU: sources x0 ~ N(0, I), and where the teacher takes them.

    A batch is a function of the seed, the method and the number of its first row.
    """
    labels = ("pairs", settings.method, first)
    x0, paths = walk(teacher, settings.seed, rows, *labels, steps=settings.steps, solver=settings.solver)
    return torch.stack([x0, paths.end])


def objective(
    settings: Rf,
    *,
    x0: np.ndarray,
    x1: np.ndarray,
    corruption: None,
    loss: str,
    seed: int,
    device: torch.device,
    cache: Path | None = None,
    labels: None = None,
) -> VelocityObjective:
    """The base's own loss on the teacher's pairs x0, x1 (M, ...)."""
    return VelocityObjective(x1, x0, settings.batch_size, seed, device)
