"""What each job takes: time, memory and disk."""

from collections.abc import Mapping, Sequence
from math import log2
from pathlib import Path
from typing import NamedTuple

from pairflow.config import Experiment, TrainSettings
from pairflow.data.source import DatasetSize
from pairflow.estimate.rates import Rate, Work, count_draws, redraws_of, task_of
from pairflow.kinds.text.settings import JudgeTransformer
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
            seconds, memory = _UNKNOWN
        redraws = redraws_of(job, experiment, sizes, device)
        if redraws and seconds is not None:
            known = rates.get(redraws.work)
            seconds = seconds + redraws.units * known.seconds / (1 if gpu else threads) if known else None
        costs[job] = JobCost(seconds, memory, disk, threads, gpu)
    return costs


_UNKNOWN = (None, None)


def _apart_from_long_work(
    job: Job, experiment: Experiment, sizes: DatasetSize, rate: Rate | None, threads: int
) -> tuple[float | None, float | None, float | None]:
    """(seconds, MiB, bytes on disk) of a job, without the seconds and the memory of its long work.

    These are measurements of one machine: AMD EPYC, 2 cores, torch 2.15, 2026-11-21. A step takes 3 s to
    import torch and 1 s to import RDKit. No other step runs a network for as long as a `Task` does, save
    those whose time is unknown: ChemNet, Inception, DINOv2 and GPT-2.
    """
    modality, rows, pixels = experiment.modality, sizes.rows, sizes.rows * sizes.length
    every = rows + sizes.validation_rows
    rows_on_disk = sizes.length * log2(max(2, sizes.vocabulary_size)) / 8  # bytes of a row of random tokens
    numbers = 4.0 * sizes.length if experiment.flow == "continuous" else rows_on_disk  # of a row of a pair
    counted = job.origin or job.settings
    samples = getattr(counted, "samples", 0) * getattr(counted, "trials", 1)
    extractor_known = getattr(job.settings, "extractor", None) == "classifier"
    in_torch = 700.0 + 12e-6 * pixels
    described = every * rows_on_disk
    weights = None
    if rate and rate.parameters is not None:  # raw and averaged in float32; 8 bytes for each known molecule
        weights = 8.0 * rate.parameters + (8 * rows if modality == "molecules" else 0)
    evaluate: tuple[float | None, float | None]
    if modality in ("text", "tokens"):
        preprocess = (1.0 + 5e-8 * every * sizes.length, 150.0 + 2e-5 * every * sizes.length)
        evaluate = (2.0 + samples * (1.1e-10 * pixels + 4e-7 * sizes.length), 250.0 + 2e-6 * pixels)
        evaluate = _UNKNOWN if experiment.judge_settings().gen_ppl else evaluate
    elif modality == "vectors":
        rows_on_disk = numbers
        preprocess = (1.0 + 1e-7 * every * sizes.length, 200.0 + 3e-5 * every * sizes.length)
        described = every * rows_on_disk
        evaluate = (1.5 + samples * (1e-5 + 1e-9 * pixels), 250.0 + 2e-5 * pixels)
    elif modality == "images":
        preprocess = (1.0 + 5e-8 * every * sizes.length, 150.0 + 1e-5 * every * sizes.length)
        evaluate = (3.0 + samples * (2e-11 * pixels + 7e-4), in_torch) if extractor_known else _UNKNOWN
    else:
        per_token = 1e-5 if getattr(experiment.data, "representation", "smiles") == "selfies" else 1.8e-6
        preprocess = (1.0 + per_token * every * sizes.length, 200.0 + 1.4e-3 * every)
        described = every * (sizes.length / 4 + 12)
        seconds = 1.0 + samples * (1.6e-4 + 1.5e-8 * rows)
        evaluate = _UNKNOWN if experiment.chemistry_settings().fcd else (seconds, 450.0 + 3e-4 * rows)

    def features(count: int) -> tuple[float | None, float | None]:
        return (3.0 + 7e-4 * count, in_torch) if extractor_known else _UNKNOWN

    return {
        "preprocess": (*preprocess, described),
        "describe_molecules": (2.0 + 3e-4 * (rows + min(rows, 20_000)) / threads, 450.0, 60.0 * rows),
        "chemnet": (*_UNKNOWN, 1e6),
        "classify": (3.0 + 9e-5 * sizes.length * getattr(counted, "iterations", 0), 900.0, 1e6),
        "reference": (*features(rows), 1e6),
        "floor": (*(evaluate if modality in ("text", "tokens", "vectors") else features(samples)), 1e6),
        "pair": (1.0, 200.0, 2 * rows * numbers),
        "pair_shard": (1.0, 200.0, 0.0),
        "gather": (2.0, 300.0, 2 * rows * numbers),
        "adopt": (2.0, 300.0, 2 * rows * rows_on_disk),
        "cover": (1.0, None, 1e4),
        "train_judge": (3.0 + _judge_seconds(experiment.judge_settings().transformer, sizes), 950.0, 1e6),
        "train": (3.0 + _assignment_seconds(job, sizes), None, weights),
        "distill": (3.0, None, weights),
        "teach": (3.0, None, 2 * count_draws(job)[0] * numbers),
        "diagnose": (2.0, 300.0, 1e4),
        "correlate": (3.0, None, 1e4),
        "sample": (3.0, None, count_draws(job)[0] * rows_on_disk),
        "evaluate": (*evaluate, 3e4),
        "report": (4.0, 500.0, 1e6),
    }[job.rule]


def _judge_seconds(judge: JudgeTransformer | None, sizes: DatasetSize) -> float:
    """The training of the second judge of text, measured on the same machine on 2026-11-23."""
    if judge is None:
        return 0.0
    tokens = judge.iterations * judge.batch_size * sizes.length
    in_blocks = judge.blocks * (2e-7 + 1.5e-9 * judge.width)
    return tokens * judge.width * (in_blocks + 2e-10 * sizes.vocabulary_size)


def _assignment_seconds(job: Job, sizes: DatasetSize) -> float:
    """Seconds that `ot` spends on its matrices of distances and on `scipy.optimize.linear_sum_assignment`.

    Assignments were measured in two dimensions (2026-11-23); in eight they take less than half as long.
    """
    settings = job.settings
    if not isinstance(settings, TrainSettings) or settings.method != "ot":
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
