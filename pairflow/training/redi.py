"""ReDi, rectified discrete flow (Yoo et al. 2025): pairs that a teacher makes, and training on them."""

from pathlib import Path

import torch

from pairflow.config import Redi, TeachSettings
from pairflow.training.fit import TrainingRows, labels_of
from pairflow.training.model import DiscreteModel
from pairflow.training.objectives import FlowObjective


def draw_pairs(teacher: DiscreteModel, settings: TeachSettings, first: int, rows: int) -> torch.Tensor:
    """A batch of pairs (2, rows, N) on the CPU: uniform sources x0 and the teacher's samples x1 of them.

    A batch is a function of the seed, the method and the number of its first row. Those of a conditional
    teacher are spread over its labels, each class in turn, for classes are quantiles.
    """
    stream = ("pairs", settings.method, first)
    labels = torch.tensor(teacher.condition.spread(first, rows)) if teacher.condition else None
    return torch.stack(teacher.draw(settings, settings.steps, rows, *stream, label=labels))


def objective(settings: Redi, model: DiscreteModel, rows: TrainingRows, cache: Path | None) -> FlowObjective:
    """The base's own loss on the teacher's pairs x0, x1 (M, N), which may have labels."""
    optimised = (settings.batch_size, model.base_training.loss, model.seed, model.device)
    return FlowObjective(rows.x1, rows.x0, model.corruption, *optimised, labels=labels_of(rows, model))
