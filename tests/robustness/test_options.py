"""Nonsense in every option of every command ends in a line, and exit code 2 (or 0 where it is none)."""

import importlib
import os
import random

import click
import pytest
from click.testing import CliRunner
from deadline import Late, within

from pairflow.cli import COMMANDS, STEPS, module_of

CASES = int(os.getenv("PAIRFLOW_OPTION_CASES", "450"))
SECONDS = 20  # of each call
NUMBERS = ["12345678901234567890", "-1", "0", "-0.0", "1e400", "nan", "inf", "-inf", "1_000", "0x10", "٣"]
NUMBERS += [
    "9" * 5000,
    "1e-400",
    "2147483648",
    "9223372036854775808",
    "0.1.2",
    "½",
    "+",
    "1,5",
    " 7 ",
    "true",
]
TEXTS = ["", " ", "x" * 100_000, "\t\r\n", "\x1b[2J", "é\u0301\u202e", "-", "--", "..", "/", "\\", "*", "{x}"]
JSONS = ["[" * 30, "[" * 100_000, "{" * 30, '{"a":' * 2000 + "1" + "}" * 2000, "null", "[]", "{}", '{"":""}']
JSONS += ['{"nfe": 1e999}', '{"nfe": 99999999999999999999}', '{"seed": -1, "nfe": 1}', '{"nfe": NaN}', '"']
VALUES = [*NUMBERS, *TEXTS, *JSONS]
# `doctor` and `estimate` measure and look at the machine, whatever is asked for.
LEFT_OUT = {"doctor", "estimate"}


def commands() -> dict[str, click.Command]:
    names = sorted({*COMMANDS, *STEPS} - LEFT_OUT)
    found: dict[str, click.Command] = {}
    for name in names:
        main = importlib.import_module(module_of(name)).main
        kinds = main.list_commands(click.Context(main)) if isinstance(main, click.Group) else []
        of_kinds = {f"{name} {kind}": main.get_command(click.Context(main), kind) for kind in kinds}
        found |= of_kinds or {name: main}
    return found


def arguments(command: click.Command, chosen: click.Option, value: str) -> list[str]:
    """The chosen option with its value, and a file that is not there for each other one that is needed."""
    words = []
    for parameter in command.params:
        if parameter is chosen:
            continue
        if parameter.required and isinstance(parameter, click.Option):
            words += [parameter.opts[0], "nowhere/missing.parquet"]
        elif isinstance(parameter, click.Argument):
            words.append("nowhere/missing.smi")
    return [*words, *([chosen.opts[0]] if chosen.is_flag else [f"{chosen.opts[0]}={value}"])]


def mistake(command: click.Command, words: list[str]) -> str:
    """What is wrong with a call's end; empty if nothing is."""
    try:
        with within(SECONDS):
            run = CliRunner().invoke(command, words)
    except Late:
        return "does not end"
    if run.exception and not isinstance(run.exception, SystemExit):
        return f"ends in {run.exception!r:.200}"
    if run.exit_code not in (0, 2):
        return f"has exit code {run.exit_code}"
    if "Traceback" in run.stderr:
        return "prints a traceback"
    lines = [line for line in run.stderr.splitlines() if line and not line.startswith(("Usage", "Try"))]
    if run.exit_code == 2 and len(lines) != 1:
        return f"says {len(lines)} lines: {lines[:3]}"
    return ""


@pytest.mark.promise("options", times=CASES)
def test_nonsense_in_any_option_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(tmp_path))
    chance = random.Random(0)
    options = [
        (name, command, option)
        for name, command in commands().items()
        for option in command.params
        if isinstance(option, click.Option)
    ]
    # Each option at least once, if there are so many cases, with another value each time.
    cases = [options[k % len(options)] for k in range(CASES)] if len(options) <= CASES else []
    cases = cases or chance.sample(options, CASES)
    found = {}
    for name, command, option in cases:
        value = chance.choice(VALUES)
        if "\0" not in value and (wrong := mistake(command, arguments(command, option, value))):
            found[f"{name} {option.opts[0]}={value[:60]!r}"] = wrong
    assert not found
    assert [path.name for path in tmp_path.iterdir()] == []
