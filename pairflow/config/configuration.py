"""The settings to which kinds of data add keys of their own: of experiments, and of samples on demand."""

from typing import TYPE_CHECKING

from pydantic import Field, create_model, model_validator

from pairflow.config.consistency import require_consistency
from pairflow.config.experiment import CommonExperiment
from pairflow.kinds.registry import SETTINGS
from pairflow.settings.check import Name, Settings
from pairflow.settings.sampling import CommonDemand

# The keys that all experiments have come first, then the keys of each kind of data in the order of the list.
_KEYS = [settings.experiment_keys for settings in SETTINGS if settings.experiment_keys.model_fields]


if TYPE_CHECKING:
    Experiment = CommonExperiment
else:
    Experiment = create_model(
        "Experiment",
        __base__=(*reversed(_KEYS), CommonExperiment),  # pydantic collects the fields of the last base first
        __doc__=CommonExperiment.__doc__,
        __validators__={"_is_consistent": model_validator(mode="after")(require_consistency)},
        __module__=__name__,
    )


_DEMANDS = [settings.demand for settings in SETTINGS if settings.demand is not CommonDemand]
if TYPE_CHECKING:
    DemandSettings = CommonDemand
else:
    DemandSettings = create_model(
        "DemandSettings",
        __base__=tuple(dict.fromkeys(_DEMANDS)),
        __doc__=CommonDemand.__doc__,
        __module__=__name__,
    )


class Configuration(Settings):
    """The content of workflow_config.yaml, and what a Snakemake profile adds in its `config`."""

    experiments: dict[Name, Experiment] = Field(min_length=1)
    pair_shards: int = Field(
        1, ge=1, le=10_000, description="Jobs that a pairing is split into; set by a profile."
    )
