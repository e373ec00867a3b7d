"""A finished experiment: what its report wrote, for the pages that compare it with something."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import METRIC_COLUMNS, digest, read_provenance, read_table
from pairflow.config import Experiment, check
from pairflow.errors import InputError
from pairflow.report.tables import REAL
from pairflow.report.words import name_scale

_VALUE = ["evaluation", "metric", "reference", "extractor", "method", "nfe", "seed", "trial"]


@dataclass(frozen=True, eq=False)
class FinishedExperiment:
    """A finished experiment: its name, settings, metric rows and timings.

    `provenance` is that of its report; `train_digest` is the hash of its training rows, where they are there.
    """

    name: str
    experiment: Experiment
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: Mapping[str, Any] = field(default_factory=dict)
    train_digest: str | None = None

    @property
    def dataset(self) -> str:
        return self.experiment.data.source

    @property
    def reduced(self) -> bool:
        return is_reduced(self.experiment)

    @property
    def scale(self) -> str:
        return name_scale(self.reduced)

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Rows of the evaluations' samples with a finite value; a null trial is -1, a null text is empty."""
        rows = self.metrics[self.metrics.evaluation.isin(list(self.experiment.evaluations))]
        rows = rows[(rows.method != REAL) & np.isfinite(rows.value)].dropna(subset="nfe")
        texts = ["reference", "extractor"]
        rows = rows.astype(dict.fromkeys(texts, "object")).fillna({**dict.fromkeys(texts, ""), "trial": -1})
        return rows.astype({"nfe": int, "trial": int})

    @property
    def repeated(self) -> str:
        """The first value that is there twice, in words; empty where there is none."""
        repeats = self.measured[self.measured.duplicated(_VALUE)]
        for first in repeats[_VALUE].to_dict("records"):
            return ", ".join(f"{name} {value}" for name, value in first.items() if value not in ("", -1))
        return ""


def is_reduced(experiment: Experiment) -> bool:
    """Whether its numbers are not the paper's, by their scale or because a part of the data is left out."""
    return experiment.scale != "paper" or _is_partial(experiment)


def is_complete(experiment: Experiment) -> bool:
    """Whether its data hold every molecule that keeps their rules, so that any other one breaks these."""
    return experiment.data.source == "small_molecules" and not _is_partial(experiment)


def _is_partial(experiment: Experiment) -> bool:
    data = experiment.data
    return data.training_rows is not None or getattr(data, "max_heavy_atoms", None) is not None


def read_finished(root: Path, name: str | None = None) -> FinishedExperiment:
    """A finished experiment from its folder; InputError unless a report of this version wrote its files.

    `name` is what pages call it, by default the folder's name.
    """
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
    timings, times_metadata = read_table(times, "timings")
    if times_metadata.inputs.get("metrics") not in (None, digest(path)):
        raise InputError(f"{times}: does not belong to {path}; rerun the report")
    frames, provenance = (metrics.to_pandas(), timings.to_pandas()), read_provenance(root / "report.html")
    return FinishedExperiment(name or root.name, experiment, *frames, provenance)
