"""How fast the long work of an experiment goes: which work a job does, how much of it, and the known rates.

Seconds are those of one CPU core, or of a GPU. On a CPU that is the time of a job with a core to itself.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pairflow import config
from pairflow.config.training import Distillation
from pairflow.data.source import DatasetSize
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs

_RECORDED = Path(__file__).parent / "recorded.json"
_JOB = ("method", "seed", "evaluation", "nfe")  # columns that tell a rule's jobs apart


@dataclass(frozen=True)
class Work:
    """A kind of work with its sizes: `train`, `dcd` (an iteration), `draw` (a row and a step), `pair` (all).

    `corruption` is the name of the flow where that has no tokens. `network` is its settings as JSON, `batch`
    the rows of an iteration, `steps` and `subsets` belong to a pairing, whose `rows` are the training rows.
    """

    kind: str
    device: str
    length: int
    vocabulary_size: int
    corruption: str = "uniform"
    network: str = ""
    batch: int = 0
    rows: int = 0
    steps: int = 0
    subsets: int = 1

    @property
    def tokens(self) -> bool:
        """Whether the rows are of tokens."""
        return self.corruption not in config.FLOWS


@dataclass(frozen=True)
class Rate:
    """Seconds of one unit of a `Work`, its memory, and in `origin` where these numbers are from.

    `call` is the network's part of a draw, if it was measured; `parameters` is the size of the network.
    """

    seconds: float
    memory_mb: float | None
    origin: str
    call: float | None = None
    parameters: int | None = None


class Task(NamedTuple):
    """The long part of a job: units of a work, and how many of them do not call the network."""

    work: Work
    units: float
    skipped: float = 0.0


def count_draws(job: Job) -> tuple[int, int]:
    """How many rows the job draws from a model, and the steps of each."""
    match job.settings:
        case config.SampleSettings(samples=samples, trials=trials, nfe=steps):
            return samples * trials, steps
        case config.FlowSampleSettings(samples=samples, trials=trials, nfe=steps):
            return samples * trials, steps
        case config.TeachSettings(count=count, steps=steps) | config.SolveSettings(count=count, steps=steps):
            return count, steps
        case config.CorrelateSettings(sources=sources, samples=samples, steps=steps):
            return sources * samples, steps
    return 0, 0


def task_of(job: Job, experiment: config.Experiment, sizes: DatasetSize, device: str) -> Task | None:
    """The long part of a job with a GPU or without (`device` cuda or cpu); None for a short job."""
    settings, device = job.settings, device if job.gpu else "cpu"
    flow = config.FLOWS[experiment.flow]
    work = partial(Work, device=device, length=sizes.length, vocabulary_size=sizes.vocabulary_size)
    if isinstance(settings, config.PairSettings | config.CoverSettings):
        if job.rule == "gather" or not settings.steps:
            return None
        subsets = getattr(settings, "subsets", 1)
        work = work if flow.tokens else partial(work, corruption=flow.name)
        return Task(work("pair", rows=sizes.rows, steps=settings.steps, subsets=subsets), 1 / job.shards)
    rows, steps = count_draws(job)
    if job.method is None or not (
        rows or isinstance(settings, config.TrainSettings | config.DistillSettings)
    ):
        return None
    method = config.parse_method(job.method)
    network = json.dumps(experiment.network.model_dump(mode="json"), sort_keys=True)
    corruption = method.corruption if flow.tokens else flow.name
    work = partial(work, corruption=corruption, network=network)
    if isinstance(settings, config.TrainSettings):
        return Task(work("train", batch=settings.training.batch_size), settings.training.iterations)
    if isinstance(settings, config.DistillSettings):
        training: Distillation = settings.distillation
        kind = "train" if training.on_pairs else method.distillations[-1]
        return Task(work(kind, batch=training.batch_size), training.iterations)
    # A step that changes nothing in a row of masks reuses the network's last answer.
    unchanged = (1 - 1 / steps) ** sizes.length if corruption == "absorbing" else 0.0
    if isinstance(settings, config.SampleSettings):
        calls = settings.count_calls(steps)
    else:
        calls = steps + flow.tokens  # the greedy tail
    return Task(work("draw"), rows * calls, rows * steps * unchanged)


def redraws_of(job: Job, experiment: config.Experiment, sizes: DatasetSize, device: str) -> Task | None:
    """The pairings of a training that draws its pairs again; None for any other job."""
    if not isinstance(job.settings, config.TrainSettings):
        return None
    training, coupling = job.settings.training, config.parse_method(job.settings.method).coupling
    if training.redraw is None or coupling is None:
        return None
    rounds = (training.iterations - 1) * training.batch_size // sizes.rows // training.redraw
    pairing = Job("pair", {}, {}, experiment.pair_settings(coupling, 0), gpu=True)
    task = task_of(pairing, experiment, sizes, device)
    return task and task._replace(units=float(rounds))


def needed(
    table: Iterable[Job], experiment: config.Experiment, sizes: DatasetSize, device: str
) -> list[Work]:
    """The work of these jobs whose rates their estimate needs."""
    tasks = (find(job, experiment, sizes, device) for job in table for find in (task_of, redraws_of))
    return list(dict.fromkeys(task.work for task in tasks if task))


def rates_from_timings(
    timings: pd.DataFrame, experiment: config.Experiment, sizes: DatasetSize, origin: str
) -> dict[Work, Rate]:
    """The rates that a finished experiment had; jobs whose time is not known are left out."""
    table = {(job.rule, *(getattr(job, key) for key in _JOB)): job for job in jobs(Path(), experiment)}
    parts: dict[Work, list[tuple[float, float, float]]] = {}
    rows = timings.dropna(subset=["device_seconds"]).reindex(columns=dict.fromkeys([*timings, *_JOB]))
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        job = table.get((row["step"], *(row[key] for key in _JOB)))
        device = "cuda" if str(row["device"]).startswith("cuda") else "cpu"
        task = job and task_of(job, experiment, sizes, device)
        if job and task and not redraws_of(job, experiment, sizes, device):
            part = (row["device_seconds"], task.units, row["peak_memory_mb"])
            parts.setdefault(task.work, []).append(part)
    rates = {}
    for work, group in parts.items():
        seconds, units, memory = zip(*group, strict=True)
        rates[work] = Rate(sum(seconds) / sum(units), max(memory), origin)
    return rates


def continuous_pairing(work: Work) -> Rate | None:
    """The rate of a continuous pairing on a CPU, whose time grows with M squared, T and d."""
    if work.tokens or (work.kind, work.device) != ("pair", "cpu"):
        return None
    seconds = work.rows**2 * work.steps * (2e-9 + 2.5e-11 * work.length)
    return Rate(
        seconds, 1200.0 + 1.2e-5 * work.rows * work.length, "docs/continuous.md (AMD EPYC, 2026-11-22)"
    )


@cache
def packaged() -> dict[Work, Rate]:
    """The rates that come with pairflow."""
    facts = json.loads(_RECORDED.read_text())
    return {Work(**entry["work"]): Rate(**entry["rate"]) for entry in facts}
