"""Training on pairs of a teacher: ReDi (Yoo et al. 2025), and ReFlow for vectors (Liu et al. 2023)."""

from dataclasses import replace

import torch

from pairflow.config import Redi, Rf, SolveSettings, TeachSettings
from pairflow.training.fit import TrainingRows, labels_of
from pairflow.training.model import DiscreteModel, VelocityModel
from pairflow.training.objectives import FlowObjective
from pairflow.training.velocity import VelocityObjective, integrate


def draw_pairs(teacher: DiscreteModel, settings: TeachSettings, first: int, rows: int) -> torch.Tensor:
    """Draw a batch of ReDi's pairs: sources x0 from the noise, and the teacher's samples x1 from them.

    A batch is a function of the seed, the method and the number of its first row.

    Args:
        teacher: the model. A conditional one samples the classes of each property in turn: all classes have
            equal shares, also named ones, whose shares of the data may differ.
        settings: the sampler, its number of steps and the seed.
        first: the number of the first pair.
        rows: the number of pairs.

    Returns:
        x0 and x1, (2, rows, N) on the CPU.
    """
    labels = torch.tensor(teacher.condition.spread(first, rows)) if teacher.condition else None
    plan = replace(teacher.plan(settings, settings.steps, rows), labels=labels)
    return torch.stack(teacher.draw(plan, rows, settings.seed, "pairs", settings.method, first))


def solve_pairs(teacher: VelocityModel, settings: SolveSettings, first: int, rows: int) -> torch.Tensor:
    """Draw a batch of ReFlow's pairs (2, rows, d) on the CPU: sources, and where the teacher takes them.

    Sources are from N(0, I). A batch is a function of the seed and the method in `settings`, and of `first`,
    the number of its first pair.
    """
    labels = ("pairs", settings.method, first)
    x0, paths = integrate(teacher, settings.seed, rows, *labels, steps=settings.steps, solver=settings.solver)
    return torch.stack([x0, paths.end])


def redi(settings: Redi, model: DiscreteModel, rows: TrainingRows) -> FlowObjective:
    """Return the objective of ReDi: the loss of the base method, on the teacher's pairs x0, x1 (M, N).

    `rows` has the pairs.
    """
    optimised = (settings.batch_size, model.base_training.loss, model.seed, model.device)
    return FlowObjective(rows.x1, rows.x0, model.corruption, *optimised, labels=labels_of(rows, model))


def rf(settings: Rf, model: VelocityModel, rows: TrainingRows) -> VelocityObjective:
    """Return the objective of ReFlow: the loss of flow matching, on the teacher's pairs x0, x1 (M, ...).

    `rows` has the pairs.
    """
    return VelocityObjective(rows.x1, rows.x0, settings.batch_size, model.seed, model.device)
