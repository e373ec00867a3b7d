"""What each job takes: time, memory and disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pairflow.config import FLOWS, Experiment, TrainSettings, parse_method
from pairflow.config.methods import INDEPENDENT
from pairflow.data.costs import Cost, ShortJob
from pairflow.data.source import DatasetSize
from pairflow.estimate.rates import Rate, Work, count_draws, redraws_of, task_of
from pairflow.kinds import kind_of
from pairflow.plan.job import Job


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
        task = task_of(job, experiment, sizes, device)
        rate = rates.get(task.work) if task else None
        seconds, memory, disk = _apart_from_long_work(job, experiment, sizes, rate, threads)
        if task and rate and seconds is not None:
            work = task.units * rate.seconds - task.skipped * (rate.call or 0.0)
            seconds += work / threads if task.work.kind == "pair" and not gpu else work
            memory = rate.memory_mb
        elif task:
            seconds, memory = None, None
        redraws = redraws_of(job, experiment, sizes, device)
        if redraws and seconds is not None:
            known = rates.get(redraws.work)
            seconds = seconds + redraws.units * known.seconds / (1 if gpu else threads) if known else None
        costs[job] = JobCost(seconds, memory, disk, threads, gpu)
    return costs


def _apart_from_long_work(
    job: Job, experiment: Experiment, sizes: DatasetSize, rate: Rate | None, threads: int
) -> Cost:
    """The cost of a job without the seconds and the memory of its long work: see `data.costs`."""
    kind = kind_of(experiment.data)
    of_pairs = sizes.row_bytes if FLOWS[experiment.flow].tokens else 4.0 * sizes.length
    weights = None
    if rate and rate.parameters is not None:  # raw and averaged in float32
        weights = 8.0 * rate.parameters + kind.stored_bytes(sizes)
    pairs, drawn = 2 * sizes.rows * of_pairs, count_draws(job)[0]
    counted = job.origin or job.settings
    samples = getattr(counted, "samples", 0) * getattr(counted, "trials", 1)
    costs = kind.costs(ShortJob(experiment, sizes, job.settings, samples, threads)) | {
        "pair": Cost(1.0, 200.0, pairs),
        "pair_shard": Cost(1.0, 200.0, 0.0),
        "potentials": Cost(60.0, 500.0, pairs),
        "gather": Cost(2.0, 300.0, pairs),
        "adopt": Cost(2.0, 300.0, pairs),
        "cover": Cost(1.0, None, 1e4),
        "train": Cost(3.0 + _assignment_seconds(job, sizes), None, weights),
        "distill": Cost(3.0, None, weights),
        "teach": Cost(3.0, None, 2 * drawn * of_pairs),
        "diagnose": Cost(2.0, 300.0, 1e4),
        "correlate": Cost(3.0, None, 1e4),
        "sample": Cost(3.0, None, drawn * sizes.row_bytes),
        "report": Cost(4.0, 500.0, 1e6),
    }
    return costs[job.rule]


def _assignment_seconds(job: Job, sizes: DatasetSize) -> float:
    """Seconds that transport in a batch spends on matrices of distances and on SciPy's assignments.

    They were measured in two dimensions (2026-11-23); in eight they take less than half as long.
    """
    settings = job.settings
    if not isinstance(settings, TrainSettings) or parse_method(settings.method).couple == INDEPENDENT:
        return 0.0
    training = settings.training
    pool = training.pool or training.batch_size
    return (
        training.iterations * training.batch_size / pool * (6e-10 * pool**3 + 5e-10 * pool**2 * sizes.length)
    )


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
