"""The objectives that base models and distillations minimise."""

from collections.abc import Callable

from pairflow.errors import InputError
from pairflow.training import dcd, reflow, velocity
from pairflow.training.coupled import couple
from pairflow.training.fit import TrainingRows, labels_of
from pairflow.training.model import DiscreteModel, Model, VelocityModel
from pairflow.training.objectives import FlowObjective, Objective

# The function `objective` (see `training`) of each distillation of `config.DISTILLATIONS`.
OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "dcd": dcd.objective,
    "redi": reflow.redi,
    "rf": reflow.rf,
}


def base_objective(model: Model, rows: TrainingRows) -> Objective:
    """Return the loss of a base model, on the pairs of a file or on new sources that a coupling assigns.
    Raises InputError if the rows do not fit, or if padding is to be left out and the data have none."""
    training = model.base_training
    if isinstance(model, DiscreteModel) and training.ignore_padding and rows.padding is None:
        raise InputError("training: ignore_padding: the data have no padding")
    rows, coupling = couple(model, rows)
    if isinstance(model, VelocityModel):
        optimised = (training.batch_size, model.seed, model.device)
        return velocity.VelocityObjective(rows.x1, rows.x0, *optimised, coupling)
    assert isinstance(model, DiscreteModel)
    how = (training.batch_size, training.loss, model.seed, model.device)
    padding = rows.padding if training.ignore_padding else None
    return FlowObjective(rows.x1, rows.x0, model.corruption, *how, padding, labels_of(rows, model), coupling)
