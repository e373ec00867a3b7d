"""The finished experiments that the paper's page shows, and those that it leaves out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pairflow.artifacts import read_metadata
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.plan import paths
from pairflow.report.results import FinishedExperiment, read_finished


def read_experiments(
    results: Path, experiments: Mapping[str, Experiment]
) -> tuple[dict[str, FinishedExperiment], list[str]]:
    """Finished experiments by name, and a line for each one whose files the configuration would not make."""
    runs, left_out = {}, []
    for name, path in paths.finished(results, experiments).items():
        try:
            runs[name] = _read(path, experiments[name])
        except InputError as error:
            left_out.append(str(error))
    return runs, left_out


def _read(path: Path, experiment: Experiment) -> FinishedExperiment:
    """A finished experiment; InputError unless its files are those that the configuration would make."""
    run = read_finished(path.parent)
    for key in Experiment.model_fields:
        if key != "description" and getattr(run.experiment, key) != getattr(experiment, key):
            raise InputError(
                f"{path}: made with another configuration, which differs in '{key}': rerun "
                f"snakemake {path.parent.as_posix()}/report.html"
            )
    train = paths.data(path.parent, "train.parquet")
    partial = read_metadata(train).parameters.get("partial") if train.is_file() else None
    return replace(run, experiment=experiment, partial=partial)
