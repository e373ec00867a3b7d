"""What training and sampling cost, by the recorded timings."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pairflow.config import Experiment
from pairflow.report.words import name_distillation

RUN = ["evaluation", "method", "nfe", "seed"]
_MEASURES = ("seconds", "device_seconds", "samples_seen", "peak_memory_mb")


@dataclass(frozen=True)
class TrainingCost:
    """One piece of work for a method's model; NaN if a number is unknown or does not apply.

    `method` is the base for its training and its pairing, the distilled method for a round of distillation.
    Numbers are means over seeds, but memory (MiB) is the largest; `share` is relative to the wall time of the
    base training.
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
    """Base that was trained -> the costs of its training, its pairing and each round of distillation.

    A round of ReDi or ReFlow includes drawing the teacher's pairs. `timings` has the columns step, method and
    seconds; all other columns are optional.
    """
    columns = dict.fromkeys([*timings, "seed", "device", *_MEASURES])
    timings = timings.reindex(columns=list(columns)).astype(dict.fromkeys(_MEASURES, "float64"))
    bases = timings.loc[timings.step == "train", "method"].dropna().unique()
    return {base: _costs(base, timings, experiment) for base in bases}


def sampling_times(timings: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluation, method, nfe, seed, seconds, device: the wall time of drawing all trials of a run.

    All columns but step are optional.
    """
    times = timings.reindex(columns=["step", *RUN, "seconds", "device"])
    times = times.astype({"evaluation": object, "method": object})
    return times[times.step == "sample"].drop(columns="step").dropna(subset="seconds")


def _costs(base: str, timings: pd.DataFrame, experiment: Experiment) -> list[TrainingCost]:
    """The costs of a base and its distillations; the base training comes first."""
    jobs_of_base = timings[timings.method == base]
    rounds = timings[timings.step.isin(["teach", "distill"]) & timings.method.str.startswith(f"{base}+")]
    pieces = {
        (base, "base training"): jobs_of_base[jobs_of_base.step == "train"],
        (base, "pairing"): jobs_of_base[jobs_of_base.step == "pair"],
        **{(str(name), _name_round(str(name))): jobs for name, jobs in rounds.groupby("method", sort=False)},
    }
    costs = [_measure(*names, jobs, experiment) for names, jobs in pieces.items() if len(jobs)]
    whole = costs[0].seconds or np.nan
    return [replace(cost, share=cost.seconds / whole) for cost in costs]


def _measure(method: str, work: str, jobs: pd.DataFrame, experiment: Experiment) -> TrainingCost:
    """The sum over a seed's jobs, then the mean over seeds. Seeds of unknown time are left out."""
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
    """`DCD`, `ReDi`, or from the second round of the same distillation on `ReDi, round 2`."""
    *before, last = method.split("+")[1:]
    number = before.count(last) + 1
    return f"{name_distillation(method)}{f', round {number}' * (number > 1)}"
