"""Which model of a finished experiment is sampled from, by metrics that are known."""

import json
import re

import pandas as pd
import pytest

from pairflow.artifacts import Metadata, as_metrics, write_table
from pairflow.errors import InputError
from pairflow.generate.choice import choose
from pairflow.kinds import on_demand_kinds
from pairflow.metrics.metric import best_run
from pairflow.settings.sampling import MeasuredAt
from pairflow.training.model_files import Description, write_description


@pytest.fixture
def experiment(tmp_path):
    """The folder of an experiment, given (method, nfe, trial, valid samples of 1,000)."""

    def write(runs, metric="valid", **evaluation):
        rows = pd.DataFrame(runs, columns=["method", "nfe", "trial", "value"]).assign(metric=metric)
        table = as_metrics(rows, seed=3, evaluation="main", samples=1000)
        metadata = Metadata(kind="metrics", parameters={"evaluations": {"main": evaluation}})
        write_table(tmp_path / "metrics.parquet", table, metadata)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("runs", "nfe", "method", "steps"),
    [
        ([("a", 1, 0, 500), ("a", 4, 0, 800), ("b", 4, 0, 900), ("b", 1, 0, 100)], None, "b", 4),
        ([("a", 4, 0, 891), ("a", 32, 0, 900), ("b", 4, 0, 895)], None, "b", 4),  # within a percentage point
        ([("a", 1, 0, 500), ("a", 1, 1, 300), ("b", 1, 0, 450), ("b", 1, 1, 450)], None, "b", 1),  # the mean
        ([("a", 1, 0, 500), ("a", 4, 0, 800), ("b", 1, 0, 600)], 2, "a", 2),  # not evaluated there
    ],
)
def test_the_best_share_at_the_fewest_steps(experiment, runs, nfe, method, steps):
    root = experiment(runs)
    choice = choose(root, nfe)
    assert (choice.folder, choice.nfe) == (root / f"seed3/models/{method}", steps)
    assert choice.reason.startswith(f"{root}: takes {method} with --nfe {steps}; by the metrics ")


def test_samples_are_drawn_as_they_were_measured(experiment):
    measured = {"temperature": 0.7, "sampler": "euler", "greedy_tail": False, "grammar": True}
    choice = choose(experiment([("a", 4, 0, 900)], **measured), None)
    assert choice.measured == MeasuredAt(nfe=4, **measured)
    options = "--nfe 4 --temperature 0.7 --sampler euler --no-greedy-tail --grammar"
    assert f" takes a with {options}; by the metrics " in choice.reason


def test_plausible_samples_count_before_valid_ones(experiment):
    runs = [("a", 1, 0, 1000), ("a", 8, 0, 990), ("a", 1, 0, 100), ("a", 8, 0, 250)]
    root = experiment(runs, ["valid", "valid", "plausible", "plausible"])
    choice = choose(root, None)
    assert choice.nfe == 8
    assert choice.reason.endswith("25.0% of its samples are plausible at 8 steps")


@pytest.mark.parametrize(
    ("means", "lowest", "best"),
    [
        ({("a", 8): 2.0, ("a", 1): 2.019, ("b", 2): 2.01}, True, ("a", 1)),  # within one per cent of 2
        ({("a", 8): 2.0, ("a", 1): 2.03, ("b", 2): 2.01}, True, ("b", 2)),
        ({("a", 1): -5.0, ("b", 4): -4.0}, False, ("b", 4)),
    ],
)
def test_the_best_run_has_the_fewest_of_the_steps_that_are_as_good(means, lowest, best):
    assert best_run(means, lowest) == best


def test_the_folder_of_a_model_is_taken_as_it_is(experiment):
    root = experiment([("a", 1, 0, 500)])
    weights = root / "model.safetensors"
    weights.touch()
    needed = [name for name, field in Description.model_fields.items() if field.is_required()]
    facts = dict.fromkeys(needed) | {"method": "udlm", "network": {"name": "mlp"}, "prediction": "posterior"}
    facts |= {"length": 4, "vocabulary_size": 5, "vocabulary": "v"}
    write_description(root / "model.json", facts, weights)
    assert choose(root, 4)[:3] == (root, 4, "")
    with pytest.raises(InputError, match="a single model has no default number of steps; add --nfe"):
        choose(root, None)
    (root / "sampling.json").write_text('{"nfe": 8, "temperature": 0.7, "sampler": "euler"}')
    chosen = choose(root, None)
    assert chosen.measured == MeasuredAt(nfe=8, temperature=0.7, sampler="euler")
    assert "takes --nfe 8 --temperature 0.7 --sampler euler, unless" in chosen.reason
    assert choose(root, 2) == (root, 2, "", root / "sampling.json", chosen.measured)
    assert choose(root, None, scores=True)[2:] == ("", None, None)


def test_a_broken_model_is_said_before_its_steps_are_asked_for(experiment):
    root = experiment([("a", 1, 0, 500)])
    (root / "model.json").touch()
    with pytest.raises(InputError, match="not a model description of pairflow"):
        choose(root, None)


def test_a_folder_without_a_model_names_those_that_are_near(tmp_path):
    for name in ("results/demo/metrics.parquet", "results/demo/seed0/models/udlm/model.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    root = tmp_path / "results"
    text = f"{root}/dmo/model.json: no such file (did you mean 'demo'?): {root} has demo"
    with pytest.raises(InputError, match=re.escape(text)):
        choose(root / "dmo", None)
    with pytest.raises(InputError, match=f"{root}/demo/seed0/models has udlm$"):
        choose(root / "demo/seed0/models", None)


@pytest.mark.parametrize(("kind", "rows"), [("tokens", "token rows"), ("vectors", "vectors")])
def test_an_experiment_without_molecules_says_how_to_sample(experiment, kind, rows):
    root = experiment([("a", 1, 0, 500)], metric="fid")
    with pytest.raises(InputError, match="no metric 'valid' to choose a model by; name the folder of a"):
        choose(root, None)
    for folder in (root / "data", root / "seed0/models/udlm"):
        folder.mkdir(parents=True)
        (folder / "vocabulary.json").write_text(json.dumps({"kind": kind}))
    model = root / "seed0/models/udlm"
    (model / "model.json").touch()
    options, makes = "--samples 100 --trials 1", " or ".join(sorted(each.rows for each in on_demand_kinds()))
    for folder, text in (
        (root, f"its models make {rows}: use --model {model} --nfe 4 {options}"),
        (model, f"this model makes {rows}: use {options}"),
    ):
        with pytest.raises(InputError, match=f"{folder}: --count makes {makes}; {text}$"):
            choose(folder, None)
