"""Lists the workflow's jobs in Python: what each needs, makes, depends on and asks of the machine.

rules/ has the same jobs for Snakemake, and tests/plan/test_jobs.py compares the two. The estimate, the
check of a folder's files (`plan.lineage`), the report's inputs and its timings all read this table.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pairflow.artifacts import provenance_path
from pairflow.config import BASES, FLOWS, Experiment, Settings, parse_method
from pairflow.kinds import kind_of
from pairflow.kinds.kind import AnyKind
from pairflow.plan import paths
from pairflow.plan.job import Job

_SHARING = ("train", "distill", "teach", "sample", "sample_start", "evaluate")
_MOST_THREADS = 2  # of a job of these; more have not been measured


def jobs(root: Path, experiment: Experiment, shards: int = 1) -> list[Job]:
    """List all jobs of an experiment, each after the jobs that make its inputs; the report in `root` is last.

    `shards` is the number of jobs that a pairing is split into.
    """
    kind = kind_of(experiment.data)
    table = list(_data_jobs(root, experiment, kind))
    for seed in experiment.seeds:
        table += _seed_jobs(root, experiment, seed, shards)
    table += _evaluations(root, experiment, kind)
    return [*table, _report(root, experiment, kind, table)]


def report_inputs(root: Path, experiment: Experiment) -> dict[str, list[Path]]:
    """Return the files that the report reads, by name."""
    return jobs(root, experiment)[-1].groups


def divide_cores(experiment: Experiment, table: Sequence[Job], cores: int) -> dict[str, int]:
    """Divide the cores among the jobs of each rule, which may run together: returns {rule: threads of each
    job on a CPU}.

    If trainings work in slices of the batch, they share all cores: while another program needs a core, they
    compute the slices one after another. Otherwise threads would slow each other down
    (benchmarks/records/speed.md), so a training gets a second thread only if a core stays free. Jobs of other
    rules get a second thread only if half of the cores stay free, for the rest of the workflow.
    """
    counts = Counter(job.rule for job in table)
    free = dict.fromkeys(_SHARING, cores // 2) | {"train": cores - 1}
    if experiment.network.in_slices:
        free |= {"train": cores, "distill": cores}
    return {rule: max(1, min(_MOST_THREADS, free[rule] // counts[rule])) for rule in free if counts[rule]}


def _data_jobs(root: Path, experiment: Experiment, kind: AnyKind) -> Iterator[Job]:
    """Yield preprocessing, the kind's jobs on real data, and the floors (metrics of real data)."""
    data = experiment.data
    own = {"raw": data.file, "held_out": data.held_out_file}
    raw = {key: root.parent.parent / file for key, file in own.items() if file}
    inputs = raw | paths.parent_vocabulary(root, experiment)
    prepared = {Path(name).stem: paths.data(root, name) for name in data.prepared}
    yield Job("preprocess", inputs, prepared, data, threads=None if kind.costs.takes_long else 1)
    yield from kind.reference.jobs(root, experiment)
    if not kind.floor or not kind.floor.is_measured(experiment):
        return
    yield from kind.floor.jobs(root, experiment)
    for comparison in kind.reference.comparisons(experiment):
        for name in experiment.evaluations:
            inputs = kind.floor.list_files(root, experiment, name, comparison)
            settings = kind.floor.settings_of(experiment, name, comparison)
            out = {"metrics": paths.floor(root, name, comparison)}
            yield Job("floor", inputs, out, settings, gpu=kind.costs.measuring(experiment).gpu)


def _seed_jobs(root: Path, experiment: Experiment, seed: int, shards: int) -> Iterator[Job]:
    """Yield the jobs that make and measure the pairs and the models of a seed, except for evaluations."""
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
    """Yield the job that makes the pairs of the coupling `name`, if it has one; with several `shards`, a job
    for each shard, and one that joins them. Snakemake removes joined shards."""
    tokens, pairs = {"tokens": paths.data(root, "train.parquet")}, {"pairs": paths.pairs(root, seed, name)}
    job = partial(Job, settings=experiment.pair_settings(name, seed), method=name, seed=seed)
    rule = BASES[parse_method(name).base].pairing
    if rule is None:
        return
    if pairs_file := experiment.own_pairs(name):
        yield job(rule, paths.real_files(root) | {"user_pairs": root.parent.parent / pairs_file}, pairs)
        return
    if rule != "pair" or shards == 1:
        gpu = rule == "pair" or not FLOWS[experiment.flow].tokens
        yield job(rule, tokens, pairs, threads=None, gpu=gpu, priority=10)
        return
    parts = [paths.shard(root, seed, name, number, shards) for number in range(1, shards + 1)]
    costs = [provenance_path(part) for part in parts]
    for part, cost in zip(parts, costs, strict=True):
        yield job("pair_shard", tokens, {"pairs": part, "costs": cost}, threads=2, gpu=True, shards=shards)
    yield job("gather", {"shards": parts, "costs": costs}, pairs)


def _training(root: Path, experiment: Experiment, name: str, seed: int) -> Iterator[Job]:
    """Yield the jobs that train the method `name`, and draw any pairs of a teacher for it. The jobs of its
    parent, the model that it distils, are not among them."""
    job, folder = partial(Job, method=name, seed=seed, gpu=True, priority=1), paths.model(root, seed, name)
    inputs = {"validation": paths.real_rows(root, "test"), "data": paths.training_data(root, seed, name)}
    outputs = _model(root, seed, name) | {"log": folder / "log.parquet"}
    outputs |= {"vocabulary": folder / "vocabulary.json"}
    method = parse_method(name)
    if method.parent is None:
        inputs |= paths.stored_data(root, experiment) | paths.condition_labels(root, experiment)
        inputs |= paths.parent_files(root, experiment)
        yield job("train", inputs, outputs, experiment.train_settings(name, seed))
        return
    parent, model = paths.model(root, seed, method.parent), _model(root, seed, method.parent)
    if method.on_pairs:
        yield job("teach", model, {"pairs": inputs["data"]}, experiment.teach_settings(name, seed))
    inputs |= {"parent": model["model"], "parent_description": model["description"]}
    inputs |= {"parent_vocabulary": parent / "vocabulary.json"}
    yield job("distill", inputs, outputs, experiment.distill_settings(name, seed))


def _model(root: Path, seed: int, method: str) -> dict[str, Path]:
    folder = paths.model(root, seed, method)
    return {"model": folder / "model.safetensors", "description": folder / "model.json"}


def _evaluations(root: Path, experiment: Experiment, kind: AnyKind) -> Iterator[Job]:
    """Yield the jobs that draw samples, and that measure them."""
    reference, gpu = kind.reference, kind.costs.measuring(experiment).gpu
    comparisons = reference.comparisons(experiment)
    real = {name: reference.list_files(root, experiment, name) for name in comparisons}
    settings = {name: reference.settings_of(experiment, name) for name in comparisons}
    for run in paths.runs(experiment):
        samples, names = {"samples": paths.samples(root, run)}, run._asdict()
        sampling = experiment.sample_settings(run.evaluation, run.nfe, run.seed)
        inputs = _model(root, run.seed, run.method)
        yield Job("sample", inputs, samples, sampling, gpu=True, **names)
        for name in comparisons:
            outputs = {folder: paths.measured(root, run, folder, name) for folder in reference.outputs}
            inputs = samples | real[name]
            yield Job("evaluate", inputs, outputs, settings[name], gpu=gpu, origin=sampling, **names)


def _report(root: Path, experiment: Experiment, kind: AnyKind, table: list[Job]) -> Job:
    """Make the job of the report, which reads outputs of the jobs in `table`."""
    first = experiment.seeds[0]
    couplings = experiment.couplings() if kind.shows_pairs else ()

    def collect(name: str, *rules: str, among: Sequence[Job] = table) -> list[Path]:
        made = (job.outputs.get(name) for rule in rules for job in among if job.rule == rule)
        return [path for path in made if path]

    trained = [job for job in table if job.method in experiment.methods]
    ends = [job for job in table if job.evaluation and job.nfe in paths.shown_nfe(experiment, job.evaluation)]
    inputs = {
        "data": list(table[0].outputs.values()),
        "couplings": collect("metrics", "diagnose", "cover"),
        "logs": collect("log", "train", "distill", among=trained),
        "pictured": [paths.pairs(root, first, name) for name in couplings],
        "samples": collect("samples", "sample", among=[job for job in ends if job.seed == first]),
        "metrics": collect("metrics", "evaluate"),
        "properties": collect("properties", "evaluate", among=ends),
        "correlations": collect("metrics", "correlate"),
        "floors": collect("metrics", "floor"),
    }
    files = {"metrics": "metrics.parquet", "timings": "timings.parquet", "page": "report.html"}
    outputs = {name: root / file for name, file in files.items()} | {"figures": root / "figures"}
    return Job("report", inputs, outputs, experiment)
