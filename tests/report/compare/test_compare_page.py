"""The page itself: whole, offline, the same each time, legible at both widths and to assistive technology."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from pages import COUNTS, Document, metric_rows, violations

from pairflow.report.compare.numbers import tabulate
from pairflow.report.compare.page import render
from pairflow.report.compare.sections import compare_runs
from pairflow.report.compare.verdict import write_verdict
from pairflow.report.results import FinishedExperiment


@pytest.fixture(scope="module")
def make_run(make):
    """A run of three methods at three numbers of steps, `plus` more of all; `settings` are merged in.

    It has two metrics, because drawings take time.
    """

    def build(name="a", plus=0.0, seeds=(0, 1, 2), metrics=("valid", "novel_strict"), **settings):
        contents = make(settings={"seeds": seeds, **settings})
        rows = metric_rows(COUNTS, seeds=seeds)
        rows = rows[rows.metric.isin(metrics)]
        rows = rows.assign(value=rows.value + plus + rows.seed * (1 + plus) + rows.nfe * rows.seed % 3)
        return FinishedExperiment(name, contents.experiment, rows, contents.timings, contents.provenance)

    return build


@pytest.fixture(scope="module")
def page(make_run) -> str:
    wide = make_run("b" * 60, 2, network={"name": "mlp", "width": 768})
    return render(compare_runs([make_run(), wide, make_run("c", 1, seeds=(0,))]), "comparison.parquet")


def test_every_section_is_there_and_nothing_is_fetched(page, make_run):
    document = Document(page)
    assert document.headings() == ["verdict", "runs", "metrics-compared", "rules", "metrics"]
    asked = set(re.findall(r'popovertarget="about-(\w+)"', page))
    assert "valid" in asked
    assert asked == set(re.findall(r'id="about-(\w+)"', page))
    assert not {"script", "link", "img"} & {tag for tag, _ in document.tags}
    assert not {"nan", "NFE"} & {*document.words().split()}
    assert "<script>" not in render(compare_runs([make_run("<script>alert(1)</script>")]), "c.parquet")


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1600, "dark")])
def test_the_page_fits_its_window_and_is_accessible(page, open_page, width, scheme):
    shown = open_page(page, width, color_scheme=scheme)
    shown.evaluate("document.querySelectorAll('details').forEach(element => { element.open = true; })")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(shown) == []


def raised(run, by, column):
    """Another run whose values are higher, by a little more or less from seed to seed or trial to trial."""
    noise = run.metrics[column].map({0: 0.5, 1: -1.0, 2: 0.5})
    return replace(run, name="b", metrics=run.metrics.assign(value=run.metrics.value + by + noise))


def test_one_training_says_so_and_its_verdicts_have_no_colour(make_run):
    several, one = make_run(), make_run(seeds=(0,))
    page = render(compare_runs([several, raised(several, 20, "seed")]), "comparison.parquet")
    assert '<small class="verdict better">better</small>' in page
    assert "In this training" not in page
    compared = compare_runs([one, raised(one, 20, "trial")])
    assert 'class="verdict' not in render(compared, "comparison.parquet")
    assert [sentence[:18] for sentence in write_verdict(compared)] == ["In this training, "] * 2


def test_what_is_undecided_says_what_would_have_shown(make_run):
    """Nine equal means whose differences have standard error 0.5, times t(1 - 0.05 / 18, 2) = 13.36."""
    run = make_run(seeds=(0,))
    compared = compare_runs([run, raised(run, 0, "trial")])
    assert "p = 1.000 undecided; about 6.7 would show" in Document(render(compared, "c.parquet")).words()
    assert write_verdict(compared) == [
        "In this training, judged by the number of valid molecules among 1,024 samples, no difference "
        "between b and a is decided in 9 comparisons; the tests would have found a difference of about 6.7; "
        "warnings about 6 models: under half of its samples are valid molecules.",
        "In this training, the comparisons with a by other measures are: off the rules (9 undecided).",
    ]


def test_what_equal_steps_hide_is_said(make_run):
    """Masks make one call less, and these samples of udlm vary less at 32 steps."""
    counts = {"udlm": (90.0, 60.0, 30.0), "mdlm": (95.0, 65.0, 40.0)}
    rows = metric_rows(counts, seeds=(0, 1, 2)).query("metric == 'valid'")
    less = (rows.method == "udlm") & (rows.nfe == 32)
    entropy = rows.assign(metric="entropy", value=2.4 - 0.2 * less)
    text = pd.concat([rows.assign(metric="judge_ppl"), entropy], ignore_index=True)
    data = {"source": "shakespeare", "tokeniser": "characters", "length": 16}
    run = make_run(data=data, methods=("udlm", "mdlm"), correlation=None)
    compared = compare_runs([replace(run, metrics=text)])
    assert write_verdict(compared)[1:3] == [
        "At equal steps, mdlm of a and udlm of a make different numbers of network calls: 1 and 2 at 1 "
        "sampling step.",
        "mdlm of a and udlm of a differ in entropy at 32 sampling steps. Perplexities can only be compared "
        "at equal entropy, so measure at several temperatures (evaluations.main.temperatures).",
    ]
    table = tabulate(compared.grids)
    assert set(table[table.nfe == 4].groupby("method")["calls"].first().items()) == {("mdlm", 4), ("udlm", 5)}
