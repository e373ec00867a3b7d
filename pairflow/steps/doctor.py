"""Checks on one screen whether this machine has what the workflow needs."""

import sys
from pathlib import Path

import click

from pairflow._version import __version__
from pairflow.files import escaped

_COLOURS = {"ok": "green", "missing (optional)": "cyan", "needs attention": "red"}


# Not with steps.command, which imports packages that may be broken on this machine.
@click.command("doctor")
@click.option(
    "--config",
    "configuration",
    type=click.Path(path_type=Path),
    default=Path("workflow_config.yaml"),
    show_default=True,
    help="The configuration whose data sets are checked.",
)
@click.option("--offline", is_flag=True, help="Do not use the network.")
def main(configuration: Path, offline: bool):
    """Check what the workflow needs, and print the command that fixes what is missing. Changes nothing.

    Every package is imported in a new process, and a temporary file is written to the results folder. A data
    set is looked for in the folder PAIRFLOW_DATA_DIR, in the cache, and on its publisher's server. Each line
    is `ok`, `missing (optional)` (only some features need it) or `needs attention`. If anything needs
    attention, the exit code is 1.
    """
    from pairflow.checkup import findings
    from pairflow.data.status import Condition

    click.echo(f"pairflow {__version__}\n")
    counts = dict.fromkeys(Condition, 0)
    for name, finding in findings(configuration, offline):
        counts[finding.condition] += 1
        condition = click.style(f"{finding.condition:<20}", fg=_COLOURS[finding.condition])
        click.echo(f"  {escaped(name):<23}{condition}{escaped(finding.text)}".rstrip())
        if finding.remedy:
            click.echo(f"  {'':<23}{'':<20}-> {escaped(finding.remedy)}")
    if broken := counts[Condition.ATTENTION]:
        click.echo(f"\n{broken} of {sum(counts.values())} need{'s' * (broken == 1)} attention.")
        sys.exit(1)
    click.echo(f"\nNothing needs attention; {counts[Condition.OPTIONAL]} optional parts are missing.")


if __name__ == "__main__":
    main()
