"""Runs jobs of the workflow in this process, without Snakemake."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pairflow.arguments import checked_choice, checked_integer
from pairflow.artifacts import digest
from pairflow.cli import module_of
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.generate.loaded import Device
from pairflow.kinds import load_kind
from pairflow.plan.calls import call_of
from pairflow.plan.job import Job
from pairflow.plan.jobs import divide_cores
from pairflow.plan.lineage import find_other
from pairflow.runtime.device import DEVICES
from pairflow.runtime.threads import available_cpus
from pairflow.steps.command import RAISES, ByKind
from pairflow.steps.options import device_type

MOST_THREADS = 4096


@dataclass(frozen=True)
class Runner:
    """How jobs run: device, threads of each job (None: as in the workflow), and whether progress is shown."""

    device: Device
    threads: int | None
    progress: bool

    def __post_init__(self) -> None:
        checked_choice("device", self.device, DEVICES)
        if self.threads is not None:
            checked_integer("threads", self.threads, 1, MOST_THREADS)

    @property
    def type(self) -> str:
        """The type of the device, "cpu" or "cuda"."""
        return device_type(self.device)

    @property
    def cores(self) -> int:
        return self.threads or available_cpus()

    def say(self, text: str) -> None:
        """Print a text on stderr, if progress is to be shown."""
        if self.progress and text:
            print(text, file=sys.stderr)

    def options(self, experiment: Experiment, table: Sequence[Job], job: Job) -> dict[str, Any]:
        """Return the options with which to call a job's command: device, threads, and whether it is quiet.

        `table` has all jobs that are to run. The cores are divided among the jobs of a rule in it.
        """
        shares = divide_cores(experiment, table, self.cores)
        threads = self.threads or shares.get(job.rule, job.threads)
        return {"device": self.device, "threads": threads, "quiet": not self.progress}


def needed_jobs(table: Sequence[Job], target: Path, there: Collection[Path] = ()) -> list[Job]:
    """Return the jobs of `table` that make the file `target`, or a file that these jobs need in turn.

    Files in `there` are at hand, and need no job. The jobs stay in the order of the table.
    """
    needed, jobs = {target}, []
    for job in reversed(table):
        if needed.intersection(job.outputs.values()):
            jobs.append(job)
            needed.update(path for path in job.needed if path not in there)
    return jobs[::-1]


def run_jobs(root: Path, experiment: Experiment, table: Sequence[Job], runner: Runner) -> None:
    """Run the jobs of a table that are not done yet, one after another, in the order of the table.

    Raises:
        InputError: if a command finds a mistake, or a file in `root` was made with other settings.
        Interrupted, KeyboardInterrupt: if a signal stops a command.
    """
    for job in table:
        if all(path.is_file() for path in job.outputs.values()):
            if other := find_other(job, digest):
                raise InputError(f"{other[1]}; choose another folder")
            continue
        resume = {"resume": root / f"seed{job.seed}" / "resume" / job.rule} if job.method else {}
        run_job(root, job, experiment.data.kind, **runner.options(experiment, table, job) | resume)


def run_job(root: Path, job: Job, kind: str, **options: Any) -> None:
    """Run the command of a job of an experiment in `root`, with the `options` (name -> value) that it has.

    `kind` is the experiment's kind of data. Raises InputError if the job's settings do not fit the command.
    """
    call = call_of(root, job, kind)
    command = import_module(module_of(call.name)).main
    asked: Any = command.make(load_kind(kind)) if isinstance(command, ByKind) else command
    known = {parameter.name for parameter in asked.params}
    given = {key: value for key, value in options.items() if key in known and value not in (None, False)}
    for path in job.outputs.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with command.make_context(call.name, call.words(**given)[1:], obj=RAISES) as context:
            command.invoke(context)
    except click.ClickException as error:  # an option that the job's settings do not fit
        raise InputError(f"{call.name}: {error.format_message()}") from None
