"""What an experiment will take, before it is run."""

import shutil
from pathlib import Path

import click

from pairflow.config.file import experiment as named
from pairflow.config.file import read
from pairflow.estimate import text
from pairflow.estimate.collect import collect
from pairflow.estimate.costs import job_costs
from pairflow.estimate.rates import needed
from pairflow.estimate.sizes import sizes
from pairflow.plan.jobs import jobs
from pairflow.plan.lineage import done
from pairflow.steps.command import configuration, device, quiet, step


@step()
@click.argument("experiment")
@configuration("The file that describes the experiment. Its results/ folder is beside it.")
@click.option("--cores", type=click.IntRange(1), help="Number of cores, as for Snakemake.  [default: all]")
@click.option(
    "--recorded", is_flag=True, help="Measure nothing and use only recorded rates, which takes a second."
)
@device
@quiet
def main(experiment: str, configuration: Path, cores: int | None, recorded: bool, device: str, quiet: bool):
    """Estimate time, memory, disk and GPU-hours of EXPERIMENT on this machine, without running it.

    The command measures an iteration of each kind of training, a step of sampling and a few rows of the
    pairing, for a few seconds each, on made-up rows of the experiment's sizes. If this machine has timed the
    work in results/, it uses these times instead. Finished jobs are left out. With --device cuda the jobs
    take turns on one GPU, as under `snakemake --resources gpu=1`.
    """
    from pairflow.report.paper import advice
    from pairflow.runtime.threads import available_cpus

    workflow = read(configuration)
    plan = named(workflow, experiment, configuration)
    root = configuration.parent / "results" / experiment
    size = sizes(root, plan, configuration.parent, not quiet)
    cores, where = cores or available_cpus(), _device(device)
    table = jobs(root, plan, workflow.pair_shards)
    finished = done(table)
    works = needed([job for job in table if job not in finished], plan, size, where)
    rates = collect(works, root, plan, size, recorded, not quiet)
    costs = job_costs(table, plan, size, rates, cores, where)
    click.echo(text.head(experiment, plan, size))
    click.echo(text.step_lines(table, finished, costs))
    printed = advice.cost(plan) if plan.scale == "paper" else ""
    click.echo(text.sums(table, finished, costs, cores, where, printed))
    if len(finished) < len(table):
        click.echo(text.basis(works, rates))


def _device(name: str) -> str:
    """`cpu` or `cuda`; torch is imported only if a driver says that there may be a GPU."""
    if name != "auto":
        return name
    if shutil.which("nvidia-smi") is None:
        return "cpu"
    from pairflow.runtime.device import choose

    return choose(name, None).type


if __name__ == "__main__":
    main()
