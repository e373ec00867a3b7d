"""The `pairflow` command, with every step as a subcommand."""

import importlib

import click

from pairflow._version import __version__
from pairflow.kinds import KINDS, load_kind
from pairflow.settings.check import nearest


def _of_kinds(heading: str) -> tuple[str, ...]:
    """Return the commands of all kinds of data that the help lists under `heading`; the heading of workflow
    steps is empty."""
    kinds = map(load_kind, KINDS)
    return tuple(name for kind in kinds for name, title in kind.steps.items() if title == heading)


GROUPS = {
    "Where to start": ("new", "run", "sample", "models", "score", "compare", "doctor"),
    "Without a model": _of_kinds("Without a model"),
    "Before you start": ("init", "estimate"),
    "Steps, in the order of the workflow (`pairflow STEP --help` describes one)": (
        "preprocess",
        "pair",
        "gather",
        "adopt",
        "potentials",
        "diagnose",
        "cover",
        "train",
        "teach",
        "distill",
        *_of_kinds(""),
        "floor",
        "evaluate",
        "correlate",
        "report",
    ),
}
*_STARTS, STEPS = GROUPS.values()
COMMANDS = tuple(name for names in _STARTS for name in names)


class Steps(click.Group):
    """The group of all subcommands; it imports the module of a subcommand only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *STEPS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for users first, and only the names of the workflow's steps below them."""
        *starts, (title, steps) = GROUPS.items()
        for heading, names in starts:
            with formatter.section(heading):
                formatter.write_dl([(name, _command(name).get_short_help_str(200)) for name in names])
        with formatter.section(title):
            formatter.write_text(", ".join(steps))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = error.message.removesuffix(".") + nearest(args[0], [*COMMANDS, *STEPS])
            raise click.UsageError(text, ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(cmd_name) if cmd_name in (*COMMANDS, *STEPS) else None


def module_of(name: str) -> str:
    """Return the name of a command's module, which is in `steps` or in the folder of a kind of data."""
    for kind in KINDS:
        if name in load_kind(kind).steps:
            return f"pairflow.kinds.{kind}.steps.{name}"
    return f"pairflow.steps.{name}"


def _command(name: str) -> click.Command:
    return importlib.import_module(module_of(name)).main


@click.command(cls=Steps, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pairflow")
def main() -> None:
    """Train and run few-step generators of molecules, images, text and vectors with PairFlow.

    There are two ways to start. `pairflow run demo` runs the demo on molecules that come with pairflow.
    `pairflow new my_library.smi` adds an experiment on your own molecules and prints how to run it.
    Afterwards `pairflow sample` generates as many molecules as you want.

    Snakemake runs the steps in order; you can also run each step by itself.
    """
