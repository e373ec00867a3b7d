"""Forecasts an experiment: its jobs, which are done, how fast the work to do is, and what all jobs cost.

A rate (seconds per unit of work) comes from finished jobs, else from a measurement now, else from a recording
on another machine.
"""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pairflow.artifacts import machine
from pairflow.config import FLOWS, Experiment, check
from pairflow.data.draft import Draft, Entry
from pairflow.data.source import DatasetSize
from pairflow.estimate.costs import JobCost, busy_seconds, job_costs, wall_seconds
from pairflow.estimate.measure import measure
from pairflow.estimate.rates import Rate, expected_rates, rates_of
from pairflow.plan import paths
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs
from pairflow.plan.lineage import done
from pairflow.plan.work import Work, needed
from pairflow.runtime.progress import bar
from pairflow.runtime.threads import available_cpus


class Forecast(NamedTuple):
    """What an experiment will take.

    Attributes:
        table: all jobs.
        todo: the jobs that are not finished.
        works: the kinds of long work in them, each once.
        rates: how long a unit of each kind takes, if known.
        costs: the costs of all jobs.
        cores, device: the cores, and "cpu" or "cuda".
        gpu_seconds: the time that `todo` would take on a GPU, by arithmetic.
    """

    table: list[Job]
    todo: list[Job]
    works: list[Work]
    rates: dict[Work, Rate]
    costs: dict[Job, JobCost]
    cores: int
    device: str
    gpu_seconds: float

    @property
    def wall_seconds(self) -> float:
        return wall_seconds(self.todo, self.costs, self.cores)

    @property
    def untimed(self) -> list[Job]:
        """The jobs to do whose time is unknown."""
        return [job for job in self.todo if self.costs[job].seconds is None]


def forecast(
    root: Path,
    experiment: Experiment,
    sizes: DatasetSize,
    cores: int,
    device: str,
    *,
    shards: int = 1,
    recorded: bool = False,
    progress: bool = True,
    fresh: bool = False,
    rows: int | None = None,
    rates: dict[Work, Rate] | None = None,
    table: list[Job] | None = None,
) -> Forecast:
    """Forecast the experiment in `root`, with data of the size `sizes`, on `cores` cores and, if `device` is
    cuda, a GPU.

    A pairing is split into `shards` jobs. With `recorded` nothing is measured, and with `fresh` no job counts
    as finished. With `rows` the data have so many training rows instead, so that all jobs are to do. `rates`
    may come from another forecast, for the same experiment with another number of iterations. `table` has the
    jobs to forecast, by default all.
    """
    table = table or jobs(root, experiment, shards)
    finished: set[Job] = set() if fresh else done(table)
    known = rates_of(finished, experiment, sizes, "finished jobs of this machine", machine())
    todo = [job for job in table if rows or job not in finished]
    sizes = sizes.scaled(rows)
    works = needed(todo, experiment, sizes, device)
    if rates is None:
        if not recorded:
            absent = [work for work in works if work not in known]
            known |= _measure_all(absent, experiment, sizes, paths.data(root, "train.parquet"), progress)
        rates = expected_rates(works, experiment, sizes) | {w: known[w] for w in works if w in known}
    costs = job_costs(table, experiment, sizes, rates, cores, device)
    by_arithmetic = expected_rates(needed(todo, experiment, sizes, "cuda"), experiment, sizes)
    _, gpu_seconds = busy_seconds(todo, job_costs(todo, experiment, sizes, by_arithmetic, cores, "cuda"))
    return Forecast(table, todo, works, rates, costs, cores, device, gpu_seconds)


def forecast_draft(
    draft: Draft, root: Path, device: str, *, recorded: bool = False, progress: bool = True
) -> tuple[Entry, Forecast]:
    """Fit the iterations of a drafted experiment to its hours, and return the fitted experiment and its
    forecast.

    The forecast is for all cores of this machine. Jobs of unknown time count as 0. With `recorded` nothing is
    measured.
    """
    make = partial(forecast, recorded=recorded, progress=progress, fresh=True)

    def expect(entry: Entry, rates: dict[Work, Rate] | None = None) -> Forecast:
        experiment = check(Experiment, entry, root.name)
        return make(root, experiment, draft.size, available_cpus(), device, rates=rates)

    rates = expect(draft.experiment).rates  # which do not depend on the number of iterations
    entry = draft.fit(lambda entry: expect(entry, rates).wall_seconds)
    return entry, expect(entry, rates)


def _measure_all(
    works: Sequence[Work], experiment: Experiment, sizes: DatasetSize, tokens: Path, progress: bool
) -> dict[Work, Rate]:
    """Measure the rates of `works` that can run here; `tokens` is the file of real rows, if it exists. Work
    that fails is left out."""
    devices = {"cpu"} | ({"cuda"} if shutil.which("nvidia-smi") else set())
    # A continuous pairing works in blocks, of which a single one takes too long.
    works = [w for w in works if w.device in devices and (w.kind != "pair" or FLOWS[w.flow].tokens)]
    rows = tokens if tokens.is_file() else None
    origin = f"measured here on {datetime.now(UTC):%Y-%m-%d}"
    every = bar(works, total=len(works), desc="measure", unit="rate", quiet=not (progress and works))
    rates = {work: measure(work, experiment.training.loss, sizes.shape, rows, origin) for work in every}
    return {work: rate for work, rate in rates.items() if rate}
