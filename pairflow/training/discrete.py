"""The loss of a base model of tokens: on the pairs of a file, or on new sources that a coupling assigns."""

from pairflow.errors import InputError
from pairflow.training.coupled import couple
from pairflow.training.fit import TrainingRows, labels_of
from pairflow.training.model import DiscreteModel
from pairflow.training.objectives import FlowObjective, Objective


def base_objective(model: DiscreteModel, rows: TrainingRows) -> Objective:
    """The loss of a base model. Raises InputError if padding is to be left out and the data have none."""
    training = model.base_training
    if training.ignore_padding and rows.padding is None:
        raise InputError("training: ignore_padding: the data have no padding")
    padding = rows.padding if training.ignore_padding else None
    optimised = (training.batch_size, training.loss, model.seed, model.device)
    rows, coupling = couple(model, rows)
    return FlowObjective(
        rows.x1, rows.x0, model.corruption, *optimised, padding, labels_of(rows, model), coupling
    )
