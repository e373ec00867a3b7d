"""Commands from settings: what the help of an option says if several modes of a command have the option."""

import inspect

import click

from pairflow.cli import COMMANDS, STEPS, main
from pairflow.steps.command import _fields, _help


def modes_of(command: click.Command) -> dict:
    """The settings class of each mode of a command; empty for a command without modes."""
    if not hasattr(command.callback, "__wrapped__"):
        return {}
    names = inspect.getclosurevars(command.callback).nonlocals
    return {"": names["settings"], **names["modes"]} if names.get("modes") else {}


def test_the_help_of_an_option_has_the_text_of_every_mode():
    """Meaning, default and mode: `--nfe` of `sample` is required, or with --count chosen by metrics."""
    shared = set()
    for name in (*COMMANDS, *STEPS):
        command = main.get_command(None, name)
        helps = {option.name: option.help for option in command.params if isinstance(option, click.Option)}
        texts: dict = {}
        for mode, settings in modes_of(command).items():
            for key, (_, info) in _fields(settings).items():
                texts.setdefault(key, {}).setdefault(_help(info), []).append(mode)
        for key, by_text in texts.items():
            for text, where in by_text.items():
                assert text in helps[key], (name, key)
                if len(by_text) > 1:
                    begin = helps[key][: helps[key].index(text)].rpartition("  ")[2]
                    named = begin.removesuffix(": ").replace(" or ", " and ").split(" ", 1)[1].split(" and ")
                    modes = [option.removeprefix("--") for option in named]
                    assert begin.startswith("Without --" if "" in where else "With --"), (name, key)
                    assert ("" in where) or sorted(modes) == sorted(where)
                    assert "" not in where or not set(modes) & set(where)
                    shared.add((name, key))
    assert {("sample", "nfe"), ("sample", "seed"), ("teach", "count")} <= shared
