"""The `pairflow` command offers every step, which `python -m pairflow.steps.<step>` also runs."""

import pkgutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import pairflow
import pairflow.steps
from pairflow import __version__
from pairflow.cli import COMMANDS, STEPS, main
from pairflow.kinds import KINDS


def test_every_step_has_its_name_in_the_command():
    paths = [*pairflow.steps.__path__, *map(str, Path(pairflow.__file__).parent.glob("kinds/*/steps"))]
    modules = {module.name for module in pkgutil.iter_modules(paths)}
    assert modules - {"command", "options"} == {*COMMANDS, *STEPS}


def test_help_lists_every_command_and_two_ways_to_start():
    finished = CliRunner().invoke(main, ["--help"])
    assert finished.exit_code == 0
    assert all(f"\n  {name} " in finished.output for name in COMMANDS)
    assert finished.output.split("describes one):")[1].replace(",", "").split() == list(STEPS)
    groups = ("Where to start:\n  new ", "Before you start:\n  init ", "describes one):\n  preprocess, ")
    places = [finished.output.index(start) for start in groups]
    assert places == sorted(places)
    text = " ".join(finished.output.split())
    assert "pairflow run demo" in text
    assert "pairflow new my_library.smi" in text
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_the_package_shows_what_it_offers():
    assert set(pairflow.__all__) <= set(dir(pairflow))
    assert all(hasattr(pairflow, name) for name in dir(pairflow))


@pytest.mark.parametrize("step", [*COMMANDS, *STEPS])
def test_every_command_has_help(step):
    finished = CliRunner().invoke(main, [step, "--help"])
    assert finished.exit_code == 0
    assert finished.output.startswith(f"Usage: main {step} [OPTIONS]")


@pytest.mark.parametrize("step", ["preprocess", "evaluate", "floor"])
def test_steps_of_kinds_list_them(step):
    helped = CliRunner().invoke(main, [step, "--help"]).output
    listed = helped.partition("Commands:\n")[2].splitlines()
    assert {line.split()[0] for line in listed if line[2:3] != " "} == set(KINDS)
    for kind in KINDS:
        today = CliRunner().invoke(main, [step, kind, "--help"])
        assert today.exit_code == 0
        assert "--settings JSON" in today.output
    unknown = CliRunner().invoke(main, [step, "txet"])
    assert unknown.exit_code == 2
    assert "unknown kind of data 'txet' (did you mean 'text'?)" in unknown.stderr


def test_a_misspelt_command_is_recognised():
    finished = CliRunner().invoke(main, ["sampel"])
    assert finished.exit_code == 2
    assert finished.stderr.endswith("No such command 'sampel' (did you mean 'sample'?)\n")


OUT_OF_BOUNDS = '{"steps": -1, "seed": -2}'


@pytest.mark.parametrize(
    ("settings", "options", "error"),
    [
        (OUT_OF_BOUNDS, ["--steps", "5"], "settings: seed: input should be greater than or equal"),
        (OUT_OF_BOUNDS, ["--seed", "5"], "settings: steps: input should be greater than or equal"),
        ("[1]", [], "--settings: expected a JSON object"),
        ('{"coupling": "random", "sed": 1}', [], "settings: unknown key 'sed' (did you mean 'seed'?)"),
    ],
)
def test_settings_come_from_json_and_options_override_it(tmp_path, settings, options, error):
    """Both values are out of bounds: the error names the one that no option replaced."""
    files = ["--tokens", "x", "--out", str(tmp_path / "pairs.parquet")]
    finished = CliRunner().invoke(main, ["pair", *files, "--settings", settings, *options])
    assert finished.output.startswith(f"pairflow pair: error: {error}")
