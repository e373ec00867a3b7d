"""The forecast for an experiment: its jobs, those that are done, the rates of the others, and their costs."""

from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pairflow.config import Experiment, check
from pairflow.data.draft import Draft, Entry
from pairflow.data.source import DatasetSize
from pairflow.estimate.collect import collect
from pairflow.estimate.costs import JobCost, job_costs, wall_seconds
from pairflow.estimate.rates import Rate, Work, needed
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs
from pairflow.plan.lineage import done
from pairflow.runtime.threads import available_cpus

FEWEST, MOST = 100, 1_000_000  # iterations that are fitted to a time


class Forecast(NamedTuple):
    """Jobs, the finished ones among them, the work of the others, the known rates, and the jobs' costs."""

    table: list[Job]
    finished: set[Job]
    works: list[Work]
    rates: dict[Work, Rate]
    costs: dict[Job, JobCost]
    cores: int
    device: str

    @property
    def todo(self) -> list[Job]:
        return [job for job in self.table if job not in self.finished]

    @property
    def wall_seconds(self) -> float:
        return wall_seconds(self.todo, self.costs, self.cores)


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
) -> Forecast:
    """The forecast for the experiment in `root` on `cores` cores; with `recorded` nothing is measured."""
    table = jobs(root, experiment, shards)
    finished = done(table)
    works = needed([job for job in table if job not in finished], experiment, sizes, device)
    rates = collect(works, root, experiment, sizes, recorded, progress)
    costs = job_costs(table, experiment, sizes, rates, cores, device)
    return Forecast(table, finished, works, rates, costs, cores, device)


def forecast_draft(
    draft: Draft, root: Path, device: str, *, recorded: bool = False, progress: bool = True
) -> tuple[Entry, Forecast | None]:
    """The experiment of a draft with as many iterations as its hours allow, and its forecast on all cores;
    without hours the experiment as it is.

    With `recorded` the rates are those that were measured on another machine.
    """
    with_iterations = draft.with_iterations
    if draft.hours is None or with_iterations is None:
        return draft.experiment, None

    def make(iterations: int) -> Experiment:
        return check(Experiment, with_iterations(iterations), root.name)

    how = {"recorded": recorded, "progress": progress}
    cores, seconds = available_cpus(), 3600 * draft.hours
    iterations, expected = fit_iterations(root, make, draft.size, cores, device, seconds, **how)
    return with_iterations(iterations), expected


def fit_iterations(
    root: Path,
    make: Callable[[int], Experiment],
    sizes: DatasetSize,
    cores: int,
    device: str,
    seconds: float,
    *,
    recorded: bool = False,
    progress: bool = True,
) -> tuple[int, Forecast]:
    """The number of iterations with which a new experiment takes that time at most, and its forecast.

    `make` gives the experiment of a number of iterations. The number has two digits that are not zero, and is
    at least FEWEST. Jobs of unknown time count as none.
    """
    example = make(FEWEST)
    works = needed(jobs(root, example), example, sizes, device)
    rates = collect(works, root, example, sizes, recorded, progress)

    def expect(iterations: int) -> Forecast:
        experiment = make(iterations)
        table = jobs(root, experiment)
        costs = job_costs(table, experiment, sizes, rates, cores, device)
        return Forecast(table, set(), works, rates, costs, cores, device)

    tens = [10**power for power in range(1, 5)]
    numbers = [digits * ten for ten in tens for digits in range(10, 100) if FEWEST <= digits * ten <= MOST]

    fitting = bisect_right(numbers, seconds, key=lambda iterations: expect(iterations).wall_seconds)
    iterations = numbers[max(0, fitting - 1)]
    return iterations, expect(iterations)
