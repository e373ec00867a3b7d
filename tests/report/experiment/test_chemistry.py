"""What the page shows of molecules beyond valid, unique and novel."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from pages import sampled

from pairflow.kinds.molecules.measures.chemistry import histograms
from pairflow.kinds.molecules.page.charts import STAGES
from pairflow.report.experiment.page import render
from pairflow.report.experiment.quality import evaluation_blocks

pytestmark = pytest.mark.usefixtures("empty_charts")
METHODS, NFE = ("udlm", "pairflow"), (1, 32)
COUNTS = {
    **{"valid": 624.0, "invalid_empty": 0, "invalid_syntax": 300, "invalid_ring": 60, "invalid_valence": 30},
    **{"unique_strict": 500, "novel_strict": 100, "invalid_kekulize": 10},
    **{"scaffolds": 40, "novel_scaffolds": 4},
}
SHARES = {"internal_diversity": 0.91, "nn_similarity": 0.62, "qed_wasserstein": 0.0123}
SHARES |= {"sa_wasserstein": 0.2, "logp_wasserstein": 0.31, "weight_wasserstein": 4.5}
VALUES = COUNTS | SHARES


@pytest.fixture(scope="module")
def contents(make):
    """Two methods at two NFE, 2 trials; at NFE 1 `udlm` has nothing valid."""
    keys = product(METHODS, NFE, range(2))
    of_files = [
        sampled(VALUES, method=method, nfe=nfe, trial=trial, samples=1024) for method, nfe, trial in keys
    ]
    rows = pd.concat(of_files, ignore_index=True)
    none = (rows.method == "udlm") & (rows.nfe == 1)
    rows.loc[none & rows.metric.str.contains("wasserstein|diversity|similarity"), "value"] = np.nan
    rows.loc[none & rows.metric.str.contains("^valid|strict|scaffolds"), "value"] = 0
    rows.loc[none & (rows.metric == "invalid_syntax"), "value"] = 924
    random = np.random.default_rng(0)
    training = random.normal(size=(500, 4))
    counts = {
        nfe: {
            method: histograms(random.normal(size=(0 if (method, nfe) == ("udlm", 1) else 90, 4)), training)
            for method in METHODS
        }
        for nfe in NFE
    }
    return make(settings={"methods": list(METHODS)}, metrics=rows, properties={"main": counts})


@pytest.fixture
def make_one(make):
    """Contents of one method; `counts` of each metric by (method, number of steps)."""

    def build(method, samples, counts):
        keys = counts.items()
        rows = [sampled(own, method=name, nfe=nfe, samples=samples) for (name, nfe), own in keys]
        return make(settings={"methods": [method]}, metrics=pd.concat(rows, ignore_index=True))

    return build


@pytest.fixture(scope="module")
def block(contents):
    [block] = evaluation_blocks(contents)
    return block


@pytest.fixture(scope="module")
def found(block):
    return block.details.shown


def test_every_measured_metric_is_in_one_table_with_the_decimals_that_it_needs(block):
    assert sorted(table.metric for table in block.tables) == sorted(VALUES)
    assert [table.metric for table in block.main.tables] == ["valid", "unique_strict", "novel_strict"]
    cells = {table.metric: table.rows["pairflow"][0].text for table in block.tables}
    assert cells["invalid_ring"] == "60.0"
    assert cells["qed_wasserstein"] == "0.012"
    assert cells["nn_similarity"] == "0.62"
    missing = {table.metric: table.rows["udlm"][0].text for table in block.tables}
    assert missing["qed_wasserstein"] == "–"


def test_reasons_have_a_chart_per_method_with_all_numbers_in_words(found):
    assert list(found["reasons"]) == list(METHODS)
    text = found["reasons"]["udlm"].alt
    assert "syntax: 924.0 at 1, 300.0 at 32; ring closure: 60.0 at 1" in text
    assert found["reasons"]["pairflow"].svg.count("<pattern") == 4  # not told apart by colour alone


def test_properties_are_drawn_at_both_ends_with_their_distance(found):
    assert list(found["properties"]) == [32, 1]  # the most steps first
    labels = ["QED", "SA score", "logP", "molecular weight (g/mol)"]
    assert all([one["label"] for one in shapes] == labels for shapes in found["properties"].values())
    few, many = found["properties"][1][0], found["properties"][32][0]
    assert few["distances"] == {"udlm": "–", "pairflow": "0.012"}
    assert "udlm" not in few["picture"].alt  # nothing valid to draw
    assert "udlm: " in many["picture"].alt


def test_without_histograms_those_parts_are_left_out(make):
    [block] = evaluation_blocks(make())
    bare = block.details.shown
    assert (bare["reasons"], bare["properties"]) == ({}, {})
    assert [group.title for group in block.groups] == ["Counts by spelling"]


def test_what_is_left_at_each_stage_is_drawn_beside_held_out_molecules_and_controls(make_one):
    """Of udlm at its best number of steps, 1: 80 % of 1,024 samples are left, and of real ones 90 %."""

    def left(share):
        return dict.fromkeys(STAGES, share * 1024)

    counts = {("udlm", 1): left(0.8), ("udlm", 32): left(0.4), ("data", None): left(0.9) | {"held_out": 1000}}
    counts["one carbon more", None] = left(0.7) | {"plausible": 0.4 * 1024}
    contents = make_one("udlm", 1024, counts)
    [block] = evaluation_blocks(contents)
    drawn = block.details.shown["survivors"].alt
    assert all(line in drawn for line in ("udlm", "held-out molecules", "one carbon more"))
    page = render(contents)
    for share in ("80.0 % are plausible", "Of 1,000 held-out molecules 90.0 %"):
        assert share in page


def test_a_few_held_out_molecules_are_counted_and_no_line_compares_them_with_samples(make_one):
    """5 of 8 held-out molecules are plausible: 640 of 1,024, which no page may print."""
    held_out = dict.fromkeys(STAGES, 1024) | {"plausible": 640, "held_out": 8}
    counts = {("udlm", 1): dict.fromkeys(STAGES, 700), ("data", None): held_out}
    contents = make_one("udlm", 1024, counts)
    [block] = evaluation_blocks(contents)
    assert all(table.floor is None for table in block.tables)
    assert "held-out molecules" not in block.details.shown["survivors"].alt
    page = render(contents)
    assert "5 of 8 held-out molecules are plausible: too few for a comparison." in page
    assert '<td class="real">5 of 8</td>' in page
    for wrong in ("640", "62.5 %", "dotted line"):
        assert wrong not in page, wrong


def test_the_page_of_a_users_library_begins_with_plausible_molecules_and_names_no_paper(make):
    data = {"source": "my_library.smi", "length": 16}
    every = make().metrics
    contents = make(
        settings={"methods": ["pairflow"], "data": data},
        metrics=every[every.method == "pairflow"],
        correlations={},
        choose_plausible=lambda *run: ["CC(=O)Nc1ccccc1C"],
    )
    page = render(contents)
    text = page[page.index("<main") :]
    assert text.index("Structure of CC(=O)Nc1ccccc1C") < text.index("<table")
    words = page[: page.index("The whole configuration")]
    found = re.findall("(?:.{30})(?:[Pp]aper|[Ss]ource|[Cc]oupling)(?:.{30})", words)
    assert not found, found


def test_fine_tuned_methods_are_compared_with_their_start(make, make_one):
    """At the largest number of steps, which is that of the start's samples; shares of 200 samples."""
    values = {("pairflow", 4): 20, ("pairflow", 32): 50, ("data", None): 80}
    values |= {("the start, untrained", None): 10}
    names = {"plausible": 0, "valid": 9, "common_scaffolds": 6}
    counts = {key: {name: value + more for name, more in names.items()} for key, value in values.items()}
    contents = make_one("pairflow", 200, counts)
    [block] = evaluation_blocks(contents)
    start = block.details.shown["start"]
    assert (start["nfe"], start["columns"]) == (32, ["its start", "pairflow", "held-out molecules"])
    assert {line["metric"]: line["shares"] for line in start["rows"]} == {
        "plausible": ["5.00 %", "25.0 %", "40.0 %"],
        "common_scaffolds": ["8.00 %", "28.0 %", "43.0 %"],
    }
    plain = make(settings={"methods": ["pairflow"]}, metrics=contents.metrics[contents.metrics.nfe.notna()])
    for shown, own in ((True, contents), (False, plain)):
        assert ("Is it a model of these molecules?" in render(own)) is shown
