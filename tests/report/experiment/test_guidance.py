"""What the page shows of an evaluation at several weights of guidance."""

from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
from pages import Document, sampled

from pairflow.kinds.molecules.settings.metrics import METRICS
from pairflow.report.experiment.page import render
from pairflow.report.experiment.quality import evaluation_blocks

pytestmark = pytest.mark.usefixtures("empty_charts")
METHODS, NFE = ("udlm", "pairflow"), (1, 4)
WEIGHTS = {"main": 1.0, "main_g0": 0.0, "main_g2_5": 2.5}
IN_CLASS = {"main": 300, "main_g0": 200, "main_g2_5": 500}
SETTINGS = {
    "data": {"source": "small_molecules", "length": 16, "condition": {"property": "logp"}},
    "methods": list(METHODS),
    "evaluations": {"main": {"nfe": list(NFE), "condition": "logp=high", "guidances": [0, 2.5]}},
}


@pytest.fixture(scope="module")
def contents(make):
    values = {"valid": 600, "unique_strict": 500, "novel_strict": 100}
    rows = [
        sampled(values | {"in_class": IN_CLASS[name] + 100 * trial}, evaluation=name, trial=trial, **of)
        for name, trial in product(WEIGHTS, range(2))
        for of in ({"method": method, "nfe": nfe} for method, nfe in product(METHODS, NFE))
    ]
    return make(settings=SETTINGS, metrics=pd.concat(rows, ignore_index=True))


def test_a_curve_per_number_of_steps(contents):
    [block] = evaluation_blocks(contents)  # the repetitions have no block of their own
    guidance = block.details.shown["guidance"]
    assert guidance["condition"] == "logp=high"
    assert [*guidance["trades"]] == ["in the class asked for"]
    trades = guidance["trades"]["in the class asked for"]
    assert list(trades) == [1, 4]
    trade = trades[1]
    assert "at guidance 0, 1, 2.5. " in trade.alt
    shares = ("41.7", "58.3", "91.7")  # of 600 valid samples, means of both trials
    for weight, share in zip(("0", "1", "2.5"), shares, strict=True):
        assert f'"guidance {weight}","in the class {share} %"' in trade.points


def test_each_of_several_properties_has_its_own_chart(make):
    condition = [{"property": "logp"}, {"property": "rings"}]
    data = {"source": "small_molecules", "length": 16, "condition": condition}
    asked = {"condition": "logp=spread,rings=high", "guidances": [2]}
    values = {"valid": 600, "novel_strict": 100, "in_class": 150, "logp_in_class": 300, "rings_in_class": 200}
    rows = pd.concat([sampled(values, evaluation=name) for name in ("main", "main_g2")], ignore_index=True)
    settings = SETTINGS | {"data": data, "methods": ["udlm"], "evaluations": {"main": {"nfe": [1], **asked}}}
    contents = make(settings=settings, metrics=rows, properties={})
    [block] = evaluation_blocks(contents)
    guidance = block.details.shown["guidance"]
    assert guidance["condition"] == "logp=spread, rings=high"
    points = {what: pictures[1].points for what, pictures in guidance["trades"].items()}
    expected = {
        "in the class asked for": "in the class 25.0 %",
        "in the class of logP": "in the class of logP 50.0 %",
        "in the class of rings": "in the class of rings 33.3 %",
    }
    assert points.keys() == expected.keys()
    assert all(f'"guidance 2","{text}"' in points[what] for what, text in expected.items())


@pytest.fixture
def make_column(make):
    """Contents of a model that was asked for pIC50, at some guidance weights; at weight 0 fewer follow it."""

    def build(asked, guidances, **more):
        values = {"valid": 600, "novel_strict": 100, "nearest_in_class": 300, "nearest_by_chance": 210} | more
        names = {"main": 300} | {f"main_g{weight}": 450 if weight else 240 for weight in guidances}
        rows = [
            sampled(values | {"nearest_in_class": followed}, evaluation=name, nfe=nfe)
            for (name, followed), nfe in product(names.items(), (1, 8))
        ]
        conditions = [{"column": "pIC50"}, {"property": "qed"}]
        data = {"source": "library.csv", "length": 16, "condition": conditions}
        evaluations = {"main": {"nfe": [1, 8], "condition": asked, "guidances": guidances}}
        settings = SETTINGS | {"data": data, "methods": ["udlm"], "evaluations": evaluations}
        return make(settings=settings, metrics=pd.concat(rows, ignore_index=True), properties={})

    return build


def test_a_column_is_followed_if_the_nearest_training_molecules_are_in_the_class(make_column):
    contents = make_column("pIC50=high", [0, 2])
    [block] = evaluation_blocks(contents)
    nearest = block.details.shown["nearest"]
    assert (nearest["columns"], nearest["nfe"]) == (["pIC50"], 8)
    assert nearest["rows"] == [["udlm", "50.0 %", "40.0 %", "35.0 %"]]
    chart = block.details.shown["guidance"]["trades"][METRICS["nearest_in_class"].label][1]
    assert '"guidance 2","nearest training molecule in the class asked for 75.0 %"' in chart.points
    assert "Does the model follow pIC50?" in Document(render(contents)).words()


@pytest.mark.parametrize(("asked", "advised"), [("pIC50=high", True), ("pIC50=spread", False)])
def test_a_single_class_needs_guidance_0_to_compare_with(make_column, asked, advised):
    contents = make_column(asked, [])
    [block] = evaluation_blocks(contents)
    assert block.details.shown["nearest"]["rows"] == [["udlm", "50.0 %", "35.0 %"]]
    assert ("guidances: [0]" in Document(render(contents)).words()) == advised


def test_a_column_is_not_said_to_be_followed_without_valid_samples(make_column, contents):
    [block] = evaluation_blocks(make_column("pIC50=spread", [], valid=0, nearest_by_chance=0))
    assert block.details.shown["nearest"]["rows"] == [["udlm", "–", "–"]]
    assert (
        "Does the model follow" not in Document(render(contents)).words()
    )  # RDKit computes what it was asked


def test_the_page_says_how_many_held_out_rows_are_likelier_under_their_class(make_column):
    contents = make_column("pIC50=spread", [])
    shares = {"likelier_in_class": [0.7, 0.8], "likelier_by_chance": [0.25, 0.25]}
    rows = pd.DataFrame(shares).melt(var_name="metric").assign(seed=[0, 1] * 2, method="udlm", samples=250)
    metrics = pd.concat([contents.metrics, rows.assign(evaluation="condition")])
    contents = replace(contents, metrics=metrics)
    assert contents.likelier == {"udlm": (0.75, 0.25, 250)}
    assert "udlm 75.0 % 25.0 % 250" in Document(render(contents)).words()
