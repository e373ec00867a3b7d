"""What the report of a finished experiment has gathered."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pairflow.artifacts import METRIC_COLUMNS, digest, read_provenance, read_table
from pairflow.config import Experiment, check
from pairflow.errors import InputError


class Results(NamedTuple):
    """The experiment that it was made with, its metric rows and timings, and the report's provenance."""

    experiment: Experiment
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: dict


def results_of(root: Path) -> Results:
    """Of the folder of an experiment; InputError unless a report of this version wrote its files."""
    path = root / "metrics.parquet"
    metrics, metadata = read_table(path, "metrics")
    try:
        experiment = check(Experiment, dict(metadata.parameters), "its configuration")
    except InputError as error:
        raise InputError(f"{path}: not the metrics of an experiment of this version ({error})") from error
    for column in METRIC_COLUMNS:
        if column not in metrics.column_names:
            raise InputError(f"{path}: has no column '{column}'")
    times = root / "timings.parquet"
    timings, made = read_table(times, "timings")
    if made.inputs.get("metrics") not in (None, digest(path)):
        raise InputError(f"{times}: not the times of {path}: make the report anew")
    return Results(
        experiment, metrics.to_pandas(), timings.to_pandas(), read_provenance(root / "report.html")
    )
