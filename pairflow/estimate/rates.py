"""Finds the long work of jobs: which kind, how many units, and how many seconds a unit takes.

Seconds are of one CPU core, or of a GPU.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from math import ceil
from pathlib import Path
from typing import Any

from pairflow import config
from pairflow.artifacts import read_provenance
from pairflow.data.source import DatasetSize
from pairflow.plan.job import Job

_RECORDED = Path(__file__).parent / "recorded.json"


@dataclass(frozen=True)
class Work:
    """A kind of long work and its sizes, on which the time of a unit depends.

    The kinds and their units are `train` (an iteration), `draw` (one step of one sample), `pair` (the pairing
    of a subset) and `lead` (one source that semidiscrete transport leads to its row). `network` is the
    network's settings as JSON, `batch` the rows of an iteration, `rows` the rows of a subset or a transport;
    `steps` belongs to a pairing. The kind of noise makes no difference to the time.
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


@dataclass(frozen=True)
class Rate:
    """Seconds for one unit of a `Work`, its memory, where both numbers come from, and the network's size."""

    seconds: float
    memory_mb: float | None
    origin: str
    parameters: int | None = None


def count_draws(job: Job, length: int = 0) -> tuple[int, float]:
    """Count the rows of this length that a job draws from a model, and the network calls for each row."""
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
    """List the long work of a job on a device (cpu or cuda), with numbers of units; empty for a short job."""
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

    def pair(settings: Any, times: float) -> list[tuple[Work, float]]:
        if not settings.steps:
            return []
        rows = float(sizes.rows)
        if isinstance(settings, config.PairSettings):  # with equal subsets for all numbers of rows
            rows = min(rows, settings.keys) if settings.subsets == "auto" else rows / settings.subsets
        return [(work("pair", rows=ceil(rows), steps=settings.steps), sizes.rows / rows * times)]

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


def rates_of(
    finished: Iterable[Job], experiment: config.Experiment, sizes: DatasetSize, origin: str, machine: str = ""
) -> dict[Work, Rate]:
    """Read rates from the provenance of finished jobs with a single work; with `machine` only of its jobs."""
    parts: dict[Work, list[tuple[float, float, float]]] = {}
    parameters: dict[Work, int] = {}
    for job in finished:
        record = read_provenance(job.record)
        device = "cuda" if str(record.get("device")).startswith("cuda") else "cpu"
        seconds, tasks = record.get("device_seconds"), tasks_of(job, experiment, sizes, device)
        if seconds is not None and len(tasks) == 1 and machine in ("", record.get("machine")):
            [(work, units)] = tasks
            threads = record.get("threads") or 1
            seconds *= speedup(threads) / threads  # of one thread, which wastes less
            parts.setdefault(work, []).append((seconds, units, record.get("peak_memory_mb", 0.0)))
            if (model := job.outputs.get("model")) and model.is_file():
                parameters[work] = model.stat().st_size // 8  # raw and averaged weights in float32
    rates = {}
    for work, group in parts.items():
        times, counts, memory = zip(*group, strict=True)
        rates[work] = Rate(sum(times) / sum(counts), max(memory), origin, parameters.get(work))
    return rates


def speedup(threads: int) -> float:
    """How many times as fast as one thread a network works on several; measured for two: 1.3 to 1.7."""
    return 1 + 0.4 * (threads - 1)


@cache
def packaged() -> dict[Work, Rate]:
    """Read the rates that come with pairflow, recorded on other machines."""
    facts = json.loads(_RECORDED.read_text())
    return {Work(**entry["work"]): Rate(**entry["rate"]) for entry in facts}
