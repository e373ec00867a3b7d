"""Paths of all files of an experiment, below its folder `root` (results/<experiment>), as in rules/."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pairflow import published
from pairflow.config import Experiment, parse_method


class SampleRun(NamedTuple):
    """A run of sampling, which identifies a file of samples, its metrics and its histograms."""

    seed: int
    method: str
    evaluation: str
    nfe: int


def runs(experiment: Experiment) -> Iterator[SampleRun]:
    """Yield every run of an experiment: seed, method, evaluation and number of sampling steps (NFE)."""
    for seed in experiment.seeds:
        for name, evaluation in experiment.evaluations.items():
            for method in experiment.evaluated(name):
                for nfe in evaluation.nfe:
                    yield SampleRun(seed, method, name, nfe)


def data(root: Path, name: str) -> Path:
    return root / "data" / name


def stored_data(root: Path, experiment: Experiment) -> dict[str, Path]:
    """Return the files of the data that are copied into each model's folder, by their names in the rules."""
    return {Path(name).stem: data(root, name) for name in experiment.data.stored}


def real_rows(root: Path, split: str) -> Path:
    """Return the file of the real rows of a split: `train`, or `test` for the validation rows."""
    return data(root, {"train": "train.parquet", "test": "validation.parquet"}[split])


def real_files(root: Path) -> dict[str, Path]:
    """Return the files of real rows of both splits, by the names of the steps' options."""
    return {"tokens": real_rows(root, "train"), "validation": real_rows(root, "test")}


def pairs(root: Path, seed: int, coupling: str) -> Path:
    return root / f"seed{seed}" / "pairs" / f"{coupling}.parquet"


def shard(root: Path, seed: int, coupling: str, number: int, shards: int) -> Path:
    """Return the file of one part of a pairing; `number` counts from 1 to `shards`."""
    return root / f"seed{seed}" / "shards" / coupling / f"{number}-of-{shards}.parquet"


def training_data(root: Path, seed: int, method: str) -> Path:
    """Return the file that a method trains on: pairs if data have fixed sources (noise), else only data."""
    parsed = parse_method(method)
    if parsed.distillations:
        return pairs(root, seed, method) if parsed.on_pairs else data(root, "train.parquet")
    return pairs(root, seed, parsed.coupling) if parsed.coupling else data(root, "train.parquet")


def unsampled_metrics(root: Path, seed: int, method: str, name: str) -> Path:
    """Return the file of metrics that belong to no evaluation: coupling, coverage or correlation (`name`)."""
    return root / f"seed{seed}" / "metrics" / method / f"{name}.parquet"


def condition_labels(root: Path, experiment: Experiment) -> dict[str, Path]:
    """Return the file of the labels that a conditional model learns, if the experiment has a condition."""
    return {"labels": data(root, "train.parquet")} if experiment.data.conditions() else {}


def parent_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """Return the files of the model that base methods start from, if any (`Experiment.parent`)."""
    if not experiment.parent:
        return {}
    folder = published.locate(experiment.parent, root.parent.parent)
    return {"parent": folder / "model.safetensors", "parent_description": folder / "model.json"}


def parent_vocabulary(root: Path, experiment: Experiment) -> dict[str, Path]:
    """Return the vocabulary of the model that base methods start from, if the data may have new symbols."""
    parent = parent_files(root, experiment)
    if not parent or not experiment.data.keeps_symbols:
        return {}
    return {"parent_vocabulary": parent["parent"].with_name("vocabulary.json")}


def reference(root: Path, name: str) -> Path:
    """Return the path of a file about the real data that samples are compared with."""
    return root / "reference" / name


def _ending(comparison: str) -> str:
    return f"-{comparison}" if comparison else ""


def floor(root: Path, evaluation: str, comparison: str = "") -> Path:
    """Return the file of metrics of real data that are measured as if they were samples."""
    return reference(root, f"floor-{evaluation}{_ending(comparison)}.parquet")


def start_samples(root: Path, seed: int, evaluation: str) -> Path:
    """Return the file of samples of the model that the base methods start from, before any training."""
    return root / f"seed{seed}" / "start" / f"{evaluation}.parquet"


def model(root: Path, seed: int, method: str) -> Path:
    return root / f"seed{seed}" / "models" / method


def samples(root: Path, run: SampleRun) -> Path:
    return measured(root, run, "samples")


def measured(root: Path, run: SampleRun, folder: str = "metrics", comparison: str = "") -> Path:
    """Return the file with a run's `samples`, its `metrics` (of a `comparison`, if there are several), or its
    histograms (`properties`)."""
    file = f"nfe{run.nfe}{_ending(comparison)}.parquet"
    return root / f"seed{run.seed}" / folder / run.method / run.evaluation / file


def shown_nfe(experiment: Experiment, evaluation: str) -> tuple[int, ...]:
    """Return the NFE whose samples the report shows: by default an evaluation's lowest and highest NFE."""
    protocol = experiment.evaluations[evaluation]
    return protocol.shown or (min(protocol.nfe), max(protocol.nfe))


def shown_runs(experiment: Experiment) -> Iterator[SampleRun]:
    """Yield the runs whose samples the report shows: of the first evaluation and the first seed, at the
    numbers of steps that the evaluation's setting `shown` selects."""
    first, seed = next(iter(experiment.evaluations)), experiment.seeds[0]
    shown = shown_nfe(experiment, first)
    for run in runs(experiment):
        if (run.seed, run.evaluation) == (seed, first) and run.nfe in shown:
            yield run
