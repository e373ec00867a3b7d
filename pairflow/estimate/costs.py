"""Computes the cost of each job, in time, memory and disk, and of all jobs together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pairflow.config import BASES, FLOWS, Experiment, TrainSettings, parse_method
from pairflow.config.methods import INDEPENDENT, PAIRINGS
from pairflow.data.source import DatasetSize
from pairflow.estimate.arithmetic import expected_rates
from pairflow.estimate.rates import Rate, Work, count_draws, needed, speedup, tasks_of
from pairflow.kinds import kind_of
from pairflow.plan.job import Job
from pairflow.plan.jobs import divide_cores, jobs

# Seconds and MiB of a rule, without its long work. Importing torch takes 3 s (AMD EPYC, 2 cores, torch 2.15,
# 2026-11-21).
SHORT = {
    **dict.fromkeys((*PAIRINGS, "pair_shard", "cover"), (1.0, 300.0)),
    **dict.fromkeys(("gather", "adopt"), (2.0, 300.0)),
    **dict.fromkeys(("train", "distill", "teach", "sample", "sample_start", "correlate"), (3.0, 700.0)),
    "report": (4.0, 500.0),
}
# Jobs that read all training rows, and MiB that each token of these takes at least (growth-2026-11-28.json).
_READERS = (*PAIRINGS, "pair_shard", "gather", "cover", "diagnose", "train", "distill", "report")
_MEMORY = 1.2e-5
_LEAST = 1000  # MiB that a job asks for
GUESS = (3.0, 400.0)  # for any rule without an entry


class JobCost(NamedTuple):
    """The cost of a job; None for a number that is unknown.

    `seconds` are wall time if the job has `threads` cores or a GPU to itself. `memory_mb` is the memory of
    the process on a CPU and of the GPU on a GPU, and `disk` the bytes of its outputs. `guessed` says
    that time and memory are from `GUESS`.
    """

    seconds: float | None
    memory_mb: float | None
    disk: float | None
    threads: int = 1
    gpu: bool = False
    guessed: bool = False


def job_costs(
    table: Sequence[Job],
    experiment: Experiment,
    sizes: DatasetSize,
    rates: Mapping[Work, Rate],
    cores: int,
    device: str,
) -> dict[Job, JobCost]:
    """Compute the cost of each job on `cores` cores; with the device cuda, jobs that can use a GPU do."""
    costs, kind, shares = {}, kind_of(experiment.data), divide_cores(experiment, table, cores)
    for job in table:
        gpu = device == "cuda" and job.gpu
        threads = cores if job.threads is None else min(job.threads, cores)
        threads = threads if gpu else shares.get(job.rule, threads)
        tasks = tasks_of(job, experiment, sizes, device)
        known = [rates[work] for work, _ in tasks if work in rates]
        short = _short_cost(job, experiment, sizes, threads)
        seconds, memory = short or GUESS
        cost = JobCost(None, None, None, threads, gpu, not short)
        if kind.costs.is_timed(job):
            memory = max((rate.memory_mb for rate in known if rate.memory_mb), default=memory)
            if job.rule in _READERS:
                memory = max(memory, _MEMORY * sizes.rows * sizes.length)
            cost = cost._replace(memory_mb=memory)
        if kind.costs.is_timed(job) and len(known) == len(tasks):
            seconds += _assignment_seconds(job)
            for (work, units), rate in zip(tasks, known, strict=True):
                gained = threads if work.kind in ("pair", "lead") else speedup(threads)
                seconds += units * rate.seconds / (1 if gpu else gained)
            cost = cost._replace(seconds=seconds)
        size = next((rate.parameters for rate in known if rate.parameters), None)
        costs[job] = cost._replace(disk=_disk(job, experiment, sizes, size))
    return costs


def memory_requests(root: Path, experiment: Experiment, sizes: DatasetSize) -> dict[str, int]:
    """Return the MiB that Snakemake and a cluster reserve for a job of each rule on a CPU: a fifth more than
    the largest job of the rule takes by recorded rates. A rule whose memory is unknown is absent."""
    table = jobs(root, experiment)
    rates = expected_rates(needed(table, experiment, sizes, "cpu"), experiment, sizes)
    largest: dict[str, float] = {}
    for job, cost in job_costs(table, experiment, sizes, rates, 1, "cpu").items():
        if cost.memory_mb is not None and not cost.guessed:
            largest[job.rule] = max(cost.memory_mb, largest.get(job.rule, 0.0))
    return {rule: max(_LEAST, round(1.2 * memory)) for rule, memory in largest.items()}


def _short_cost(
    job: Job, experiment: Experiment, sizes: DatasetSize, threads: int
) -> tuple[float, float] | None:
    """Return seconds and MiB of a job without its long work (`Work`); None for an unknown rule."""
    kind = kind_of(experiment.data)
    pace, counted = kind.costs.pace, job.origin or job.settings
    rows = min(sizes.rows, pace.most)
    numbers = rows * sizes.length
    samples = getattr(counted, "samples", 0) * getattr(counted, "trials", 1)
    if job.rule == "preprocess":
        seconds = kind.costs.seconds_to_prepare(experiment.data) * sizes.total * sizes.length
        # The process that collects what the others read does a tenth of the work.
        return 1.0 + seconds * max(1 / threads, 0.1), 200.0 + 1e-5 * sizes.total * sizes.length
    if job.rule == "diagnose":
        return 2.0 + 2e-7 * sizes.rows * sizes.length, 300.0
    if job.rule in ("evaluate", "floor"):
        return 2.0 + samples * (pace.sample + pace.compare * numbers), 400.0 + 1e-5 * numbers
    if job.rule in kind.steps and pace.row is not None:
        return 3.0 + (pace.row * rows + pace.token * numbers) / threads, 900.0 + 1e-5 * numbers
    return SHORT.get(job.rule)


def _disk(job: Job, experiment: Experiment, sizes: DatasetSize, parameters: int | None) -> float | None:
    """Estimate the bytes of a job's outputs from the names of these; None for an unknown network."""
    rows, _ = count_draws(job)
    if "model" in job.outputs:  # raw and averaged weights in float32
        return parameters and 8.0 * parameters
    if "pairs" in job.outputs:
        row = sizes.row_bytes if FLOWS[experiment.flow].tokens else 4.0 * sizes.length
        return 0.0 if job.rule == "pair_shard" else 2 * (rows or sizes.rows) * row
    if "samples" in job.outputs:
        return rows * sizes.row_bytes
    return sizes.total * sizes.row_bytes if "train" in job.outputs else 1e5


def _assignment_seconds(job: Job) -> float:
    """Estimate the seconds of SciPy's assignments in a training with transport inside batches.

    The rate was measured in two dimensions (2026-11-23); in eight they take less than half as long."""
    if not isinstance(job.settings, TrainSettings):
        return 0.0
    base, training = BASES[parse_method(job.settings.method).base], job.settings.training
    if base.coupled or base.couple == INDEPENDENT:
        return 0.0
    return training.iterations * training.batch_size * 6e-10 * (training.pool or training.batch_size) ** 2


def wall_seconds(todo: Sequence[Job], costs: Mapping[Job, JobCost], cores: int) -> float:
    """Estimate the seconds until all jobs are done, if cores and GPU never idle; unknown times are 0.

    This is the longest of three: the longest chain of jobs that wait for one another, the work of all cores
    divided by their number, and the work of the one GPU.
    """
    ends: dict[Path, float] = {}
    for job in todo:
        started = max((ends.get(path, 0.0) for path in job.needed), default=0.0)
        ends |= dict.fromkeys(job.outputs.values(), started + (costs[job].seconds or 0.0))
    cpu, gpu = busy_seconds(todo, costs)
    return max(cpu / cores, gpu, *ends.values(), 0.0)


def busy_seconds(todo: Sequence[Job], costs: Mapping[Job, JobCost]) -> tuple[float, float]:
    """Sum the seconds of all CPU cores, and the seconds of the GPU; unknown times count as 0."""
    seconds = {True: 0.0, False: 0.0}
    for cost in (costs[job] for job in todo):
        seconds[cost.gpu] += (cost.seconds or 0.0) * (1 if cost.gpu else cost.threads)
    return seconds[False], seconds[True]
