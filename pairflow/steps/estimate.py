"""Estimates the cost of an experiment before it runs."""

from functools import partial
from pathlib import Path

import click

from pairflow.config.file import experiment as named
from pairflow.config.file import read
from pairflow.estimate.forecast import forecast
from pairflow.plan.sizes import sizes
from pairflow.report import outlook as text
from pairflow.steps.command import step
from pairflow.steps.options import configuration, device, device_type, quiet


@step()
@click.argument("experiment")
@configuration("The file that describes the experiment, next to the folder results/.")
@click.option("--cores", type=click.IntRange(1), help="Number of cores, as for Snakemake.  [default: all]")
@click.option(
    "--recorded", is_flag=True, help="Measure nothing and use only recorded rates, which takes a second."
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    help="Number of training rows, to see what a larger or smaller data set would cost.  [default: as it is]",
)
@device
@quiet
def main(
    experiment: str,
    configuration: Path,
    cores: int | None,
    recorded: bool,
    rows: int | None,
    device: str,
    quiet: bool,
):
    """Estimate time, memory, disk and GPU-hours of EXPERIMENT on this machine, without running it.

    The command measures an iteration of each kind of training, a step of sampling and a few rows of the
    pairing, on made-up rows of the experiment's sizes. This takes a few seconds each. If results/ has times
    of the same work on this machine, the command uses them instead. Finished jobs are left out. With --device
    cuda the jobs take turns on one GPU, as under `snakemake --resources gpu=1`. With --rows no job counts as
    finished.
    """
    from pairflow.runtime.threads import available_cpus

    workflow = read(configuration)
    plan = named(workflow, experiment, configuration)
    root = configuration.parent / "results" / experiment
    size = sizes(root, plan, configuration.parent)
    cores, where = cores or available_cpus(), device if device == "cuda" else device_type(device)
    how = partial(forecast, shards=workflow.pair_shards, progress=not quiet, recorded=recorded)
    expected = how(root, plan, size, cores, where, rows=rows)
    click.echo(text.head(experiment, plan, size.scaled(rows)))
    click.echo(text.sums(expected))
    click.echo(text.step_lines(expected))
    if expected.todo:
        click.echo(text.basis(expected))


if __name__ == "__main__":
    main()
