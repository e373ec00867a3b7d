"""Settings of vectors."""

from functools import partial
from typing import Literal, get_args

from pydantic import Field, model_validator

from pairflow.limits import MAX_LENGTH
from pairflow.metrics.metric import Metric
from pairflow.metrics.shared import PATH_GROUP, PATHS
from pairflow.settings.check import Seed
from pairflow.settings.fields import DataSettings, OwnFile, TrainingRows
from pairflow.settings.flows import CONTINUOUS

_distance = partial(Metric, best="lowest", against="to training data", real="held-out data", log=True)
_chamfer = partial(
    _distance,
    digits=4,
    description="How far samples are from the data, plus how far the data are from the samples. `chamfer` "
    "takes the first two coordinates, `chamfer_all` takes all.",
    formula="mean over samples of the smallest squared distance to a training vector, plus the mean over "
    "training vectors of the smallest squared distance to a sample",
    unit="the data's, squared",
    better="lower, down to the floor",
    pitfalls="it grows with fewer samples; two coordinates say nothing about the others",
    source="the paper, appendix E, which does not print the formula (`pairflow/metrics/continuous.py`)",
)
METRICS = {
    "chamfer": _chamfer("Chamfer distance", leads_as="the Chamfer distance"),
    "chamfer_all": _chamfer("full Chamfer distance"),
    "w2": _distance(
        "2-Wasserstein distance",
        digits=3,
        description="The exact 2-Wasserstein distance between samples and training vectors, in all "
        "coordinates.",
        formula="square root of the least mean over i of abs(a_i - b_order(i))^2, over all orders of the "
        "training vectors b, with the samples a; at most 1,000 points",
        unit="the data's",
        better="lower, down to the floor (above 0)",
        pitfalls="with few points and many coordinates the floor hides differences",
        source="scipy's linear_sum_assignment (`pairflow/metrics/continuous.py`)",
    ),
    **PATHS,
}


class Vectors(DataSettings):
    """Vectors of d real numbers, for continuous flows."""

    kind = "vectors"
    metrics, groups = METRICS, PATH_GROUP
    flows = (CONTINUOUS.name,)
    paper = ("two_moons",)

    source: Literal["two_moons", "vectors"] = Field(
        description="`two_moons`: a product of d / 2 independent pairs of half-circles, drawn at random; "
        "`vectors`: your own, from `file`."
    )
    file: OwnFile | None = Field(None, description="Your own vectors: .npy with a 2-D array of numbers.")
    dims: int | None = Field(
        None,
        ge=2,
        le=MAX_LENGTH,
        multiple_of=2,
        description="Numbers in a vector (d), an even number; only for two_moons.",
    )
    noise: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Standard deviation of the noise on each coordinate of half-circles of radius 1. "
        "Default: 0.05. Only for two_moons.",
    )
    training_rows: TrainingRows = Field(
        None, description="Training vectors. Default: 50,000 of two_moons, all of your own."
    )
    validation_rows: int | None = Field(
        None,
        ge=1,
        le=10**8,
        description="Held-out vectors. Default: 5,000 of two_moons, a tenth of your own.",
    )
    split_seed: Seed = Field(42, description="Seed of two_moons, or of the random split of your own vectors.")

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Vectors":
        needed, unknown = ("file", ("dims", "noise")) if self.source == "vectors" else ("dims", ("file",))
        if getattr(self, needed) is None:
            raise ValueError(f"{needed}: the source {self.source} needs this key; found none")
        for key in unknown:
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: the source {self.source} has no such key")
        return self


Vectors.names = get_args(Vectors.model_fields["source"].annotation)
