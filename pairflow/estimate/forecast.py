"""Forecasts an experiment: its jobs, which are done, how fast the work to do is, and what all jobs cost.

A rate (seconds per unit of work) comes from finished jobs, else from a measurement now, else from a recording
on another machine.
"""

import shutil
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from pairflow.artifacts import machine, read_metadata
from pairflow.config import FLOWS, Experiment, check
from pairflow.data.draft import Draft, Entry
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.estimate.arithmetic import expected_rates
from pairflow.estimate.costs import JobCost, busy_seconds, job_costs, wall_seconds
from pairflow.estimate.measure import measure
from pairflow.estimate.rates import Rate, Work, needed, rates_of
from pairflow.kinds import source_of
from pairflow.plan import paths
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs
from pairflow.plan.lineage import done
from pairflow.runtime.progress import bar
from pairflow.runtime.threads import available_cpus

FEWEST, MOST = 100, 1_000_000  # iterations that are fitted to a time


def sizes(root: Path, experiment: Experiment, folder: Path) -> DatasetSize:
    """Read the sizes of an experiment's data, from its rows if they are made, else from its source.

    A user's own file is read once, in `folder` unless it is absolute. Raises InputError if it cannot be read.
    """
    files = [paths.data(root, f"{split}.parquet") for split in ("train", "validation")]
    if not all(file.is_file() for file in files):
        return source_of(experiment.data, folder).measure(experiment.data)
    made, (rows, held_out) = read_metadata(files[0]), (pq.read_metadata(file).num_rows for file in files)
    shape = tuple(made.shape) if made.shape else None
    return DatasetSize(rows, held_out, made.vocabulary_size or 0, made.length or 0, shape)


def about(root: Path, experiment: Experiment) -> DatasetSize:
    """Return the sizes of an experiment's data, or about these if they are unknown before a file is read."""
    try:
        if paths.data(root, "validation.parquet").is_file():
            return sizes(root, experiment, Path())
    except InputError:  # preprocessing makes the files again
        pass
    return source_of(experiment.data).guess(experiment.data)


class Forecast(NamedTuple):
    """All jobs, the jobs to do, the different works of these, the known rates, and the costs of all jobs.

    `gpu_seconds` is the time that the jobs to do would take on a GPU, by arithmetic.
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
    def largest_mb(self) -> float:
        """The memory of the largest job to do, of those whose memory is known."""
        return max((self.costs[job].memory_mb or 0.0 for job in self.todo), default=0.0)

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
    """Forecast the experiment in `root` on `cores` cores.

    With `recorded` nothing is measured, and with `fresh` no job counts as finished. With `rows` the data have
    so many training rows instead, so that all jobs are to do. `rates` may come from another forecast, for the
    same experiment with another number of iterations. `table` are the jobs, if these are not all jobs.
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
    """Fit the iterations of a drafted experiment to its hours; return it and its forecast on all cores.

    The number of iterations has two digits that are not zero, is at least FEWEST, and at most `draft.most`;
    without hours it stays as drafted. Jobs of unknown time count as 0. With `recorded` nothing is measured.
    """
    how: dict[str, Any] = {"recorded": recorded, "progress": progress, "fresh": True}

    def expect(entry: Entry, rates: dict[Work, Rate] | None = None) -> Forecast:
        experiment = check(Experiment, entry, root.name)
        return forecast(root, experiment, draft.size, available_cpus(), device, **how, rates=rates)

    if draft.hours is None or (make := draft.with_iterations) is None:
        return draft.experiment, expect(draft.experiment)
    rates, seconds = expect(make(FEWEST)).rates, 3600 * draft.hours
    # Only the costs are computed again for each number: the rates do not depend on it.
    tens = [10**power for power in range(1, 5)]
    most = max(FEWEST, draft.most or MOST)
    numbers = [digits * ten for ten in tens for digits in range(10, 100) if FEWEST <= digits * ten <= most]
    fitting = bisect_right(numbers, seconds, key=lambda number: expect(make(number), rates).wall_seconds)
    entry = make(numbers[max(0, fitting - 1)])
    return entry, expect(entry, rates)


def _measure_all(
    works: Sequence[Work], experiment: Experiment, sizes: DatasetSize, tokens: Path, progress: bool
) -> dict[Work, Rate]:
    """Measure the rates of `works` that can run here; `tokens` is the file of real rows, if it exists."""
    devices = {"cpu"} | ({"cuda"} if shutil.which("nvidia-smi") else set())
    # A continuous pairing works in blocks, of which a single one takes too long.
    works = [w for w in works if w.device in devices and (w.kind != "pair" or FLOWS[w.flow].tokens)]
    rows = tokens if tokens.is_file() else None
    origin = f"measured here on {datetime.now(UTC):%Y-%m-%d}"
    every = bar(works, total=len(works), desc="measure", unit="rate", quiet=not (progress and works))
    rates = {work: measure(work, experiment.training.loss, sizes.shape, rows, origin) for work in every}
    return {work: rate for work, rate in rates.items() if rate}
