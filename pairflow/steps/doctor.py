"""What this machine has of all that the workflow needs, on one screen."""

import sys
from pathlib import Path

import click

from pairflow._version import __version__
from pairflow.steps.command import configuration, step

_COLOURS = {"ok": "green", "missing (optional)": "cyan", "needs attention": "red"}


@step()
@configuration("The experiments whose data sets are looked for.")
@click.option("--offline", is_flag=True, help="Leave the network alone.")
def main(configuration: Path, offline: bool):
    """Say what works here, what is missing, and the command that mends it. Changes nothing.

    Every package is imported, in a process of its own; the results folder is written to; a data set is looked
    for in the folder that PAIRFLOW_DATA_DIR names, in the cache, then at its publisher's. Each line is `ok`,
    `missing (optional)` (something works without it) or `needs attention`; with one of these the exit code
    is 1.
    """
    from pairflow.checkup.line import State
    from pairflow.checkup.lines import lines

    click.echo(f"pairflow {__version__}\n")
    counts = dict.fromkeys(State, 0)
    for line in lines(configuration, offline):
        counts[line.state] += 1
        state = click.style(f"{line.state:<20}", fg=_COLOURS[line.state])
        click.echo(f"  {line.name:<23}{state}{line.found}".rstrip())
        if line.remedy:
            click.echo(f"  {'':<23}{'':<20}-> {line.remedy}")
    if broken := counts[State.ATTENTION]:
        click.echo(f"\n{broken} of {sum(counts.values())} need{'s' * (broken == 1)} attention.")
        sys.exit(1)
    click.echo(f"\nNothing needs attention; {counts[State.OPTIONAL]} optional parts are missing.")


if __name__ == "__main__":
    main()
