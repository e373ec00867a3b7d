"""The forecast for an experiment: its jobs, those that are done, the rates of the others, and their costs."""

from pathlib import Path
from typing import NamedTuple

from pairflow.config import Experiment
from pairflow.data.source import DatasetSize
from pairflow.estimate.collect import collect
from pairflow.estimate.costs import JobCost, job_costs
from pairflow.estimate.rates import Rate, Work, needed
from pairflow.plan.jobs import Job, jobs
from pairflow.plan.lineage import done


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
