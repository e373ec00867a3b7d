"""The `pairflow` command: every step under one name, the same as `python -m pairflow.steps.<step>`."""

import pytest
from click.testing import CliRunner

from pairflow import __version__
from pairflow.cli import COMMANDS, STEPS, main


def test_help_names_every_step():
    run = CliRunner().invoke(main, ["--help"])
    assert run.exit_code == 0
    assert all(f"\n  {name} " in run.output for name in (*COMMANDS, *STEPS))


def test_help_teaches_the_two_ways_to_start():
    text = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert "snakemake --cores 2 results/demo/report.html" in text
    assert "pairflow new my_library.smi" in text


def test_version():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


@pytest.mark.parametrize("step", [*COMMANDS, *STEPS])
def test_every_step_has_help(step):
    run = CliRunner().invoke(main, [step, "--help"])
    assert run.exit_code == 0
    assert run.output.startswith(f"Usage: main {step} [OPTIONS]")


def test_a_mistake_is_one_line_with_exit_code_2(tmp_path):
    arguments = ["--tokens", str(tmp_path / "absent.parquet"), "--out", str(tmp_path / "pairs.parquet")]
    run = CliRunner().invoke(main, ["pair", *arguments])
    assert run.exit_code == 2
    assert run.output == f"pairflow pair: error: {tmp_path}/absent.parquet: no such file\n"


def test_settings_come_from_json_and_options_override_it(tmp_path):
    """Which of the two an error names shows which was read."""
    arguments = [
        "--tokens",
        "x",
        "--out",
        str(tmp_path / "pairs.parquet"),
        "--settings",
        '{"steps": -1, "seed": -2}',
    ]
    run = CliRunner().invoke(main, ["pair", *arguments, "--steps", "5"])
    assert "settings: seed: input should be greater than or equal to 0, found -2" in run.output
    run = CliRunner().invoke(main, ["pair", *arguments, "--seed", "5"])
    assert "settings: steps: input should be greater than or equal to 1, found -1" in run.output
    run = CliRunner().invoke(main, ["pair", *arguments[:-1], "[1]"])
    assert run.output == "pairflow pair: error: --settings: expected a JSON object\n"
    run = CliRunner().invoke(main, ["pair", *arguments[:-1], '{"coupling": "random", "sed": 1}'])
    assert "settings: unknown key 'sed' (did you mean 'seed'?)" in run.output
