"""A smaller version of an experiment, for a quick try: a share of its work, batch and network."""

from pairflow.config.configuration import Experiment
from pairflow.files import Json

# The settings that are scaled, and their least values in a smaller version.
_FEWEST = {
    "batch_size": 64,
    "iterations": 10,
    "warmup_iterations": 0,
    "validate_every": 50,
    "teacher_every": 1,
}
_FEWEST |= {"training_rows": 20_000, "samples": 64, "count": 1000, "sources": 100}


def scaled(experiment: Experiment, share: float, rows: int) -> Json:
    """Return the settings of `experiment`, as in a file, with a `share` of its iterations, samples, training
    rows, batch and network.

    `rows` is the number of training rows of `experiment`. The methods stay, and so do numbers that are small
    already. Of the seeds only the first is left.
    """
    values = experiment.model_dump(mode="json", exclude_unset=True)
    values["description"] = f"{experiment.description}; a quick try at {100 * share:g} % of its sizes"
    values["network"] = experiment.network.smaller(share).model_dump(mode="json")
    values["scale"], values["seeds"] = "reduced", [experiment.seeds[0]]
    if "parent" in values:
        values["from"] = values.pop("parent")  # as files call it
    if rows > _FEWEST["training_rows"]:
        values["data"].setdefault("training_rows", rows)
    return _scaled(values, share)


def _scaled(values: Json, share: float) -> Json:
    result = {}
    for key, value in values.items():
        if isinstance(value, dict):
            value = _scaled(value, share)
        elif key in _FEWEST and value is not None:
            value = min(value, max(_FEWEST[key], round(value * share)))
        result[key] = value
    return result
