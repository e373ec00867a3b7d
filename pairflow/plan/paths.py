"""Where every file of an experiment lies, below results/<experiment>. The rules have the same as patterns."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pairflow import published
from pairflow.config import Experiment, parse_method
from pairflow.kinds import kind_of


class SampleRun(NamedTuple):
    """What tells a file of samples from the others; its metrics and histograms are named alike."""

    seed: int
    method: str
    evaluation: str
    nfe: int


def runs(experiment: Experiment) -> Iterator[SampleRun]:
    """Every (seed, method, evaluation, NFE) of an experiment."""
    for seed in experiment.seeds:
        for name, evaluation in experiment.evaluations.items():
            for method in experiment.evaluated(name):
                for nfe in evaluation.nfe:
                    yield SampleRun(seed, method, name, nfe)


def data(root: Path, name: str) -> Path:
    return root / "data" / name


def data_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """What an experiment's preprocessing writes, by the names that the rules use."""
    return {Path(name).stem: data(root, name) for name in kind_of(experiment.data).prepared}


def real_rows(root: Path, split: str) -> Path:
    """Real data of the split train or test; the latter are the validation rows."""
    return data(root, {"train": "train.parquet", "test": "validation.parquet"}[split])


def real_files(root: Path) -> dict[str, Path]:
    """The rows of both splits, by the options of steps that read them."""
    return {"tokens": real_rows(root, "train"), "validation": real_rows(root, "test")}


def pairs(root: Path, seed: int, coupling: str) -> Path:
    return root / f"seed{seed}" / "pairs" / f"{coupling}.parquet"


def shard(root: Path, seed: int, coupling: str, number: int, shards: int) -> Path:
    """One of the parts, from 1 on, that a pairing is split into."""
    return root / f"seed{seed}" / "shards" / coupling / f"{number}-of-{shards}.parquet"


def training_data(root: Path, seed: int, method: str) -> Path:
    """What a method learns: pairs where each data point keeps a source, else the token rows."""
    parsed = parse_method(method)
    if parsed.distillations:
        return pairs(root, seed, method) if parsed.on_pairs else data(root, "train.parquet")
    return pairs(root, seed, parsed.coupling) if parsed.coupling else data(root, "train.parquet")


def unsampled_metrics(root: Path, seed: int, method: str, name: str) -> Path:
    """Metric rows of a method that are not of an evaluation's samples: coupling, coverage, correlation."""
    return root / f"seed{seed}" / "metrics" / method / f"{name}.parquet"


def condition_labels(root: Path, experiment: Experiment) -> dict[str, Path]:
    """The token rows whose labels a conditional model learns, if the experiment has a condition."""
    return {"labels": data(root, "train.parquet")} if experiment.data.conditions() else {}


def parent_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """The model that base methods start from, if there is one; a path starts at the workflow's folder."""
    if not experiment.parent:
        return {}
    folder = published.locate(experiment.parent, root.parent.parent)
    return {"parent": folder / "model.safetensors", "parent_description": folder / "model.json"}


def parent_vocabulary(root: Path, experiment: Experiment) -> dict[str, Path]:
    """The vocabulary of that model, for data whose symbols may differ from the model's."""
    if not experiment.parent or not kind_of(experiment.data).keeps_symbols:
        return {}
    folder = published.locate(experiment.parent, root.parent.parent)
    return {"parent_vocabulary": folder / "vocabulary.json"}


def reference(root: Path, name: str) -> Path:
    """A file about the real data that samples are compared with."""
    return root / "reference" / name


def _ending(comparison: str) -> str:
    return f"-{comparison}" if comparison else ""


def floor(root: Path, evaluation: str, comparison: str = "") -> Path:
    """Metric rows of real data against real data."""
    return reference(root, f"floor-{evaluation}{_ending(comparison)}.parquet")


def model(root: Path, seed: int, method: str) -> Path:
    return root / f"seed{seed}" / "models" / method


def samples(root: Path, run: SampleRun) -> Path:
    return measured(root, run, "samples")


def measured(root: Path, run: SampleRun, folder: str = "metrics", comparison: str = "") -> Path:
    """What was made or measured of a run: its samples, metric rows, or histograms of properties."""
    file = f"nfe{run.nfe}{_ending(comparison)}.parquet"
    return root / f"seed{run.seed}" / folder / run.method / run.evaluation / file


def shown_nfe(experiment: Experiment, evaluation: str) -> tuple[int, ...]:
    """The NFE of an evaluation whose samples the report draws: by default the lowest and the highest."""
    protocol = experiment.evaluations[evaluation]
    return protocol.shown or (min(protocol.nfe), max(protocol.nfe))


def shown_runs(experiment: Experiment) -> Iterator[SampleRun]:
    """The samples that reports show: those of the first evaluation and the first seed, at its shown NFE."""
    first, seed = next(iter(experiment.evaluations)), experiment.seeds[0]
    shown = shown_nfe(experiment, first)
    for run in runs(experiment):
        if (run.seed, run.evaluation) == (seed, first) and run.nfe in shown:
            yield run
