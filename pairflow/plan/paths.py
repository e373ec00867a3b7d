"""Where every file of an experiment lies, below results/<experiment>. The rules have the same as patterns."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pairflow import published
from pairflow.config import Experiment, parse_method
from pairflow.kinds.images import settings as image_settings
from pairflow.kinds.molecules.settings import chemistry_settings
from pairflow.kinds.text.settings import judge_settings


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
    names = ["train.parquet", "validation.parquet", "vocabulary.json", "known.parquet"]
    if experiment.modality == "molecules":
        names += ["smiles.parquet", "rejected.parquet"]
    if experiment.modality == "text":
        names += ["judge.parquet", "rejected.parquet"]
    return {Path(name).stem: data(root, name) for name in names}


def images(root: Path, split: str) -> Path:
    """Real data of the split train or test; the latter are the validation rows."""
    return data(root, {"train": "train.parquet", "test": "validation.parquet"}[split])


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


def molecules(root: Path) -> Path:
    """Fingerprints, scaffolds and properties of the training molecules."""
    return root / "reference" / "molecules.parquet"


def chemnet_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """Statistics of the training molecules' ChemNet features, if the experiment asks for FCD."""
    return {"chemnet": root / "reference" / "chemnet.parquet"} if chemistry_settings(experiment).fcd else {}


def extractors(experiment: Experiment) -> list[str]:
    """The extractors of an experiment as its files name them: the first, which leads, has an empty name."""
    return ["", *[*image_settings.extractors(experiment)][1:]]


def _ending(extractor: str) -> str:
    return f"-{extractor}" if extractor else ""


def extractor_files(root: Path, experiment: Experiment, extractor: str | None = None) -> dict[str, Path]:
    """The files of a network that images are compared by (any one by default), if the workflow trains it."""
    names = extractors(experiment) if extractor is None else [extractor]
    settings = [image_settings.extractor_settings(experiment, name) for name in names]
    if not any(chosen.extractor == "classifier" and not chosen.weights for chosen in settings):
        return {}
    weights = root / "reference" / "classifier.safetensors"
    return {"classifier": weights, "description": weights.with_suffix(".json")}


def condition_labels(root: Path, experiment: Experiment) -> dict[str, Path]:
    """The token rows whose labels a conditional model learns, if the experiment has a condition."""
    return {"labels": data(root, "train.parquet")} if experiment.is_conditional() else {}


def parent_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """The model that base methods start from, if there is one; a path starts at the workflow's folder."""
    if not experiment.parent:
        return {}
    folder = published.locate(experiment.parent, root.parent.parent)
    return {"parent": folder / "model.safetensors", "parent_description": folder / "model.json"}


def parent_vocabulary(root: Path, experiment: Experiment) -> dict[str, Path]:
    """Its vocabulary, if it is one of symbols that data may lack or add to."""
    if not experiment.parent or experiment.modality not in ("molecules", "text"):
        return {}
    folder = published.locate(experiment.parent, root.parent.parent)
    return {"parent_vocabulary": folder / "vocabulary.json"}


def judge_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """The files of the second judge of text, if the experiment has one."""
    if not judge_settings(experiment).transformer:
        return {}
    weights = root / "reference" / "judge.safetensors"
    return {"judge_weights": weights, "judge_description": weights.with_suffix(".json")}


def references(root: Path, experiment: Experiment, extractor: str = "") -> dict[str, Path]:
    """Statistics of the real images, train and test."""
    end = f"{_ending(extractor)}.parquet"
    return {split: root / "reference" / f"{split}{end}" for split in image_settings.references(experiment)}


def compared_images(root: Path, experiment: Experiment, extractor: str = "") -> dict[str, Path]:
    """What samples of images are compared with, and by."""
    rows = {"tokens": images(root, "train"), "validation": images(root, "test")}
    files = extractor_files(root, experiment, extractor)
    return rows | references(root, experiment, extractor) | files


def floor(root: Path, evaluation: str, extractor: str = "") -> Path:
    """Metric rows of real data against real data."""
    return root / "reference" / f"floor-{evaluation}{_ending(extractor)}.parquet"


def model(root: Path, seed: int, method: str) -> Path:
    return root / f"seed{seed}" / "models" / method


def samples(root: Path, run: SampleRun) -> Path:
    return root / f"seed{run.seed}" / "samples" / run.method / run.evaluation / f"nfe{run.nfe}.parquet"


def metrics(root: Path, run: SampleRun, extractor: str = "") -> Path:
    folder = root / f"seed{run.seed}" / "metrics" / run.method / run.evaluation
    return folder / f"nfe{run.nfe}{_ending(extractor)}.parquet"


def properties(root: Path, run: SampleRun) -> Path:
    """Histograms of the properties of a run's molecules."""
    return root / f"seed{run.seed}" / "properties" / run.method / run.evaluation / f"nfe{run.nfe}.parquet"


def report_inputs(root: Path, experiment: Experiment) -> dict[str, list[Path]]:
    """What the report reads, by kind: the inputs of the last job in the table."""
    from pairflow.plan.jobs import jobs

    return jobs(root, experiment)[-1].groups


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


def finished(results: Path, experiments: Iterable[str]) -> dict[str, Path]:
    """Experiment -> its metric rows, for those whose report exists."""
    files = {name: results / name / "metrics.parquet" for name in experiments}
    return {name: path for name, path in files.items() if path.is_file()}
