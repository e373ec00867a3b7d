"""PairFlow beside generators of others: calls counted alike, canonical uniqueness, and the same in docs/."""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.paper.page import PaperPage, render
from benchmarks.paper.standing import generators

RESULTS = Path(__file__).parents[3] / "docs" / "results.md"


@pytest.fixture
def run(make_run, metric_rows):
    rows = [
        metric_rows({("udlm", 1): [[64.0, 64.0]], ("pairflow", 1): [[0.0, 0.0]]}),
        metric_rows({("udlm", 1): [[48.0, 48.0]], ("pairflow", 1): [[0.0, 0.0]]}, "unique_strict"),
    ]
    return make_run(pd.concat(rows), "qm9_small", scale="reduced", seeds=(0,))


def test_a_printed_step_is_two_calls_but_of_masks_one_and_its_uniqueness_is_not_known():
    lines = {line.method: line for line in generators([])["QM9"]}
    assert lines["MDLM"].calls == "1"
    dcd = lines["PairFlow+DCD"]
    assert (dcd.calls, dcd.valid, dcd.unique, dcd.source) == ("2", "44.3", "", "the paper")
    assert lines["PairFlow+ReFlow x3"].valid == "51.7"
    assert "PairFlow+ReFlow x1" not in lines  # that is PairFlow+ReDi
    assert (lines["EGO"].calls, lines["EGO"].yields, lines["EGO"].rows) == ("1", "78.2", "graphs")


def test_measured_lines_are_of_one_step_and_by_canonical_smiles(run):
    *_, udlm, pairflow = generators([run])["QM9"]
    assert (udlm.method, udlm.calls, udlm.source) == ("udlm", "2", "measured: qm9_small, reduced scale")
    assert (udlm.valid, udlm.unique, udlm.yields) == ("6.2", "75.0", "4.7")
    assert (pairflow.valid, pairflow.unique) == ("0.0", "")
    assert generators([run])["ZINC-250k"] == generators([])["ZINC-250k"]


def test_the_page_says_what_does_not_compare(run):
    page = render(PaperPage({"qm9_small": run.experiment}, {"qm9_small": run}))
    for words in ("Beside other generators", "EGO, table 8", "compare only in part", "second-hand"):
        assert words in page, words


@pytest.mark.parametrize("name", ["QM9", "ZINC-250k"])
def test_the_documentation_has_the_same_numbers(name):
    text = RESULTS.read_text(encoding="utf-8")
    for line in generators([])[name]:
        if line.source != "the paper" or line.method in ("PairFlow+DCD", "PairFlow", "UDLM+DCD"):
            cells = (line.method, line.rows, line.calls, line.valid, line.unique, line.yields, line.fcd)
            row = " | ".join(cell or "–" for cell in cells)
            assert f"| {row} | {line.source} |" in text, row
