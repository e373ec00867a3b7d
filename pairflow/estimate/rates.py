"""The long work of an experiment: which work a job does, how much of it, and how fast it is known to go.

Seconds are those of one CPU core, or of a GPU. On a CPU that is the time of a job with a core to itself.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from pairflow import config
from pairflow.artifacts import read_provenance
from pairflow.data.source import DatasetSize
from pairflow.pairing.transport import sources_needed
from pairflow.plan.job import Job

_RECORDED = Path(__file__).parent / "recorded.json"


@dataclass(frozen=True)
class Work:
    """A kind of work with its sizes: `train` (an iteration), `draw` (a row and a step), `pair` (all rows),
    `lead` (a source to one of the rows, by semidiscrete transport).

    `network` is its settings as JSON, `batch` the rows of an iteration; `steps` and `subsets` belong to a
    pairing. `rows` are the training rows that are paired, or led to. Every kind of noise takes as long.
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
    subsets: int = 1


@dataclass(frozen=True)
class Rate:
    """Seconds of one unit of a `Work`, its memory, where these numbers are from, and the network's size."""

    seconds: float
    memory_mb: float | None
    origin: str
    parameters: int | None = None


def count_draws(job: Job, length: int = 0) -> tuple[int, float]:
    """How many rows of that length the job draws from a model, and the network's calls for each."""
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
        # A step that changes nothing in a row of masks takes the network's last answer.
        return rows, calls - steps * (1 - 1 / steps) ** length
    return rows, calls


def tasks_of(
    job: Job, experiment: config.Experiment, sizes: DatasetSize, device: str
) -> list[tuple[Work, float]]:
    """The long work of a job on that device (cpu or cuda) and its units of it; none of a short job."""
    network = json.dumps(experiment.network.model_dump(mode="json"), sort_keys=True)
    work = partial(
        Work,
        device=device if job.gpu else "cpu",
        flow=experiment.flow,
        length=sizes.length,
        vocabulary_size=sizes.vocabulary_size,
    )
    train, draw = partial(work, "train", network=network), work("draw", network=network)

    def pairings(drawn: Any, times: float) -> list[tuple[Work, float]]:
        rule = {"steps": drawn.steps, "subsets": getattr(drawn, "subsets", 1)}
        return [(work("pair", rows=sizes.rows, **rule), times)] if drawn.steps else []

    lead = work("lead", rows=sizes.rows)
    match job.settings:
        case config.PotentialsSettings():
            return [(lead, float(sources_needed(sizes.rows)))]
        case (config.PairSettings() | config.CoverSettings()) as drawn:
            return [] if job.rule == "gather" else pairings(drawn, 1 / job.shards)
        case config.TrainSettings(method=method, training=training):
            tasks = [(train(batch=training.batch_size), float(training.iterations))]
            coupling = config.parse_method(method).coupling
            if config.BASES[config.parse_method(method).base].balanced:
                tasks.append((lead, float(training.iterations * training.batch_size)))
            if training.redraw and coupling:
                rounds = (training.iterations - 1) * training.batch_size // sizes.rows // training.redraw
                tasks += pairings(experiment.pair_settings(coupling, 0), rounds)
            return tasks
        case config.DistillSettings(distillation=optimisation):
            tasks = [(train(batch=optimisation.batch_size), float(optimisation.iterations))]
            if not optimisation.on_pairs:  # there is a teacher, whose network is called as well
                tasks.append((draw, float(optimisation.iterations * optimisation.batch_size)))
            return tasks
    rows, calls = count_draws(job, sizes.length)
    return [(draw, rows * calls)] if rows else []


def needed(
    table: Iterable[Job], experiment: config.Experiment, sizes: DatasetSize, device: str
) -> list[Work]:
    """The work of these jobs whose rates their estimate needs."""
    tasks = [task for job in table for task in tasks_of(job, experiment, sizes, device)]
    return list(dict.fromkeys(work for work, _ in tasks))


def rates_of(
    finished: Iterable[Job], experiment: config.Experiment, sizes: DatasetSize, origin: str, here: str = ""
) -> dict[Work, Rate]:
    """The rates that finished jobs of a single work had, by their records; with `here` on that machine."""
    parts: dict[Work, list[tuple[float, float, float]]] = {}
    for job in finished:
        record = read_provenance(job.record)
        device = "cuda" if str(record.get("device")).startswith("cuda") else "cpu"
        seconds, memory = record.get("device_seconds"), record.get("peak_memory_mb", 0.0)
        tasks = tasks_of(job, experiment, sizes, device)
        if seconds is not None and len(tasks) == 1 and here in ("", record.get("machine")):
            [(work, units)] = tasks
            parts.setdefault(work, []).append((seconds, units, memory))
    sums = {work: [*zip(*group, strict=True)] for work, group in parts.items()}
    return {
        work: Rate(sum(seconds) / sum(units), max(memory), origin)
        for work, (seconds, units, memory) in sums.items()
    }


@cache
def packaged() -> dict[Work, Rate]:
    """The rates that come with pairflow."""
    facts = json.loads(_RECORDED.read_text())
    return {Work(**entry["work"]): Rate(**entry["rate"]) for entry in facts}
