"""How fast the long work of an experiment goes: which work a job does, how much of it, and the known rates.

Seconds are those of one CPU core, or of a GPU. On a CPU that is the time of a job with a core to itself.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pairflow.config import DISTILLATIONS, Experiment, parse_method
from pairflow.estimate.sizes import Sizes
from pairflow.plan.jobs import Job, jobs

_RECORDED = Path(__file__).parent / "recorded.json"
_JOB = ("method", "seed", "evaluation", "nfe")  # columns that tell a rule's jobs apart


@dataclass(frozen=True)
class Work:
    """A kind of work with its sizes: `train`, `dcd` (an iteration), `draw` (a row and a step), `pair` (all).

    `network` is its settings as JSON, `batch` the rows of an iteration, `steps` and `subsets` those of a
    pairing, whose `rows` are the training rows.
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


_DRAWS = {  # rule -> the rows that it draws, the steps of each
    "sample": lambda settings: (settings.samples * settings.trials, settings.nfe),
    "teach": lambda settings: (settings.count, settings.steps),
    "correlate": lambda settings: (settings.sources * settings.samples, settings.steps),
}


def drawn_rows(job: Job) -> int:
    """How many rows the job draws from a model."""
    return _DRAWS[job.rule](job.settings)[0] if job.rule in _DRAWS else 0


def task_of(job: Job, experiment: Experiment, sizes: Sizes, device: str) -> Task | None:
    """The long part of a job with a GPU or without (`device` cuda or cpu); None for a short job."""
    settings, device = job.settings, device if job.gpu else "cpu"
    shared = {"device": device, "length": sizes.length, "vocabulary_size": sizes.vocabulary_size}
    if job.rule in ("pair", "pair_shard", "cover"):
        subsets, shards = getattr(settings, "subsets", 1), job.shards
        work = Work("pair", **shared, rows=sizes.rows, steps=settings.steps or 0, subsets=subsets)
        return Task(work, 1 / shards) if work.steps else None
    if job.rule not in ("train", "distill", *_DRAWS):
        return None
    shared["corruption"] = parse_method(job.method).corruption
    shared["network"] = json.dumps(experiment.network.model_dump(mode="json"), sort_keys=True)
    if job.rule == "train":
        training = settings.training
        return Task(Work("train", **shared, batch=training.batch_size), training.iterations)
    if job.rule == "distill":
        training = settings.distillation
        kind = "train" if DISTILLATIONS[training.name].on_pairs else training.name
        return Task(Work(kind, **shared, batch=training.batch_size), training.iterations)
    rows, steps = _DRAWS[job.rule](settings)
    # Without a change in a row of masks the network's answer is the one before, and is not asked for again.
    unchanged = (1 - 1 / steps) ** sizes.length if shared["corruption"] == "absorbing" else 0.0
    tail = getattr(settings, "greedy_tail", True)
    return Task(Work("draw", **shared), rows * (steps + tail), rows * steps * unchanged)


def needed(table: Iterable[Job], experiment: Experiment, sizes: Sizes, device: str) -> list[Work]:
    """The work of these jobs whose rates their estimate needs."""
    tasks = (task_of(job, experiment, sizes, device) for job in table)
    return list(dict.fromkeys(task.work for task in tasks if task))


def rates_from_timings(
    timings: pd.DataFrame, experiment: Experiment, sizes: Sizes, origin: str
) -> dict[Work, Rate]:
    """The rates that a finished experiment had; jobs whose time is not known are left out."""
    table = {(job.rule, *(getattr(job, key) for key in _JOB)): job for job in jobs(Path(), experiment)}
    parts: dict[Work, list[tuple[float, float, float]]] = {}
    rows = timings.dropna(subset=["device_seconds"]).reindex(columns=dict.fromkeys([*timings, *_JOB]))
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        job = table.get((row["step"], *(row[key] for key in _JOB)))
        device = "cuda" if str(row["device"]).startswith("cuda") else "cpu"
        task = job and task_of(job, experiment, sizes, device)
        if task:
            part = (row["device_seconds"], task.units, row["peak_memory_mb"])
            parts.setdefault(task.work, []).append(part)
    rates = {}
    for work, group in parts.items():
        seconds, units, memory = zip(*group, strict=True)
        rates[work] = Rate(sum(seconds) / sum(units), max(memory), origin)
    return rates


@cache
def packaged() -> dict[Work, Rate]:
    """The rates that come with pairflow."""
    facts = json.loads(_RECORDED.read_text())
    return {Work(**entry["work"]): Rate(**entry["rate"]) for entry in facts}


def as_json(rates: Mapping[Work, Rate]) -> str:
    """The text of the file of rates that comes with pairflow."""
    entries = ({"work": asdict(work), "rate": asdict(rate)} for work, rate in rates.items())
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n"
