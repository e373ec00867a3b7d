"""Reads what the report of an experiment wrote, for pages, for comparisons and for users of the package."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.arguments import checked_choice
from pairflow.artifacts import METRIC_COLUMNS, digest, read_provenance, read_table
from pairflow.config import Experiment, check, nearest
from pairflow.errors import InputError
from pairflow.files import checked_path, shown
from pairflow.metrics.metric import leading_evaluation, mean_values
from pairflow.plan import paths
from pairflow.report.costs import training_costs
from pairflow.report.grid import REAL, Grid, list_grids

METRICS = "metrics.parquet"
LIKELIHOOD = "likelihood"  # the evaluation of metric rows with bounds on the likelihood of held-out rows
CONDITION = "condition"  # that of metric rows on how well models follow their condition
_VALUE = ["evaluation", "metric", "reference", "extractor", "method", "nfe", "seed", "trial"]


@dataclass(frozen=True, eq=False)
class FinishedExperiment:
    """A finished experiment: its name, settings, metric rows and timings.

    `metrics` has the rows of samples, of real data (method `data`), of controls, couplings and bounds.
    `provenance` says when and how the report was made, and `train_digest` is the hash of the training rows,
    if known. `partial` says which part of the published data set was missing, if known. `logs` has the
    training logs of the first seed by method, if they were read.
    """

    name: str
    experiment: Experiment
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: Mapping[str, object] = field(default_factory=dict)
    train_digest: str | None = None
    partial: str | None = None
    logs: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    # Computed once, and read by all parts of a page.
    training_costs = cached_property(lambda self: training_costs(self.timings, self.experiment))

    @cached_property
    def grids(self) -> dict[str, list[Grid]]:
        """A dict from each evaluation to its tables that have values, in the order of the page."""
        return {name: list_grids(self.metrics, self.experiment, name) for name in self.experiment.evaluations}

    @property
    def leading(self) -> Grid | None:
        """The table that ranks the methods: the first metric that may rank them (with `leads_as`) in the
        leading evaluation.

        Evaluations without such a metric do not lead; None if no evaluation has one.
        """
        named = {name: [grid for grid in grids if grid.about.leads_as] for name, grids in self.grids.items()}
        leading = {name: grids[0] for name, grids in named.items() if grids}
        return leading[leading_evaluation(leading)] if leading else None

    @property
    def dataset(self) -> str:
        """The name of the data set, or the path of the user's own file."""
        return self.experiment.data.file or self.experiment.data.source

    @property
    def own_data(self) -> bool:
        """Whether the data are the user's own, with which no paper compares."""
        return any(self.experiment.data.own_raw().values())

    @property
    def reduced(self) -> bool:
        """Whether the experiment is smaller than in the paper, by its scale or because data are left out."""
        return self.experiment.scale != "paper" or self.experiment.data.is_partial or bool(self.partial)

    @property
    def scale(self) -> str:
        return "reduced scale" if self.reduced else "paper’s scale"

    @cached_property
    def bounds(self) -> dict[str, dict[str, float]]:
        """A dict from each bound on the likelihood of held-out rows to {method: mean over seeds}."""
        rows = self.metrics[self.metrics.evaluation == LIKELIHOOD]
        means = rows.groupby(["metric", "method"], sort=False).value.mean()
        return {str(name): own.droplevel(0).to_dict() for name, own in means.groupby(level=0, sort=False)}

    @cached_property
    def unpaired(self) -> dict[str, float]:
        """A dict from each coupling of the user's own pairs to the share of training rows without a pair."""
        rows = self.metrics[self.metrics.metric == "unpaired_rows"].dropna(subset="samples")
        shares = rows.value / (rows.value + rows.samples.astype(float))
        return dict(zip(rows.method, shares, strict=True))

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Metric rows of samples with a finite value; null texts become empty."""
        rows = self.metrics[self.metrics.evaluation.isin(list(self.experiment.evaluations))]
        rows = rows[(rows.method != REAL) & np.isfinite(rows.value)].dropna(subset="nfe")
        texts = dict.fromkeys(["reference", "extractor"], "")
        return rows.astype(dict.fromkeys(texts, "object")).fillna(texts).astype({"nfe": int})

    def table(
        self,
        metric: str,
        evaluation: str | None = None,
        reference: str | None = None,
        extractor: str | None = None,
    ) -> pd.DataFrame:
        """Return the means of a metric: a row per method, a column per number of sampling steps (NFE).

        Values are averaged over trials, then over seeds; `metrics` has each value. The default `evaluation`
        is `main`, or else the first by name. A metric with two references (train, test) needs `reference`,
        and one with two extractors needs `extractor`. Raises InputError if the metric was not measured, or
        not with these arguments.
        """
        evaluations = self.experiment.evaluations
        if evaluation is None:
            evaluation = leading_evaluation(evaluations)
        checked_choice(f"{self.name}: evaluation", evaluation, evaluations)
        rows = self.measured[self.measured.evaluation == evaluation]
        known = rows.metric.unique().tolist()
        asked: object = metric  # whatever the user gave
        if not isinstance(asked, str) or asked not in known:
            hint = f"{nearest(metric, known)}: it has {', '.join(known) or 'none'}"
            raise InputError(f"{self.name}: no metric {shown(metric)} in the evaluation '{evaluation}'{hint}")
        rows = rows[rows.metric == metric]
        for column, wanted in (("reference", reference), ("extractor", extractor)):
            known = rows[column].unique().tolist()
            if wanted is None and len(known) > 1:
                raise InputError(f"{self.name}: {metric} has several {column}s; give {' or '.join(known)}")
            if known == [""] and wanted is not None and str(wanted):
                raise InputError(f"{self.name}: {metric} has no {column}, found {shown(wanted)}")
            where = f"{self.name}: {column} of {metric}"
            rows = rows[
                rows[column] == (known[0] if wanted is None else checked_choice(where, wanted, known))
            ]
        means = pd.Series(mean_values(rows)).unstack()
        means = means.reindex([method for method in self.experiment.methods if method in means.index])
        return means.rename_axis(index="method", columns="nfe")

    @property
    def repeated(self) -> str:
        """The first measurement that `measured` has twice, in words; empty if there is none."""
        twice = self.measured[_VALUE][self.measured.duplicated(_VALUE)]
        known = twice.iloc[:1].replace("", None).dropna(axis="columns").to_dict("records")
        return ", ".join(f"{name} {value}" for first in known for name, value in first.items())


def results(experiment: str | Path) -> FinishedExperiment:
    """Read a finished experiment.

    Args:
        experiment: the name of its folder in results/ of the working directory, or the path of the folder.

    Returns:
        `table(metric)` of it gives means per method and number of sampling steps; `metrics`, `timings` and
        `experiment` hold all values, the seconds of all jobs and the settings.

    Raises:
        InputError: if the experiment is not finished, or was finished by another version.

    Example:
        >>> pairflow.results("demo").table("valid")  # doctest: +SKIP
    """
    experiment = checked_path("experiment", experiment)
    folder = Path("results", experiment)  # an absolute path stays as it is
    if not (folder / METRICS).is_file() and experiment.is_dir():
        folder = experiment
    if not (folder / METRICS).is_file():
        raise InputError(f"{folder}: no finished experiment, because there is no {METRICS}")
    return read_finished(folder)


def read_logs(root: Path, experiment: Experiment) -> dict[str, pd.DataFrame]:
    """Read the training logs of the first seed: {method: log}, for the methods that have one."""
    seed = experiment.seeds[0]
    files = {name: paths.model(root, seed, name) / "log.parquet" for name in experiment.methods}
    known = {name: file for name, file in files.items() if file.is_file()}
    return {name: read_table(file, "training log")[0].to_pandas() for name, file in known.items()}


def read_finished(root: Path, name: str | None = None) -> FinishedExperiment:
    """Read a finished experiment from its folder, under `name` on pages (default: the folder's name).

    Raises InputError unless a report of this version wrote its files.
    """
    path = root / METRICS
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
