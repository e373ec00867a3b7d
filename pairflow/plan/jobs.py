"""The jobs of an experiment, as the rules make them: a test holds them against Snakemake's own count.

What an estimate counts and a report's timings are of.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pairflow.config import DISTILLATIONS, Experiment, Settings, parse_method
from pairflow.plan import paths

_EVERY_CORE = ("pair", "cover", "describe_molecules")
_ON_GPU = (
    "pair",
    "pair_shard",
    "teach",
    "distill",
    "train",
    "sample",
    "chemnet",
    "reference",
    "floor",
    "correlate",
)
_PRIORITY = {"pair": 10, "train": 1, "teach": 1, "distill": 1}


@dataclass(frozen=True, eq=False)
class Job:
    """One job: its rule without the suffix `_images`, what it makes, and the outputs that it waits for.

    `settings` is what its rule passes on, which an output that is up to date was made with.
    """

    rule: str
    outputs: tuple[Path, ...]
    inputs: tuple[Path, ...] = ()
    settings: Settings | None = None
    method: str | None = None
    seed: int | None = None
    evaluation: str | None = None
    nfe: int | None = None
    shards: int = 1

    def threads(self, cores: int) -> int:
        """How many of the cores it takes."""
        if self.rule in _EVERY_CORE:
            return cores
        return min(2, cores) if self.rule == "pair_shard" else 1

    def uses_gpu(self, modality: str) -> bool:
        """Whether its rule asks for the GPU, where there is one."""
        return self.rule in _ON_GPU or (self.rule == "evaluate" and modality == "images")

    @property
    def priority(self) -> int:
        return _PRIORITY.get(self.rule, 0)


def jobs(root: Path, experiment: Experiment, shards: int = 1) -> list[Job]:
    """Every job on the way to the report in `root`, those that another waits for before it."""
    files = paths.data_files(root, experiment)
    train = paths.data(root, "train.parquet")
    found = [Job("preprocess", tuple(files), settings=experiment.data)]
    if experiment.modality == "images":
        found += _of_real_images(root, experiment)
    else:
        smiles = (paths.data(root, "smiles.parquet"),)
        found.append(Job("describe_molecules", (paths.molecules(root),), smiles))
        if experiment.chemistry_settings().fcd:
            found.append(Job("chemnet", (paths.chemnet(root),), smiles))
    for seed in experiment.seeds:
        for name in experiment.couplings():
            settings = experiment.pair_settings(name, seed)
            found += _pairing(paths.pairs(root, seed, name), train, settings, name, seed, shards)
        if experiment.pairing.coverage:
            cover = experiment.cover_settings(seed)
            found.append(Job("cover", (paths.coverage(root, seed),), (train,), cover, seed=seed))
        for name in experiment.trained():
            found += _training(root, experiment, name, seed)
        for name in (*experiment.couplings(), *experiment.taught()):
            pairs = (paths.pairs(root, seed, name),)
            found.append(Job("diagnose", (paths.diagnosis(root, seed, name),), pairs, method=name, seed=seed))
        for name in experiment.correlated():
            out = (paths.correlation(root, seed, name),)
            inputs = (_weights(root, seed, name), train)
            settings = experiment.correlate_settings(seed)
            found.append(Job("correlate", out, inputs, settings, name, seed))
    found += _evaluations(root, experiment)
    inputs = tuple(path for kind in paths.report_inputs(root, experiment).values() for path in kind)
    outputs = tuple(root / name for name in ("metrics.parquet", "timings.parquet", "report.html", "figures"))
    return [*found, Job("report", outputs, inputs, experiment)]


def _of_real_images(root: Path, experiment: Experiment) -> Iterator[Job]:
    extractor = tuple(paths.extractor_files(root, experiment).values())
    both = tuple(paths.images(root, of) for of in ("train", "test"))
    if extractor:
        yield Job("classify", extractor, both, experiment.classify_settings())
    settings = experiment.extractor_settings()
    for of in ("train", "test"):
        yield Job("reference", (paths.reference(root, of),), (paths.images(root, of), *extractor), settings)
    references = tuple(paths.reference(root, of) for of in ("train", "test"))
    for name in experiment.evaluations:
        inputs = (*both, *references, *extractor)
        yield Job("floor", (paths.floor(root, name),), inputs, experiment.floor_settings(name))


def _pairing(out: Path, train: Path, settings: Settings, name: str, seed: int, shards: int) -> Iterator[Job]:
    """One job, or a job per shard, which vanish when all are put together."""
    if shards == 1:
        yield Job("pair", (out,), (train,), settings, name, seed)
        return
    parts = [out.parent.parent / "shards" / name / f"{k}-of-{shards}.parquet" for k in range(1, shards + 1)]
    for part in parts:
        yield Job("pair_shard", (part,), (train,), settings, name, seed, shards=shards)
    yield Job("gather", (out,), tuple(parts), settings, name, seed)


def _training(root: Path, experiment: Experiment, name: str, seed: int) -> Iterator[Job]:
    """The jobs that end in a method's model, without those of its parent."""
    method, out = parse_method(name), (_weights(root, seed, name),)
    train = paths.data(root, "train.parquet")
    if method.parent is None:
        data = train if method.coupling is None else paths.pairs(root, seed, method.coupling)
        yield Job("train", out, (data, train), experiment.train_settings(name, seed), name, seed)
        return
    parent, data = _weights(root, seed, method.parent), train
    if DISTILLATIONS[method.distillations[-1]].on_pairs:
        data = paths.pairs(root, seed, name)
        yield Job("teach", (data,), (parent,), experiment.teach_settings(name, seed), name, seed)
    yield Job("distill", out, (parent, data, train), experiment.distill_settings(name, seed), name, seed)


def _evaluations(root: Path, experiment: Experiment) -> Iterator[Job]:
    described = [paths.data(root, "train.parquet")]
    if experiment.modality == "images":
        described += [paths.reference(root, of) for of in ("train", "test")]
        described += paths.extractor_files(root, experiment).values()
    else:
        described.append(paths.molecules(root))
        if experiment.chemistry_settings().fcd:
            described.append(paths.chemnet(root))
    for run in paths.runs(experiment):
        drawn = paths.samples(root, run)
        settings = experiment.sample_settings(run.evaluation, run.nfe, run.seed)
        shared = {**run._asdict(), "settings": settings}
        yield Job("sample", (drawn,), (_weights(root, run.seed, run.method),), **shared)
        measured = [paths.metrics(root, run)]
        if experiment.modality == "molecules":
            measured.append(paths.properties(root, run))
        yield Job("evaluate", tuple(measured), (drawn, *described), **shared)


def _weights(root: Path, seed: int, method: str) -> Path:
    return paths.model(root, seed, method) / "model.safetensors"


def done(every: list[Job]) -> set[Job]:
    """The finished jobs: outputs are there, made with these settings, and what they wait for is finished.

    Snakemake also looks at when files were changed; its own dry run has the last word.
    """
    makers = {path: job for job in every for path in job.outputs}
    finished: set[Job] = set()
    gathered = {job.inputs for job in every if job.rule == "gather" and _is_made(job)}
    for job in every:  # those that it waits for come before it
        shard = job.rule == "pair_shard" and any(job.outputs[0] in parts for parts in gathered)
        if not (shard or _is_made(job)):
            continue
        if all(makers[path] in finished for path in job.inputs if path in makers):
            finished.add(job)
    return finished


def _is_made(job: Job) -> bool:
    if not all(path.exists() for path in job.outputs):
        return False
    if job.settings is None:
        return True
    found = _made_with(job.outputs[0])
    if not found:
        return False
    wanted = job.settings.model_dump(mode="json")
    if "extractor" in wanted:  # there with the first digits of its weights
        found["extractor"] = str(found.get("extractor")).partition("-")[0]
    return all(found.get(key, value) == value for key, value in wanted.items())


def _made_with(path: Path) -> dict[str, Any]:
    """The parameters that a file says it was made with; empty where it says nothing."""
    description = path.with_suffix(".json")
    try:
        if path.suffix == ".safetensors":
            return json.loads(description.read_text())
        return json.loads(pq.read_schema(path).metadata[b"pairflow"])["parameters"]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return {}
