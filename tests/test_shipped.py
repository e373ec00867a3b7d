"""Every shipped experiment through the commands that a user tries before a run, in this process."""

import json
import re
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from click.testing import CliRunner

from pairflow.cli import main
from pairflow.config.file import experiment_files, load, read
from pairflow.estimate import forecast
from pairflow.estimate.rates import Rate
from pairflow.plan.jobs import jobs, report_inputs
from pairflow.report.costs import training_costs

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
def test_jobs_and_the_inputs_of_the_report(name):
    root = Path("results", name)
    *others, report = jobs(root, EXPERIMENTS[name])
    made = [path for job in others for path in job.outputs.values()]
    assert len(made) == len(set(made))
    inputs = {path for group in report_inputs(root, EXPERIMENTS[name]).values() for path in group}
    assert inputs
    assert inputs <= set(made)
    assert report.outputs["page"] == root / "report.html"


@every_experiment
def test_what_training_on_pairs_cost(name):
    """The report counts the making of the pairs of every base method, by the rule that makes them."""
    plan, columns = EXPERIMENTS[name], ["step", "method", "seed"]
    rows = [(job.rule, job.method, job.seed) for job in jobs(Path("results", name), plan)]
    costs = training_costs(pd.DataFrame(rows, columns=columns).assign(seconds=2.0), plan)
    paired = {base for base, works in costs.items() if "pairing" in {cost.work for cost in works}}
    assert paired == {*plan.couplings()}


@every_experiment
def test_run_print(project, name):
    assert run("run", name, "--print") == f"snakemake --cores all -- results/{name}/report.html\n"


@every_experiment
def test_schema(name):
    VALIDATOR.validate({"experiments": {name: SHIPPED[name]}})
