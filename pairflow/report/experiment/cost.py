"""What training costs: the rows of the page's cost table, from the recorded timings alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

_MEASURES = ("seconds", "device_seconds", "samples_seen", "peak_memory_mb")
_NAMES = {"dcd": "DCD", "redi": "ReDi"}


@dataclass(frozen=True)
class TrainingCost:
    """One piece of work on the way to a method's model; NaN where a number is not known or there is none.

    `method` is the base for its training and its pairing, the distilled method for a round of distillation.
    Numbers are means over seeds, memory (MiB) the largest; `share` is of the base training's wall time.
    """

    method: str
    work: str
    seconds: float
    device_seconds: float
    samples_seen: float
    samples_generated: float
    peak_memory_mb: float
    share: float
    device: str


def training_costs(timings: pd.DataFrame, settings: Mapping[str, Any]) -> dict[str, list[TrainingCost]]:
    """Base that was trained -> its training, its pairing, each round of distillation.

    A round of ReDi is both drawing the teacher's pairs and training on them. `timings` has the columns step,
    method and seconds; what another absent column would say is not known. `settings` are the experiment's.
    """
    columns = dict.fromkeys([*timings, "seed", "device", *_MEASURES])
    timings = timings.reindex(columns=list(columns)).astype(dict.fromkeys(_MEASURES, "float64"))
    bases = timings.loc[timings.step == "train", "method"].dropna().unique()
    return {base: _of_base(base, timings, settings) for base in bases}


def _of_base(base: str, timings: pd.DataFrame, settings: Mapping[str, Any]) -> list[TrainingCost]:
    pieces = _pieces(base, timings)
    training = _measures(pieces[0][2])["seconds"]
    return [
        TrainingCost(
            method=method,
            work=work,
            **measures,
            samples_generated=_generated(jobs, settings),
            share=measures["seconds"] / training if training else np.nan,
            device=" and ".join(jobs.device.dropna().unique()),
        )
        for method, work, jobs in pieces
        for measures in [_measures(jobs)]
    ]


def _pieces(base: str, timings: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """(method, work, its jobs), the base training first."""
    own = timings[timings.method == base]
    pieces = [(base, "base training", own[own.step == "train"]), (base, "pairing", own[own.step == "pair"])]
    later = timings[timings.step.isin(["teach", "distill"]) & timings.method.str.startswith(f"{base}+")]
    pieces += [(method, _round(method), jobs) for method, jobs in later.groupby("method", sort=False)]
    return [piece for piece in pieces if len(piece[2])]


def _measures(jobs: pd.DataFrame) -> dict[str, float]:
    """A seed's jobs added up, then the mean over seeds: a seed of which one time is not known is left out."""
    times = jobs.groupby("seed", dropna=False)[["seconds", "device_seconds"]].agg(
        lambda values: values.sum(skipna=False)
    )
    return {
        **times.mean().to_dict(),
        "samples_seen": jobs.loc[jobs.step.isin(["train", "distill"]), "samples_seen"].mean(),
        "peak_memory_mb": jobs.peak_memory_mb.max(),
    }


def distillation(method: str) -> str:
    """The last distillation of a method as a reader calls it, `DCD` or `ReDi`; empty for a base."""
    last = method.rpartition("+")[2] if "+" in method else ""
    return _NAMES.get(last, last)


def _round(method: str) -> str:
    """`DCD`, `ReDi`, and from the second of a kind on which it is: `ReDi, round 2`."""
    *before, last = method.split("+")[1:]
    number = before.count(last) + 1
    return f"{distillation(method)}{f', round {number}' if number > 1 else ''}"


def _generated(jobs: pd.DataFrame, settings: Mapping[str, Any]) -> float:
    """Pairs that a teacher drew for these jobs."""
    redi = settings["distillation"]["redi"]
    return float(redi["pairs"]["count"]) if redi and (jobs.step == "teach").any() else np.nan
