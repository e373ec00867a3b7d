"""The `pairflow` command: every step under one name."""

import importlib

import click

from pairflow._version import __version__

COMMANDS = (
    "doctor",
    "init",
    "new",
    "estimate",
    "compare",
)  # beside the steps, in the order in which they are of use
STEPS = (
    "preprocess",
    "preprocess_images",
    "pair",
    "gather",
    "diagnose",
    "cover",
    "train",
    "teach",
    "distill",
    "sample",
    "describe_molecules",
    "chemnet",
    "evaluate",
    "classify",
    "reference",
    "floor",
    "evaluate_images",
    "correlate",
    "report",
    "paper",
)


class Steps(click.Group):
    """Imports a step when it is asked for, so that `pairflow --help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *STEPS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What a user begins and ends with stands apart from the steps between."""
        for title, names in (("Commands", COMMANDS), ("Steps, in the order of the workflow", STEPS)):
            with formatter.section(title):
                commands = {name: self.get_command(ctx, name) for name in names}
                formatter.write_dl([(name, each.get_short_help_str(200)) for name, each in commands.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in (*COMMANDS, *STEPS):
            return None
        return importlib.import_module(f"pairflow.steps.{cmd_name}").main


@click.command(cls=Steps, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pairflow")
def main() -> None:
    """Few-step discrete generation with closed-form source-target couplings.

    Two ways to start: the demo on embedded molecules, `snakemake --cores 2 results/demo/report.html`, or your
    own molecules: `pairflow new my_library.smi` writes an experiment and says how to run it.

    Snakemake chains the steps; each runs alone, too.
    """
