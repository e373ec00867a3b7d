"""Runs an experiment with Snakemake: prints a line per finished job, and the result at the end."""

import shlex
import sys
from pathlib import Path

import click

from pairflow.config.file import experiment as named
from pairflow.config.file import read
from pairflow.errors import InputError
from pairflow.steps.command import step
from pairflow.steps.options import WORKFLOW

_ELSEWHERE = {"--profile", "--executor", "-e"}  # with these, jobs may run on other machines
_RUNS_NOTHING = {"--dry-run", "--dryrun", "-n", "--unlock"}


@step()
@click.argument("experiment")
@click.option("--cores", type=click.IntRange(1), help="Number of CPU cores to use.  [default: all]")
@click.option("--gpus", type=click.IntRange(1), help="Number of GPUs that jobs may share.  [default: 1]")
@click.option("--print", "show", is_flag=True, help="Print the Snakemake command, and run nothing.")
@click.argument("arguments", nargs=-1, metavar="[-- SNAKEMAKE'S ARGUMENTS]")
def main(
    experiment: str, cores: int | None, gpus: int | None, show: bool, arguments: tuple[str, ...]
) -> None:
    """Run EXPERIMENT from raw data to report; finished steps are skipped.

    Snakemake does the work. A line appears for each finished job, and for the progress of the job that has
    run longest: always in a terminal, once a minute elsewhere. Arguments after `--` go to Snakemake:

    \b
      pairflow run qm9 --cores 8 --gpus 1
      pairflow run qm9 -- --keep-going --forcerun report
    """
    if not WORKFLOW.is_file():
        raise InputError(f"{WORKFLOW}: no such file; run the command in a folder made by `pairflow init`")
    settings = named(read(WORKFLOW), experiment, WORKFLOW)
    command = snakemake_arguments(experiment, cores, gpus, arguments)
    if show:
        return click.echo(shlex.join(["snakemake", *command]))
    from pairflow.plan.execution import run
    from pairflow.plan.own_files import require_own_files
    from pairflow.report.headline import closing_lines

    if "--unlock" not in arguments:
        require_own_files(Path("results", experiment), settings)
    code, folder = run(command), Path("results", experiment)
    if code == 0 and (folder / "report.html").exists() and not _RUNS_NOTHING.intersection(arguments):
        click.echo("\n".join(closing_lines(folder)))
    sys.exit(code)


def snakemake_arguments(
    experiment: str, cores: int | None, gpus: int | None, others: tuple[str, ...]
) -> list[str]:
    """The arguments for Snakemake. Raises InputError if `others` do not begin with an option."""
    if others and not others[0].startswith("-"):
        raise InputError(f"expected one experiment, then `--` and Snakemake's arguments; found '{others[0]}'")
    elsewhere = any(argument.partition("=")[0] in _ELSEWHERE for argument in others)
    return [
        *([] if elsewhere and cores is None else ["--cores", str(cores or "all")]),
        *(["--resources", f"gpu={gpus}"] if gpus else []),
        *others,
        "--",
        f"results/{experiment}/report.html",
    ]


if __name__ == "__main__":
    main()
