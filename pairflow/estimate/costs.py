"""What each job takes: time, memory and disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pairflow.config import FLOWS, Experiment, TrainSettings, parse_method
from pairflow.config.methods import INDEPENDENT
from pairflow.data.source import DatasetSize
from pairflow.estimate.rates import Rate, Work, count_draws, tasks_of
from pairflow.kinds import kind_of
from pairflow.plan.job import Job

# Seconds and MiB of short jobs, and of long ones beside their long work; a step takes 3 s to import torch
# (AMD EPYC, 2 cores, torch 2.15, 2026-11-21).
SHORT = {
    **dict.fromkeys(("pair", "pair_shard", "cover", "potentials"), (1.0, 200.0)),
    **dict.fromkeys(("gather", "adopt", "diagnose"), (2.0, 300.0)),
    **dict.fromkeys(("train", "distill", "teach", "sample", "correlate"), (3.0, 700.0)),
    "report": (4.0, 500.0),
}
GUESS = (3.0, 400.0)  # of a rule that is not in the table, and that its kind of data does not know


class JobCost(NamedTuple):
    """What a job takes, with None for what nobody knows.

    `seconds` are wall time with `threads` cores to itself, or with a GPU. `memory_mb` is the memory of the
    process on a CPU and of the GPU on a GPU, `disk` the bytes that stay.
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
    """The cost of each job on `cores` cores; with the device cuda the jobs that can use a GPU do."""
    costs = {}
    for job in table:
        threads = cores if job.threads is None else min(job.threads, cores)
        gpu = device == "cuda" and job.gpu
        tasks = tasks_of(job, experiment, sizes, device)
        known = [rates[work] for work, _ in tasks if work in rates]
        short = _short_cost(job, experiment, sizes, threads)
        seconds, memory = short or GUESS
        if seconds is None or len(known) < len(tasks):
            seconds = memory = None
        else:
            seconds += _assignment_seconds(job)
            for (work, units), rate in zip(tasks, known, strict=True):
                seconds += (
                    units * rate.seconds / (threads if work.kind in ("pair", "lead") and not gpu else 1)
                )
            memory = max((rate.memory_mb for rate in known if rate.memory_mb), default=memory)
        size = next((rate.parameters for rate in known if rate.parameters), None)
        costs[job] = JobCost(seconds, memory, _disk(job, experiment, sizes, size), threads, gpu, not short)
    return costs


def _short_cost(
    job: Job, experiment: Experiment, sizes: DatasetSize, threads: int
) -> tuple[float | None, float | None] | None:
    """Seconds and MiB of a job without its long work; None and None for a job that nobody has timed, and None
    for a rule that nobody has."""
    kind, numbers = kind_of(experiment.data), sizes.rows * sizes.length
    pace, counted = kind.pace, job.origin or job.settings
    samples = getattr(counted, "samples", 0) * getattr(counted, "trials", 1)
    if not kind.is_timed(job):
        return None, None
    if job.rule == "preprocess":
        return 1.0 + pace.prepare * sizes.total * sizes.length, 200.0 + 2e-5 * sizes.total * sizes.length
    if job.rule in ("evaluate", "floor"):
        return 2.0 + samples * (pace.sample + pace.compare * numbers), 400.0 + 1e-5 * numbers
    if job.rule in SHORT:
        return SHORT[job.rule]
    if job.rule in kind.steps and pace.row:
        return 3.0 + pace.row * sizes.rows / threads, 400.0 + 1e-5 * numbers
    return None


def _disk(job: Job, experiment: Experiment, sizes: DatasetSize, parameters: int | None) -> float | None:
    """The bytes of a job's outputs, by what they are called."""
    rows, _ = count_draws(job)
    if "model" in job.outputs:  # raw and averaged, in float32
        return parameters and 8.0 * parameters
    if "pairs" in job.outputs:
        row = sizes.row_bytes if FLOWS[experiment.flow].tokens else 4.0 * sizes.length
        return 0.0 if job.rule == "pair_shard" else 2 * (rows or sizes.rows) * row
    if "samples" in job.outputs:
        return rows * sizes.row_bytes
    return sizes.total * sizes.row_bytes if "train" in job.outputs else 1e5


def _assignment_seconds(job: Job) -> float:
    """Seconds that transport in a batch spends on SciPy's assignments, measured in two dimensions
    (2026-11-23); in eight they take less than half as long."""
    if not isinstance(job.settings, TrainSettings) or parse_method(job.settings.method).couple == INDEPENDENT:
        return 0.0
    training = job.settings.training
    return training.iterations * training.batch_size * 6e-10 * (training.pool or training.batch_size) ** 2


def wall_seconds(todo: Sequence[Job], costs: Mapping[Job, JobCost], cores: int) -> float:
    """The longest chain of jobs that wait for one another, or the work that the cores or the one GPU share.

    Whichever is longer: the jobs take that long if cores and GPU are never idle. Unknown times count as 0.
    """
    ends: dict[Path, float] = {}
    for job in todo:
        started = max((ends.get(path, 0.0) for path in job.needed), default=0.0)
        ends |= dict.fromkeys(job.outputs.values(), started + (costs[job].seconds or 0.0))
    cpu, gpu = busy_seconds(todo, costs)
    return max(cpu / cores, gpu, *ends.values(), 0.0)


def busy_seconds(todo: Sequence[Job], costs: Mapping[Job, JobCost]) -> tuple[float, float]:
    """Seconds of all CPU cores together, and of the GPU; unknown times count as 0."""
    seconds = {True: 0.0, False: 0.0}
    for cost in (costs[job] for job in todo):
        seconds[cost.gpu] += (cost.seconds or 0.0) * (1 if cost.gpu else cost.threads)
    return seconds[False], seconds[True]
