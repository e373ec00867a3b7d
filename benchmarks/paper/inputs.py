"""The finished experiments that the paper's page shows, and those that it leaves out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.paper.settings import find_finished
from pairflow.artifacts import read_metadata
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.kinds.images.rows import read_images
from pairflow.plan import paths
from pairflow.report.results import FinishedExperiment, read_finished

Pictures = dict[int, dict[str, np.ndarray]]  # NFE -> method -> the first samples (B, H, W, C) uint8
ROW = 8  # pictures in a row, as in the paper's figures


def read_experiments(
    results: Path, experiments: Mapping[str, Experiment]
) -> tuple[dict[str, FinishedExperiment], dict[str, Pictures], list[str]]:
    """Finished experiments and their pictures by name, and a line for each one whose files the configuration
    would not make."""
    runs, pictures, left_out = {}, {}, []
    for name, path in find_finished(results, experiments).items():
        try:
            run, drawn = _read(path, experiments[name]), _read_pictures(path.parent, experiments[name])
        except InputError as error:
            left_out.append(str(error))
        else:
            runs[name], pictures[name] = run, drawn
    return runs, pictures, left_out


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


def _read_pictures(root: Path, experiment: Experiment) -> Pictures:
    """The samples that reports show, as far as their files are still there."""
    pictures: Pictures = {}
    for run in paths.shown_runs(experiment) if experiment.data.kind == "images" else ():
        path = paths.samples(root, run)
        if path.is_file():  # the first trial stands first
            pictures.setdefault(run.nfe, {})[run.method] = read_images(path, "samples")[:ROW]
    return {nfe: pictures[nfe] for nfe in sorted(pictures)}
