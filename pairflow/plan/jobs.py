"""The workflow's graph in Python: what each job needs, makes, depends on and asks of the machine.

rules/ has the same graph for Snakemake, and tests/plan/test_jobs.py compares the two. The estimate, the
check of a folder's files (`plan.lineage`), the report's inputs and its timings all read this table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pairflow.artifacts import provenance_path
from pairflow.config import Experiment, Settings, parse_method
from pairflow.kinds.images import settings as image_settings
from pairflow.kinds.molecules import settings as molecule_settings
from pairflow.kinds.text.settings import judge_settings, judged_draws
from pairflow.plan import paths

Files = Mapping[str, Path | Sequence[Path]]
_CARRIED = {"vocabulary": "vocabulary.json", "known": "known.parquet"}  # stored with every model


@dataclass(frozen=True, eq=False)
class Job:
    """One job. `inputs` and `outputs` have the names of the rule, which the files' metadata use as well.

    `rule` is the rule's name without the ending `_images`, `_text`, `_tokens` or `_vectors`, `settings` the
    one parameter of its command. `origin` are the settings of the pairs or samples that the job measures.
    `threads` None means all cores, and `gpu` says that the job uses a GPU if there is one.
    """

    rule: str
    inputs: Files
    outputs: Mapping[str, Path]
    settings: Settings | None = None
    threads: int | None = 1
    gpu: bool = False
    priority: int = 0
    method: str | None = None
    seed: int | None = None
    evaluation: str | None = None
    nfe: int | None = None
    shards: int = 1
    origin: Settings | None = None

    @property
    def groups(self) -> dict[str, list[Path]]:
        """The input files by name, each a list."""
        return {name: [files] if isinstance(files, Path) else [*files] for name, files in self.inputs.items()}

    @property
    def needed(self) -> list[Path]:
        """The input files, in one list."""
        return [path for group in self.groups.values() for path in group]

    @property
    def record(self) -> Path:
        """The output that the record of the job's seconds, memory and device lies beside."""
        return next(iter(self.outputs.values()))

    @property
    def parameters(self) -> dict[str, Any]:
        """What the metadata of its outputs say, as far as they name it."""
        parameters = {"method": self.method} if self.method else {}
        for settings in (self.origin, self.settings):
            parameters |= settings.model_dump(mode="json") if settings else {}
        return parameters


def jobs(root: Path, experiment: Experiment, shards: int = 1) -> list[Job]:
    """Every job on the way to the report in `root`; each comes after those that make its inputs.

    `shards` is the number of jobs that a pairing is split into.
    """
    table = list(_data_jobs(root, experiment))
    for seed in experiment.seeds:
        table += _seed_jobs(root, experiment, seed, shards)
    table += _evaluations(root, experiment)
    return [*table, _report(root, experiment, table)]


def _data_jobs(root: Path, experiment: Experiment) -> Iterator[Job]:
    """Preprocessing, and the descriptions of the data that samples are compared with."""
    own, files = experiment.data.file, paths.data_files(root, experiment)
    raw = {"raw": root.parent.parent / own} if own else {}
    yield Job("preprocess", raw | paths.parent_vocabulary(root, experiment), files, experiment.data)
    if experiment.modality in ("text", "tokens", "vectors"):
        of_text = experiment.modality == "text"
        if of_text:
            yield from _judge(root, experiment)
        for name in experiment.evaluations:
            out = {"metrics": paths.floor(root, name)}
            settings = judged_draws(experiment, name) if of_text else experiment.real_draws(name)
            real = _real_text(root, experiment) if of_text else _real_rows(root)
            yield Job("floor", real, out, settings, gpu=judge_settings(experiment).gen_ppl)
        return
    if experiment.modality == "molecules":
        smiles = {"smiles": files["smiles"]}
        yield Job("describe_molecules", smiles, {"molecules": paths.molecules(root)}, threads=None)
        if chemnet := paths.chemnet_files(root, experiment):
            yield Job("chemnet", smiles, chemnet, gpu=True)
        return
    if trained := paths.extractor_files(root, experiment):
        weights = {"weights": trained["classifier"], "description": trained["description"]}
        yield Job("classify", _real_rows(root), weights, image_settings.classify_settings(experiment))
    for extractor in paths.extractors(experiment):
        yield from _real_images(root, experiment, extractor)


def _real_images(root: Path, experiment: Experiment, extractor: str) -> Iterator[Job]:
    """The statistics of real images by an extractor, and how far they are from one another."""
    files = paths.extractor_files(root, experiment, extractor)
    settings = image_settings.extractor_settings(experiment, extractor)
    for split, path in paths.references(root, experiment, extractor).items():
        inputs = {"tokens": paths.images(root, split), **files}
        yield Job("reference", inputs, {"reference": path}, settings, gpu=True)
    for name in experiment.evaluations:
        inputs, out = paths.compared_images(root, experiment, extractor), paths.floor(root, name, extractor)
        yield Job(
            "floor",
            inputs,
            {"metrics": out},
            image_settings.floor_settings(experiment, name, extractor),
            gpu=True,
        )


def _real_rows(root: Path) -> dict[str, Path]:
    """The rows that samples are compared with."""
    return {"tokens": paths.images(root, "train"), "validation": paths.images(root, "test")}


def _judge(root: Path, experiment: Experiment) -> Iterator[Job]:
    """The training of the second judge of text, if there is one."""
    if files := paths.judge_files(root, experiment):
        outputs = {"weights": files["judge_weights"], "description": files["judge_description"]}
        yield Job("train_judge", _judge_text(root), outputs, judge_settings(experiment).transformer)


def _judge_text(root: Path) -> dict[str, Path]:
    """The rows that judges of text learn from, and the tokeniser."""
    files = {"judge": "judge.parquet", "vocabulary": "vocabulary.json"}
    return {name: paths.data(root, file) for name, file in files.items()}


def _real_text(root: Path, experiment: Experiment) -> dict[str, Path]:
    """What samples of text are compared with, and judged by."""
    return _real_rows(root) | _judge_text(root) | paths.judge_files(root, experiment)


def _seed_jobs(root: Path, experiment: Experiment, seed: int, shards: int) -> Iterator[Job]:
    """The pairs and the models of a seed, and what is measured on them."""
    tokens = {"tokens": paths.data(root, "train.parquet")}
    for name in experiment.couplings():
        yield from _pairing(root, experiment, name, seed, shards)
    if experiment.pairing.coverage:
        out = {"metrics": paths.unsampled_metrics(root, seed, "forward", "coverage")}
        yield Job("cover", tokens, out, experiment.cover_settings(seed), threads=None, seed=seed)
    for name in experiment.trained():
        yield from _training(root, experiment, name, seed)
    origins: list[tuple[str, Settings]] = [
        *((name, experiment.pair_settings(name, seed)) for name in experiment.couplings()),
        *((name, experiment.teach_settings(name, seed)) for name in experiment.taught()),
    ]
    for name, origin in origins:
        pairs = {"pairs": paths.pairs(root, seed, name)}
        out = {"metrics": paths.unsampled_metrics(root, seed, name, "coupling")}
        yield Job("diagnose", pairs, out, origin=origin, method=name, seed=seed)
    for name in experiment.correlated():
        inputs, settings = _model(root, seed, name) | tokens, experiment.correlate_settings(seed)
        out = {"metrics": paths.unsampled_metrics(root, seed, name, "correlation")}
        yield Job("correlate", inputs, out, settings, gpu=True, method=name, seed=seed)


def _pairing(root: Path, experiment: Experiment, name: str, seed: int, shards: int) -> Iterator[Job]:
    """One job, or one per shard and one that joins the shards, which then vanish."""
    tokens, pairs = {"tokens": paths.data(root, "train.parquet")}, {"pairs": paths.pairs(root, seed, name)}
    job = partial(Job, settings=experiment.pair_settings(name, seed), method=name, seed=seed)
    if own := experiment.own_pairs(name):
        yield job("adopt", _real_rows(root) | {"own": root.parent.parent / own}, pairs)
        return
    if shards == 1:
        yield job("pair", tokens, pairs, threads=None, gpu=True, priority=10)
        return
    parts = [paths.shard(root, seed, name, number, shards) for number in range(1, shards + 1)]
    costs = [provenance_path(part) for part in parts]
    for part, cost in zip(parts, costs, strict=True):
        yield job("pair_shard", tokens, {"shard": part, "costs": cost}, threads=2, gpu=True, shards=shards)
    yield job("gather", {"shards": parts, "costs": costs}, pairs)


def _training(root: Path, experiment: Experiment, name: str, seed: int) -> Iterator[Job]:
    """The jobs that end in a method's model, without those of its parent."""
    job = partial(Job, method=name, seed=seed, gpu=True, priority=1)
    files, folder = paths.data_files(root, experiment), paths.model(root, seed, name)
    inputs = {"validation": files["validation"], "data": paths.training_data(root, seed, name)}
    outputs = _model(root, seed, name) | {"log": folder / "log.parquet"}
    outputs |= {key: folder / file for key, file in _CARRIED.items()}
    method = parse_method(name)
    if method.parent is None:
        inputs |= {key: files[key] for key in _CARRIED} | paths.condition_labels(root, experiment)
        inputs |= paths.parent_files(root, experiment)
        yield job("train", inputs, outputs, experiment.train_settings(name, seed))
        return
    parent, model = paths.model(root, seed, method.parent), _model(root, seed, method.parent)
    if method.on_pairs:
        yield job("teach", model, {"pairs": inputs["data"]}, experiment.teach_settings(name, seed))
    inputs |= {"parent": model["model"], "parent_description": model["description"]}
    inputs |= {f"parent_{key}": parent / file for key, file in _CARRIED.items()}
    yield job("distill", inputs, outputs, experiment.distill_settings(name, seed))


def _model(root: Path, seed: int, method: str) -> dict[str, Path]:
    folder = paths.model(root, seed, method)
    return {"model": folder / "model.safetensors", "description": folder / "model.json"}


def _evaluations(root: Path, experiment: Experiment) -> Iterator[Job]:
    """Samples, and the metrics of samples."""
    molecules, images = experiment.modality == "molecules", experiment.modality == "images"
    gpu = images or judge_settings(experiment).gen_ppl
    for run in paths.runs(experiment):
        samples, names = {"samples": paths.samples(root, run)}, run._asdict()
        sampling = experiment.sample_settings(run.evaluation, run.nfe, run.seed)
        yield Job("sample", _model(root, run.seed, run.method), samples, sampling, gpu=True, **names)
        for extractor in paths.extractors(experiment) if images else [""]:
            compared, settings = _compared(root, experiment, extractor)
            outputs = {"metrics": paths.metrics(root, run, extractor)}
            if molecules:
                outputs["properties"] = paths.properties(root, run)
            yield Job("evaluate", samples | compared, outputs, settings, gpu=gpu, origin=sampling, **names)


def _compared(root: Path, experiment: Experiment, extractor: str) -> tuple[dict[str, Path], Settings | None]:
    """What samples are compared with, and the settings of the comparison."""
    if experiment.modality == "text":
        return _real_text(root, experiment), judge_settings(experiment)
    if experiment.modality in ("tokens", "vectors"):
        return _real_rows(root), None
    if experiment.modality == "images":
        settings = image_settings.comparison_settings(experiment, extractor)
        return paths.compared_images(root, experiment, extractor), settings
    data = paths.data_files(root, experiment)
    files = {"vocabulary": data["vocabulary"], "smiles": data["smiles"], "molecules": paths.molecules(root)}
    return files | paths.chemnet_files(root, experiment), molecule_settings.chemistry_settings(experiment)


def _report(root: Path, experiment: Experiment, table: list[Job]) -> Job:
    """The last job, whose inputs are outputs of the others."""
    images, first = experiment.modality == "images", experiment.seeds[0]
    coupled = ("pair", "adopt", "gather") if experiment.modality in ("images", "text", "vectors") else ()

    def collect(name: str, *rules: str, among: Sequence[Job] = table) -> list[Path]:
        return [job.outputs[name] for rule in rules for job in among if job.rule == rule]

    trained = [job for job in table if job.method in experiment.methods]
    ends = [job for job in table if job.evaluation and job.nfe in paths.shown_nfe(experiment, job.evaluation)]
    shown = [job for job in table if job.seed == first]
    extractor = paths.extractor_files(root, experiment).values() if images else ()
    molecules = experiment.modality == "molecules"
    properties = collect("properties", "evaluate", among=ends) if molecules else []
    inputs = {
        "data": list(paths.data_files(root, experiment).values()),
        "couplings": collect("metrics", "diagnose", "cover"),
        "logs": collect("log", "train", "distill", among=trained),
        "pictured": [*collect("pairs", *coupled, among=shown), *extractor],
        "samples": collect("samples", "sample", among=[job for job in ends if job.seed == first]),
        "metrics": collect("metrics", "evaluate"),
        "properties": properties,
        "correlations": collect("metrics", "correlate"),
        "floors": collect("metrics", "floor"),
    }
    files = {"metrics": "metrics.parquet", "timings": "timings.parquet", "page": "report.html"}
    outputs = {name: root / file for name, file in files.items()} | {"figures": root / "figures"}
    return Job("report", inputs, outputs, experiment)
