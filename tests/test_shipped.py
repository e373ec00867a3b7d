"""Every shipped experiment through the commands that a user tries before a run, in this process."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from pairflow.cli import main
from pairflow.config.file import experiment_files, load, read
from pairflow.estimate import forecast
from pairflow.estimate.rates import Rate
from pairflow.plan.jobs import jobs

REPOSITORY = Path(__file__).parent.parent
CONFIGURATION = REPOSITORY / "workflow_config.yaml"
SHIPPED = {
    name: entry
    for file in (CONFIGURATION, *experiment_files(CONFIGURATION, "recipes"))
    for name, entry in load(file.read_text(), file)["experiments"].items()
}
EXPERIMENTS = {name: plan for name, plan in read(CONFIGURATION).experiments.items() if name in SHIPPED}
VALIDATOR = jsonschema.Draft202012Validator(json.loads((REPOSITORY / "config/schema.json").read_text()))
# Jobs of unknown time, which run Inception or GPT-2 large, by the data.
BY_INCEPTION = {"reference", "floor", "evaluate"}
UNTIMED = dict.fromkeys(("mnist_binary", "mnist", "cifar10", "ffhq64"), BY_INCEPTION)
UNTIMED["lm1b"] = {"floor", "evaluate"}

every_experiment = pytest.mark.parametrize("name", EXPERIMENTS)


def run(*arguments: str) -> str:
    finished = CliRunner().invoke(main, arguments)
    assert finished.exit_code == 0, finished.output
    return finished.stdout


@every_experiment
def test_estimate_with_rates_in_the_place_of_measured_ones(project, monkeypatch, name):
    monkeypatch.setattr(forecast, "measure", lambda *_: Rate(0.1, 100.0, "measured", 1000))
    text = run("estimate", name, "--quiet", "--device", "cpu")
    plan = EXPERIMENTS[name]
    untimed = re.findall(r"^time unknown: (.*)", text, re.MULTILINE)
    unknown = set(re.findall(r"(\w+) \(\d+\)", *untimed or [""]))
    assert unknown == (UNTIMED.get(plan.data.source, set()) if plan.scale == "paper" else set())


@every_experiment
def test_estimate_recorded(project, name):
    text = run("estimate", name, "--recorded", "--quiet", "--device", "cpu")
    count = len(jobs(Path("results", name), EXPERIMENTS[name]))
    assert f"to do      {count} of {count} jobs\nwall time  " in text


@every_experiment
def test_schema(name):
    VALIDATOR.validate({"experiments": {name: SHIPPED[name]}})
