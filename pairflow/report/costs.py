"""Computes from recorded timings what training costs."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pairflow.config import Experiment
from pairflow.config.methods import PAIRINGS
from pairflow.report.words import name_distillation

_MEASURES = ("seconds", "device_seconds", "samples_seen", "peak_memory_mb")


@dataclass(frozen=True)
class TrainingCost:
    """The cost of one piece of work for a model; NaN if a number is unknown or does not apply.

    `work` names the piece: base training, pairing or a round of distillation. `method` is the distilled
    method for a round, else the base. Numbers are means over seeds, but the memory (MiB) is the largest;
    `share` is `seconds` relative to the base training.
    """

    method: str
    work: str
    seconds: float
    device_seconds: float
    samples_seen: float
    samples_generated: float
    peak_memory_mb: float
    share: float = np.nan
    device: str = ""


def training_costs(timings: pd.DataFrame, experiment: Experiment) -> dict[str, list[TrainingCost]]:
    """Return a dict from each trained base to the costs of its training, pairing and distillations.

    A round of ReDi or ReFlow includes drawing the teacher's pairs. `timings` has the columns step, method and
    seconds; all other columns are optional.
    """
    columns = dict.fromkeys([*timings, "seed", "device", *_MEASURES])
    timings = timings.reindex(columns=list(columns)).astype(dict.fromkeys(_MEASURES, "float64"))
    bases = timings.loc[timings.step == "train", "method"].dropna().unique()
    return {base: _costs(base, timings, experiment) for base in bases}


def _costs(base: str, timings: pd.DataFrame, experiment: Experiment) -> list[TrainingCost]:
    """Return the costs of a base's training, then of its pairing, then of each round of its distillations."""
    jobs_of_base = timings[timings.method == base]
    rounds = timings[timings.step.isin(["teach", "distill"]) & timings.method.str.startswith(f"{base}+")]
    pieces = {
        (base, "base training"): jobs_of_base[jobs_of_base.step == "train"],
        (base, "pairing"): jobs_of_base[jobs_of_base.step.isin(PAIRINGS)],
        **{(str(name), _name_round(str(name))): jobs for name, jobs in rounds.groupby("method", sort=False)},
    }
    costs = [_measure(*names, jobs, experiment) for names, jobs in pieces.items() if len(jobs)]
    whole = costs[0].seconds or np.nan
    return [replace(cost, share=cost.seconds / whole) for cost in costs]


def _measure(method: str, work: str, jobs: pd.DataFrame, experiment: Experiment) -> TrainingCost:
    """Return the cost of one piece of work, called `work`, for a method from its `jobs`, rows of timings.

    Times are summed over the jobs of a seed, then averaged over seeds; seeds of unknown time are left out.
    """
    seeds = jobs.groupby("seed", dropna=False)
    times = seeds[["seconds", "device_seconds"]].sum(min_count=1)
    times = times[seeds[["seconds", "device_seconds"]].count().eq(seeds.size(), axis=0)].mean()
    taught = (jobs.step == "teach").any()
    return TrainingCost(
        method,
        work,
        seconds=float(times.seconds),
        device_seconds=float(times.device_seconds),
        samples_seen=float(jobs.loc[jobs.step.isin(["train", "distill"]), "samples_seen"].mean()),
        samples_generated=float(experiment.teach_settings(method, seed=0).count) if taught else np.nan,
        peak_memory_mb=float(jobs.peak_memory_mb.max()),
        device=" and ".join(jobs.device.dropna().unique()),
    )


def _name_round(method: str) -> str:
    """Name the last distillation: `DCD`, `ReDi`, or if it is the second of its kind `ReDi, round 2`."""
    *before, last = method.split("+")[1:]
    number = before.count(last) + 1
    return f"{name_distillation(method)}{f', round {number}' * (number > 1)}"
