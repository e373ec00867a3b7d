"""The loss of a base model, by the flow that its training belongs to."""

from importlib import import_module

from pairflow.config import LOSSES
from pairflow.training.fit import TrainingRows
from pairflow.training.model import Model
from pairflow.training.objectives import Objective


def base_objective(model: Model, rows: TrainingRows) -> Objective:
    """What the training of a base model minimises; InputError if the rows are not for it."""
    flow = LOSSES[model.base_training.loss]
    return import_module(f"pairflow.training.{flow.training}").base_objective(model, rows)
