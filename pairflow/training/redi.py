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
    teacher are of `classes_of_pairs`.
    """
    stream = ("pairs", settings.method, first)
    classes = classes_of_pairs(teacher.classes, first, rows) if teacher.classes else None
    return torch.stack(teacher.draw(settings, settings.steps, rows, *stream, classes=classes))


def classes_of_pairs(classes: int, first: int, rows: int) -> torch.Tensor:
    """The labels (rows,) of pairs from number `first` on: each class in turn, for they are quantiles."""
    return torch.arange(first, first + rows) % classes


def objective(settings: Redi, model: DiscreteModel, rows: TrainingRows, cache: Path | None) -> FlowObjective:
    """The base's own loss on the teacher's pairs x0, x1 (M, N), which may have labels."""
    optimised = (settings.batch_size, model.base_training.loss, model.seed, model.device)
    return FlowObjective(rows.x1, rows.x0, model.corruption, *optimised, labels=labels_of(rows, model))
