"""Where an experiment's files lie, below results/<experiment>

The rules declare the same paths as patterns.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pairflow.config import Experiment


class Run(NamedTuple):
    """One file of samples and its metrics."""

    seed: int
    method: str
    evaluation: str
    nfe: int


def runs(experiment: Experiment) -> Iterator[Run]:
    """Every (seed, method, evaluation, NFE) of an experiment."""
    for seed in experiment.seeds:
        for name, evaluation in experiment.evaluations.items():
            for method in experiment.evaluated(name):
                for nfe in evaluation.nfe:
                    yield Run(seed, method, name, nfe)


def data(root: Path, name: str) -> Path:
    return root / "data" / name


def images(root: Path, of: str) -> Path:
    """Real images `of` train or test; the latter are the validation rows."""
    return data(root, {"train": "train.parquet", "test": "validation.parquet"}[of])


def data_files(root: Path, experiment: Experiment) -> list[Path]:
    """Everything that an experiment's `preprocess` or `preprocess_images` writes."""
    names = ["train.parquet", "validation.parquet", "vocabulary.json", "known.parquet"]
    if experiment.modality == "molecules":
        names += ["smiles.parquet", "rejected.parquet"]
    return [data(root, name) for name in names]


def pairs(root: Path, seed: int, coupling: str) -> Path:
    return root / f"seed{seed}" / "pairs" / f"{coupling}.parquet"


def diagnosis(root: Path, seed: int, coupling: str) -> Path:
    return root / f"seed{seed}" / "metrics" / coupling / "coupling.parquet"


def coverage(root: Path, seed: int) -> Path:
    return root / f"seed{seed}" / "metrics" / "forward" / "coverage.parquet"


def coupling_metrics(root: Path, experiment: Experiment) -> list[Path]:
    """Metric files that no sampler made: of all pairs, and of the forward velocity where asked for."""
    couplings = [*experiment.couplings(), *experiment.taught()]
    found = [diagnosis(root, seed, name) for seed in experiment.seeds for name in couplings]
    if experiment.pairing.coverage:
        found += [coverage(root, seed) for seed in experiment.seeds]
    return found


def correlation(root: Path, seed: int, method: str) -> Path:
    return root / f"seed{seed}" / "metrics" / method / "correlation.parquet"


def classifier(root: Path) -> Path:
    return root / "reference" / "classifier.safetensors"


def extractor_files(root: Path, experiment: Experiment) -> dict[str, Path]:
    """What the extractor of image features is made of, where the workflow makes it."""
    if experiment.extractor_settings().extractor != "classifier":
        return {}
    weights = classifier(root)
    return {"classifier": weights, "description": weights.with_suffix(".json")}


def reference(root: Path, of: str) -> Path:
    """Statistics of the real images `of` train or test."""
    return root / "reference" / f"{of}.parquet"


def molecules(root: Path) -> Path:
    """What describes the training molecules."""
    return root / "reference" / "molecules.parquet"


def chemnet(root: Path) -> Path:
    """Statistics of the training molecules' ChemNet features."""
    return root / "reference" / "chemnet.parquet"


def floor(root: Path, evaluation: str) -> Path:
    """Metric rows of real images against real images."""
    return root / "reference" / f"floor-{evaluation}.parquet"


def floors(root: Path, experiment: Experiment) -> list[Path]:
    if experiment.modality != "images":
        return []
    return [floor(root, name) for name in experiment.evaluations]


def model(root: Path, seed: int, method: str) -> Path:
    return root / f"seed{seed}" / "models" / method


def samples(root: Path, run: Run) -> Path:
    return root / f"seed{run.seed}" / "samples" / run.method / run.evaluation / f"nfe{run.nfe}.parquet"


def metrics(root: Path, run: Run) -> Path:
    return root / f"seed{run.seed}" / "metrics" / run.method / run.evaluation / f"nfe{run.nfe}.parquet"


def properties(root: Path, run: Run) -> Path:
    """Histograms of the properties of a run's molecules."""
    return root / f"seed{run.seed}" / "properties" / run.method / run.evaluation / f"nfe{run.nfe}.parquet"


def report_inputs(root: Path, experiment: Experiment) -> dict[str, list[Path]]:
    """What the report reads, by kind."""
    every = list(runs(experiment))
    ends = [run for run in every if run.nfe in shown_nfe(experiment, run)]
    shown = [run for run in ends if run.seed == experiment.seeds[0]]
    return {
        "data": data_files(root, experiment),
        "couplings": coupling_metrics(root, experiment),
        "logs": [
            model(root, seed, name) / "log.parquet"
            for seed in experiment.seeds
            for name in experiment.methods
        ],
        "pictured": pictured(root, experiment),
        "samples": [samples(root, run) for run in shown],
        "metrics": [metrics(root, run) for run in every],
        "properties": [properties(root, run) for run in ends if experiment.modality == "molecules"],
        "correlations": [
            correlation(root, seed, name) for seed in experiment.seeds for name in experiment.correlated()
        ],
        "floors": floors(root, experiment),
    }


def finished(results: Path, experiments: Iterable[str]) -> dict[str, Path]:
    """Experiment -> its metric rows, of those whose report has been made."""
    found = {name: results / name / "metrics.parquet" for name in experiments}
    return {name: path for name, path in found.items() if path.is_file()}


def pictured(root: Path, experiment: Experiment) -> list[Path]:
    """What the report reads of images alone: pairs of the first seed, and the extractor's description."""
    if experiment.modality != "images":
        return []
    drawn = [pairs(root, experiment.seeds[0], name) for name in experiment.couplings()]
    return [*drawn, *extractor_files(root, experiment).values()]


def shown_nfe(experiment: Experiment, run: Run) -> tuple[int, int]:
    """The lowest and the highest NFE of a run's evaluation: those whose samples the report draws."""
    nfe = experiment.evaluations[run.evaluation].nfe
    return min(nfe), max(nfe)
