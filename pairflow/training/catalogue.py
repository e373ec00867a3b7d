"""Which objective a base model minimises, and each distillation."""

from collections.abc import Callable

from pairflow.training import dcd, discrete, redi, rf, velocity
from pairflow.training.fit import TrainingRows
from pairflow.training.model import DiscreteModel, Model, VelocityModel
from pairflow.training.objectives import Objective

# The function `objective` (see `training`) of each distillation of `config.DISTILLATIONS`.
OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "dcd": dcd.objective,
    "redi": redi.objective,
    "rf": rf.objective,
}


def base_objective(model: Model, rows: TrainingRows) -> Objective:
    """The objective of a base model, by its flow; InputError if the rows do not fit."""
    if isinstance(model, DiscreteModel):
        return discrete.base_objective(model, rows)
    assert isinstance(model, VelocityModel)
    return velocity.base_objective(model, rows)
