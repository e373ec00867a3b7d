"""Nonsense for options of commands, and what a command makes of it. It runs in a process of its own.

Some options set what holds for a whole process, such as PyTorch's number of threads.
"""

import importlib
import json
import os
from pathlib import Path

import click
from click.testing import CliRunner
from deadline import Late, within

from pairflow.cli import COMMANDS, STEPS, module_of

SECONDS = 20  # of each call
NUMBERS = ["12345678901234567890", "-1", "0", "-0.0", "1e400", "nan", "inf", "-inf", "1_000", "0x10", "٣"]
NUMBERS += ["9" * 5000, "1e-400", "2147483648", "9223372036854775808"]
NUMBERS += ["0.1.2", "½", "+", "1,5", " 7 ", "true"]
TEXTS = ["", " ", "x" * 100_000, "\t\r\n", "\x1b[2J", "é\u0301\u202e", "-", "--", "..", "/", "\\", "*", "{x}"]
JSONS = ["[" * 30, "[" * 100_000, "{" * 30, '{"a":' * 2000 + "1" + "}" * 2000, "null", "[]", "{}", '{"":""}']
JSONS += ['{"nfe": 1e999}', '{"nfe": 99999999999999999999}', '{"seed": -1, "nfe": 1}', '{"nfe": NaN}', '"']
VALUES = [*NUMBERS, *TEXTS, *JSONS]
# `doctor` and `estimate` measure and look at the machine, whatever is asked for.
LEFT_OUT = {"doctor", "estimate"}
Case = tuple[str, str, str]  # a command, one of its options, and its value


def commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in sorted({*COMMANDS, *STEPS} - LEFT_OUT):
        main = importlib.import_module(module_of(name)).main
        kinds = main.commands if isinstance(main, click.Group) else {}
        found |= {f"{name} {kind}": command for kind, command in kinds.items()} or {name: main}
    return found


def options() -> list[tuple[str, str]]:
    """One option of each type, with the bounds and choices that it has."""
    found = {}
    for name, command in commands().items():
        for option in command.params:
            if isinstance(option, click.Option):
                facts = (option.to_info_dict()["type"], option.multiple, option.is_flag)
                found.setdefault(json.dumps(facts, default=str), (name, option.opts[0]))
    return [*found.values()]


def arguments(command: click.Command, chosen: str, value: str) -> list[str]:
    """The chosen option with its value, and a file that is not there for each other one that is needed."""
    words = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words.append("nowhere/missing.smi")
        elif parameter.opts[0] == chosen:
            words.append(chosen if parameter.is_flag else f"{chosen}={value}")
        elif parameter.required:
            words += [parameter.opts[0], "nowhere/missing.parquet"]
    return words


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
    hints = ("Usage", "Try", "pairflow: note: ")
    lines = [line for line in run.stderr.splitlines() if line and not line.startswith(hints)]
    if run.exit_code == 2 and len(lines) != 1:
        return f"says {len(lines)} lines: {lines[:3]}"
    return ""


def try_all(cases: list[Case], folder: str, found: str) -> None:
    """Try the cases in a folder, and write the mistakes into the file `found` (JSON)."""
    os.chdir(folder)
    os.environ["PAIRFLOW_DATA_DIR"] = folder
    known = commands()
    wrong = {
        f"{name} {option}={value[:60]!r}": text
        for name, option, value in cases
        if (text := mistake(known[name], arguments(known[name], option, value)))
    }
    Path(found).write_text(json.dumps(wrong))
