"""The long work of the workflow's jobs: its kinds, its sizes, and how many units of it a job has."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from pairflow import config
from pairflow.config.methods import INDEPENDENT
from pairflow.data.source import DatasetSize
from pairflow.plan.job import Job


@dataclass(frozen=True)
class Work:
    """A kind of long work and its sizes, on which the time of a unit depends.

    The kinds and their units are `train` (an iteration), `draw` (one step of one sample), `pair` (the pairing
    of a subset) and `lead` (one source that semidiscrete transport leads to its row). `network` is the
    network's settings as JSON, `batch` the rows of an iteration, `rows` the rows of a subset or a transport;
    `steps` and `noise` belong to a pairing.
    """

    kind: str
    device: str
    flow: str
    length: int
    vocabulary_size: int
    network: str = ""
    batch: int = 0
    rows: int = 0
    steps: int = 0
    noise: str = "uniform"


def count_draws(job: Job, length: int = 0) -> tuple[int, float]:
    """Return how many rows, of `length` tokens, a job draws from a model, and the number of network calls for
    each row; (0, 0) if it draws none."""
    match job.settings:
        case config.SampleSettings() | config.FlowSampleSettings() as drawn:
            rows, steps, calls = drawn.samples * drawn.trials, drawn.nfe, drawn.count_calls(drawn.nfe)
        case config.TeachSettings(count=rows, steps=steps):
            calls = steps + 1  # the greedy tail
        case config.SolveSettings(count=rows, steps=steps):
            calls = steps
        case config.CorrelateSettings(sources=sources, samples=samples, steps=steps):
            rows, calls = sources * samples, steps + 1
        case _:
            return 0, 0.0
    if job.method and config.BASES[config.parse_method(job.method).base].corruption == "absorbing":
        # A step that unmasks nothing in a row reuses the network's last output for it.
        return rows, calls - steps * (1 - 1 / steps) ** length
    return rows, calls


def tasks_of(
    job: Job, experiment: config.Experiment, sizes: DatasetSize, device: str
) -> list[tuple[Work, float]]:
    """List the long work of a job on a device (cpu or cuda), each with its number of units, such as
    iterations; empty for a short job. `sizes` is the size of the data."""
    network = json.dumps(experiment.network.model_dump(mode="json"), sort_keys=True)
    work = partial(
        Work,
        device=device if job.gpu else "cpu",
        flow=experiment.flow,
        length=sizes.length,
        vocabulary_size=sizes.vocabulary_size,
    )
    train, draw = partial(work, "train", network=network), work("draw", network=network)
    lead = work("lead", rows=sizes.rows)

    def pair(settings: config.PairSettings | config.CoverSettings, times: float) -> list[tuple[Work, float]]:
        if not settings.steps:
            return []
        rows, one = float(sizes.rows), work("pair", steps=settings.steps)
        if isinstance(settings, config.PairSettings):  # with equal subsets for all numbers of rows
            rows = min(rows, settings.keys) if settings.subsets == "auto" else rows / settings.subsets
            if settings.noise != "uniform":  # GPUs have no such engine
                one = replace(one, noise=settings.noise, device="cpu")
        return [(replace(one, rows=ceil(rows)), sizes.rows / rows * times)]

    match job.settings:
        case config.PotentialsSettings():
            from pairflow.pairing.transport import sources_needed  # imports Numba

            return [(lead, float(sources_needed(sizes.rows)))]
        case (config.PairSettings() | config.CoverSettings()) as settings:
            return [] if job.rule == "gather" else pair(settings, 1 / job.shards)
        case config.TrainSettings(method=name, training=training):
            method, batch = config.parse_method(name), training.batch_size
            tasks = [(train(batch=batch), float(training.iterations))]
            if config.BASES[method.base].balanced:
                tasks.append((lead, float(training.iterations * batch)))
            return tasks
        case config.DistillSettings(distillation=training):
            tasks = [(train(batch=training.batch_size), float(training.iterations))]
            if not training.on_pairs:  # every iteration also calls the teacher's network
                tasks.append((draw, float(training.iterations * training.batch_size)))
            return tasks
    rows, calls = count_draws(job, sizes.length)
    return [(draw, rows * calls)] if rows else []


def needed(
    table: Iterable[Job], experiment: config.Experiment, sizes: DatasetSize, device: str
) -> list[Work]:
    """List the different works of these jobs, each once."""
    tasks = [task for job in table for task in tasks_of(job, experiment, sizes, device)]
    return list(dict.fromkeys(work for work, _ in tasks))


def count_bytes(
    job: Job, experiment: config.Experiment, sizes: DatasetSize, parameters: int | None
) -> float | None:
    """Estimate how many bytes a job's outputs take; None for the model of a network with an unknown number of
    `parameters`."""
    rows, _ = count_draws(job)
    if "model" in job.outputs:  # raw and averaged weights in float32
        return parameters and 8.0 * parameters
    if "pairs" in job.outputs:
        row = sizes.row_bytes if config.FLOWS[experiment.flow].tokens else 4.0 * sizes.length
        return 0.0 if job.rule == "pair_shard" else 2 * (rows or sizes.rows) * row
    if "samples" in job.outputs:
        return rows * sizes.row_bytes
    return sizes.total * sizes.row_bytes if "train" in job.outputs else 1e5


def count_assignments(job: Job) -> float:
    """Estimate the work of the assignments in a training with transport inside batches: for each row, the
    square of the number of rows that are assigned together. 0 for any other job."""
    if not isinstance(job.settings, config.TrainSettings):
        return 0.0
    base, training = config.BASES[config.parse_method(job.settings.method).base], job.settings.training
    if base.coupled or base.couple == INDEPENDENT:
        return 0.0
    return float(training.iterations * training.batch_size * (training.pool or training.batch_size) ** 2)
