"""Runs an experiment with Snakemake: prints a line per finished job, and the result at the end."""

import shlex
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pairflow.artifacts import atomic
from pairflow.config import Experiment
from pairflow.config.file import describe, experiment_file, read
from pairflow.config.file import experiment as named
from pairflow.errors import InputError
from pairflow.plan.jobs import jobs
from pairflow.runtime.memory import usable_memory
from pairflow.runtime.threads import all_cpus, available_cpus
from pairflow.steps.command import step
from pairflow.steps.options import WORKFLOW, RealRange, device_type

if TYPE_CHECKING:
    from pairflow.estimate.forecast import Forecast

_ELSEWHERE = {"--profile", "--executor", "-e"}  # with these, jobs may run on other machines
_FORCE = {"--forcerun", "-R"}
_DRY = {"--dry-run", "--dryrun", "-n"}
_LONG = 12 * 3600  # seconds on a CPU from which on a smaller experiment is advised


@step()
@click.argument("experiment")
@click.option("--cores", type=click.IntRange(1), help="Number of CPU cores to use.  [default: all]")
@click.option("--gpus", type=click.IntRange(1), help="Number of GPUs that jobs may share.  [default: 1]")
@click.option(
    "--scale",
    type=RealRange(1e-4, 1, max_open=True),
    help="Try a smaller version with this share of the iterations, rows, samples, batch and network, each "
    "with a minimum. The smaller experiment is written to experiments/.",
)
@click.option("--print", "show", is_flag=True, help="Print the Snakemake command, and run nothing.")
@click.argument("arguments", nargs=-1, metavar="[-- SNAKEMAKE'S ARGUMENTS]")
def main(
    experiment: str,
    cores: int | None,
    gpus: int | None,
    scale: float | None,
    show: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run EXPERIMENT from raw data to report; finished steps are skipped.

    Snakemake does the work. Each finished job has a line. Another line shows the progress of the job that has
    run longest: always in a terminal, once a minute elsewhere. Arguments after `--` go to Snakemake. With
    `--dry-run` the command counts the jobs that are left, and says how long they take.

    \b
      pairflow run qm9 --cores 8 --gpus 1
      pairflow run qm9 --scale 0.01
      pairflow run qm9 -- --dry-run
      pairflow run qm9 -- --keep-going --forcerun report
    """
    if not WORKFLOW.is_file():
        raise InputError(f"{WORKFLOW}: no such file; run the command in a folder made by `pairflow init`")
    workflow, original = read(WORKFLOW), experiment
    settings = named(workflow, experiment, WORKFLOW)
    if scale:
        experiment, settings = smaller(experiment, settings, scale)
    from pairflow.plan import execution, lineage
    from pairflow.plan.own_files import require_own_files

    folder = Path("results", experiment)
    again = forcing(lineage.stale(jobs(folder, settings)), arguments)
    command = snakemake_arguments(experiment, cores, gpus, again)
    if show:
        return click.echo(shlex.join(["snakemake", *command]))
    dry, unlocks, expected = bool(_DRY.intersection(arguments)), "--unlock" in arguments, None
    if not unlocks:
        require_own_files(folder, settings)
        expected = None if runs_elsewhere(arguments) else expect(folder, settings, cores)
        say_before(expected, original, workflow.experiments, dry)
    if (code := execution.run(command)) == 0 and not unlocks:
        say_after(experiment, folder, expected, dry)
    sys.exit(code)


def smaller(name: str, experiment: Experiment, share: float) -> tuple[str, Experiment]:
    """Return the name and the settings of an experiment that has a `share` of the iterations, samples, batch
    and network of `experiment`, which is called `name`. Its file is written unless it exists."""
    from pairflow.config.scaled import scaled
    from pairflow.plan.sizes import sizes

    new = f"{name}_{100 * share:g}percent".replace(".", "_")
    file = experiment_file(WORKFLOW, new)
    if file.exists():
        click.echo(f"{file} exists already, and is used as it is", err=True)
    else:
        values = scaled(experiment, share, sizes(Path("results", name), experiment, Path()).rows)
        text = describe(WORKFLOW, new, values, f"By `pairflow run {name} --scale {share:g}`")
        with atomic(file) as [temporary]:
            temporary.write_text(text, encoding="utf-8")
        click.echo(f"wrote {file}", err=True)
    return new, named(read(WORKFLOW), new, WORKFLOW)


def forcing(files: list[Path], arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return Snakemake's `arguments`, changed so that it also makes `files` again."""
    for position, argument in enumerate(arguments if files else ()):
        option, _, value = argument.partition("=")
        if option in _FORCE:  # Snakemake reads only the last of such options
            before, after = arguments[:position], arguments[position + 1 :]
            return (*before, option, *[value] * bool(value), *map(str, files), *after)
    return (*arguments, *["--forcerun"] * bool(files), *map(str, files))


def say_before(expected: "Forecast | None", name: str, names: Collection[str], dry: bool) -> None:
    """Say on stderr what a run takes, if its forecast `expected` is known. A dry run says most of it at its
    end. `names` are all experiments."""
    from pairflow.report.outlook import outset

    lines = (
        outset(expected, usable_memory() / 2**20)[dry:] + advice(name, names, expected) if expected else []
    )
    click.echo("".join(f"{line}\n" for line in lines), nl=False, err=True)


def say_after(name: str, folder: Path, expected: "Forecast | None", dry: bool) -> None:
    """Say what a run has found; after a dry run, what the jobs that are left will take, by the forecast
    `expected`."""
    from pairflow.report.headline import closing_lines
    from pairflow.report.outlook import sums

    if dry and expected and expected.todo:
        more = f"pairflow estimate {name} measures first; snakemake -n {folder}/report.html lists the jobs"
        click.echo(f"{sums(expected)}\nmore       {more}")
    elif not dry and (folder / "report.html").exists():
        click.echo("\n".join(closing_lines(folder)))


def expect(folder: Path, experiment: Experiment, cores: int | None) -> "Forecast":
    """Forecast by recorded rates and arithmetic what the jobs that are left will take on this machine."""
    from pairflow.estimate.forecast import forecast
    from pairflow.plan.sizes import about

    what = folder, experiment, about(folder, experiment), cores or available_cpus(), device_type("auto")
    return forecast(*what, shards=read(WORKFLOW).pair_shards, recorded=True, progress=False)


def advice(name: str, names: Collection[str], expected: "Forecast") -> list[str]:
    """Return a line that advises smaller experiments, if there is no GPU and a run would take long; else an
    empty list. `expected` is the run's forecast, and `names` are all experiments."""
    if expected.device == "cuda" or expected.wall_seconds < _LONG:
        return []
    small = [f"pairflow run {name}_small"] if f"{name}_small" in names else []
    commands = " or ".join(f"`{command}`" for command in [*small, f"pairflow run {name} --scale 0.005"])
    return [f"there is no GPU here: to see results sooner, try {commands}"]


def snakemake_arguments(
    experiment: str, cores: int | None, gpus: int | None, others: tuple[str, ...]
) -> list[str]:
    """Return the arguments for Snakemake, of which `others` are the user's. Raises InputError if `others` do
    not begin with an option, or name a profile beside `gpus`."""
    if others and not others[0].startswith("-"):
        raise InputError(f"expected one experiment, then `--` and Snakemake's arguments; found '{others[0]}'")
    if gpus and any(argument.partition("=")[0] == "--profile" for argument in others):
        raise InputError(
            f"--gpus: would replace the limits in the profile; write `gpu: {gpus}` under its `resources`"
        )
    default = "all" if available_cpus() == all_cpus() else available_cpus()  # a quota, unknown to Snakemake
    return [
        *([] if runs_elsewhere(others) and cores is None else ["--cores", str(cores or default)]),
        *(["--resources", f"gpu={gpus}"] if gpus else []),
        *others,
        "--",
        f"results/{experiment}/report.html",
    ]


def runs_elsewhere(arguments: tuple[str, ...]) -> bool:
    """Return whether these arguments of Snakemake may send jobs to other machines."""
    return any(argument.partition("=")[0] in _ELSEWHERE for argument in arguments)


if __name__ == "__main__":
    main()
