"""Computes the cost of each job, in time, memory and disk, and of all jobs together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pairflow.config import Experiment
from pairflow.config.methods import PAIRINGS
from pairflow.data.source import DatasetSize
from pairflow.estimate.rates import Rate, expected_rates, speedup
from pairflow.kinds import kind_of
from pairflow.plan.job import Job
from pairflow.plan.jobs import divide_cores, jobs
from pairflow.plan.work import Work, count_assignments, count_bytes, needed, tasks_of


class Fixed(NamedTuple):
    """Seconds and MiB of a job without its long work, and whether it reads all training rows."""

    seconds: float
    memory_mb: float
    reads: bool = False


# Importing torch takes 3 s (AMD EPYC, 2 cores, torch 2.15, 2026-11-21). `Costs.pace` has what a kind adds.
RULES = {
    **dict.fromkeys((*PAIRINGS, "pair_shard", "cover"), Fixed(1.0, 300.0, reads=True)),
    **dict.fromkeys(("gather", "adopt", "diagnose"), Fixed(2.0, 300.0, reads=True)),
    **dict.fromkeys(("train", "distill"), Fixed(3.0, 700.0, reads=True)),
    **dict.fromkeys(("teach", "sample", "sample_start", "correlate"), Fixed(3.0, 700.0)),
    **dict.fromkeys(("evaluate", "floor"), Fixed(2.0, 400.0)),
    "preprocess": Fixed(1.0, 200.0),
    "report": Fixed(4.0, 500.0, reads=True),
}
_OWN = Fixed(3.0, 900.0)  # of the steps that only one kind has
GUESS = Fixed(3.0, 400.0)  # of any other rule
_TOKEN = 1.2e-5  # least MiB of each token of the training rows (growth-2026-11-28.json)
_ASSIGNMENT = 6e-10  # seconds, in two dimensions (2026-11-23); in eight they take less than half as long
_LEAST = 1000  # MiB that a job asks for


class JobCost(NamedTuple):
    """What a job costs if it has its `threads` cores or the GPU to itself; a number is None if it is unknown.

    `memory_mb` is the memory of the job's process, or on a GPU of the GPU; `disk` is the bytes of the
    outputs. `guessed` says that seconds and memory include a guess, because nobody has measured such a step.
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
    """Compute {job: cost} for the jobs in `table` on `cores` cores, from the `rates` of their long work and
    the size of the data (`sizes`). With the device cuda, jobs that can use a GPU do."""
    costs, kind, shares = {}, kind_of(experiment.data), divide_cores(experiment, table, cores)
    for job in table:
        gpu = device == "cuda" and job.gpu
        threads = cores if job.threads is None else min(job.threads, cores)
        threads = threads if gpu else shares.get(job.rule, threads)
        tasks = tasks_of(job, experiment, sizes, device)
        known = [(work, units, rates[work]) for work, units in tasks if work in rates]
        short = _short_cost(job, experiment, sizes, threads)
        seconds, memory, reads = short or GUESS
        seconds += _ASSIGNMENT * count_assignments(job)
        for work, units, rate in known:
            gained = threads if work.kind in ("pair", "lead") else speedup(threads)
            seconds += units * rate.seconds / (1 if gpu else gained)
        memory = max((rate.memory_mb for *_, rate in known if rate.memory_mb), default=memory)
        memory = max(memory, _TOKEN * sizes.rows * sizes.length if reads else 0.0)
        size = next((rate.parameters for *_, rate in known if rate.parameters), None)
        timed = kind.costs.is_timed(job)
        time = seconds if timed and len(known) == len(tasks) else None
        disk = count_bytes(job, experiment, sizes, size)
        costs[job] = JobCost(time, memory if timed else None, disk, threads, gpu, not short)
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


def _short_cost(job: Job, experiment: Experiment, sizes: DatasetSize, threads: int) -> Fixed | None:
    """Return what a job takes without its long work, such as training: seconds, MiB, and whether it reads all
    training rows. None for an unknown rule."""
    kind, counted, total = kind_of(experiment.data), job.origin or job.settings, sizes.total * sizes.length
    pace = kind.costs.pace
    numbers = min(sizes.rows, pace.most) * sizes.length
    own = _OWN if job.rule in kind.steps and pace.row is not None else None
    if (fixed := RULES.get(job.rule, own)) is None:
        return None
    seconds, memory = 0.0, 0.0  # that grow with the data
    if job.rule == "preprocess":
        # The process that collects what the others read does a tenth of the work.
        seconds = kind.costs.seconds_to_prepare(experiment.data) * total * max(1 / threads, 0.1)
        memory = 1e-5 * total
    elif job.rule == "diagnose":
        seconds = 2e-7 * sizes.rows * sizes.length
    elif job.rule in ("evaluate", "floor"):
        samples = getattr(counted, "samples", 0) * getattr(counted, "trials", 1)
        seconds, memory = samples * (pace.sample + pace.compare * numbers), 1e-5 * numbers
    elif own:
        seconds = ((pace.row or 0.0) * min(sizes.rows, pace.most) + pace.token * numbers) / threads
        memory = 1e-5 * numbers
    return Fixed(fixed.seconds + seconds, fixed.memory_mb + memory, fixed.reads)


def wall_seconds(todo: Sequence[Job], costs: Mapping[Job, JobCost], cores: int) -> float:
    """Estimate the seconds until the jobs `todo`, each after the makers of its inputs, are done.

    That is the time of the longest chain of jobs, of all CPU work on `cores` cores, or of all work on the one
    GPU, whichever is longest. Jobs of unknown time count as 0.
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
