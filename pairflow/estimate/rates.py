"""How fast the long work goes: of which kind and size, measured or recorded, and where from.

Seconds are those of one core of a CPU, or of a GPU; on a CPU that is what a job takes which has a core to
itself. None is a rate that nobody knows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from pairflow.config import DISTILLATIONS, Experiment, parse_method
from pairflow.estimate.sizes import Sizes

_RECORDED = Path(__file__).parent / "recorded.json"


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
    """Seconds of one unit of a `Work` and what it holds in memory; `origin` says where that is from.

    `call` is the network's part of a draw, where it is known apart; `parameters` are the network's.
    """

    seconds: float
    memory_mb: float | None
    origin: str
    call: float | None = None
    parameters: int | None = None


def needed(experiment: Experiment, sizes: Sizes, device: str) -> list[Work]:
    """The work of an experiment whose rates its estimate needs."""
    every = [base_work(experiment, sizes, name, device) for name in experiment.trained()]
    for name in experiment.trained():
        method = parse_method(name)
        if method.distillations:
            every.append(distillation_work(experiment, sizes, name, device))
    every += [draw_work(experiment, sizes, name, device) for name in experiment.trained()]
    every += [pair_work(experiment, sizes, name, device) for name in experiment.couplings()]
    if experiment.pairing.coverage:
        every.append(pair_work(experiment, sizes, "pairflow", "cpu"))
    return [work for work in dict.fromkeys(every) if work.kind != "pair" or work.steps]


def base_work(experiment: Experiment, sizes: Sizes, name: str, device: str) -> Work:
    """An iteration of the training of a method's base."""
    return _network_work("train", experiment, sizes, name, device, experiment.training.batch_size)


def distillation_work(experiment: Experiment, sizes: Sizes, name: str, device: str) -> Work:
    """An iteration of a method's last distillation; on pairs it is one of a base."""
    last = parse_method(name).distillations[-1]
    batch = getattr(experiment.distillation, last).batch_size
    kind = "train" if DISTILLATIONS[last].on_pairs else last
    return _network_work(kind, experiment, sizes, name, device, batch)


def draw_work(experiment: Experiment, sizes: Sizes, name: str, device: str) -> Work:
    """A row and a step of sampling."""
    return _network_work("draw", experiment, sizes, name, device, 0)


def pair_work(experiment: Experiment, sizes: Sizes, coupling: str, device: str) -> Work:
    """All of a pairing; without steps it is a mere drawing of random numbers."""
    settings = experiment.pair_settings(coupling, 0)
    return Work(
        "pair",
        device,
        sizes.length,
        sizes.vocabulary_size,
        rows=sizes.rows,
        steps=settings.steps or 0,
        subsets=settings.subsets,
    )


def _network_work(
    kind: str, experiment: Experiment, sizes: Sizes, name: str, device: str, batch: int
) -> Work:
    return Work(
        kind,
        device,
        sizes.length,
        sizes.vocabulary_size,
        corruption=parse_method(name).corruption,
        network=json.dumps(experiment.network.model_dump(mode="json"), sort_keys=True),
        batch=batch,
    )


def of_timings(timings: pd.DataFrame, experiment: Experiment, sizes: Sizes, origin: str) -> dict[Work, Rate]:
    """The rates that a finished experiment had; jobs of which a time is not known are left out."""
    rows = timings.dropna(subset=["device_seconds"])
    parts: dict[Work, list[tuple[float, float, float]]] = {}
    for row in rows.to_dict("records"):
        found = _timed(row, experiment, sizes)
        if found and found[1]:
            work, units = found
            parts.setdefault(work, []).append((row["device_seconds"], units, row["peak_memory_mb"]))
    return {
        work: Rate(
            sum(seconds for seconds, _, _ in each) / sum(units for _, units, _ in each),
            max(memory for _, _, memory in each),
            origin,
        )
        for work, each in parts.items()
    }


def _timed(row: Mapping[str, Any], experiment: Experiment, sizes: Sizes) -> tuple[Work, float] | None:
    """What a job's seconds are of: the work and how many units of it."""
    step, name = row["step"], row["method"]
    device = "cuda" if str(row["device"]).startswith("cuda") else "cpu"
    if step == "train":
        return base_work(experiment, sizes, name, device), experiment.training.iterations
    if step == "distill":
        last = getattr(experiment.distillation, parse_method(name).distillations[-1])
        return distillation_work(experiment, sizes, name, device), last.iterations
    if step == "teach":
        pairs = experiment.distillation.redi.pairs
        return draw_work(experiment, sizes, name, device), pairs.count * (pairs.steps + 1)
    if step == "sample" and "nfe" in row:  # older timings do not say
        settings = experiment.sample_settings(row["evaluation"], int(row["nfe"]), 0)
        units = settings.samples * settings.trials * (settings.nfe + settings.greedy_tail)
        return draw_work(experiment, sizes, name, device), units
    if step == "pair":
        work = pair_work(experiment, sizes, name, device)
        return (work, 1) if work.steps else None
    return None


@cache
def packaged() -> dict[Work, Rate]:
    """The rates that come with pairflow."""
    facts = json.loads(_RECORDED.read_text())
    return {Work(**each["work"]): Rate(**each["rate"]) for each in facts}


def as_json(rates: Mapping[Work, Rate]) -> str:
    """Rates as the file that comes with pairflow has them."""
    entries = ({"work": asdict(work), "rate": asdict(rate)} for work, rate in rates.items())
    return "[\n" + ",\n".join(json.dumps(each) for each in entries) + "\n]\n"


def unknown(needed: Iterable[Work], rates: Mapping[Work, Rate]) -> list[Work]:
    """The work of which there is no rate."""
    return [work for work in needed if work not in rates]
