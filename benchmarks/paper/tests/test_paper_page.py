import base64
import re

import numpy as np
import pytest
from pages import Document

from benchmarks.paper.advice import advise
from benchmarks.paper.costs import describe_cost, seed_minutes
from benchmarks.paper.page import PaperPage, format_ratio, render
from benchmarks.paper.printed import NUMBERS, printed
from benchmarks.paper.summary import count_outcomes, write_effects
from pairflow.report.downloads import data_uri

THREE = [[50.0, 52.0], [49.0, 51.0], [51.0, 55.0]]
RUN = {"batch_size": 256, "iterations": 100, "learning_rate": 1e-3}
DCD = {**RUN, "teacher_every": 10}


@pytest.fixture
def empty(make_experiment):
    return PaperPage({"qm9": make_experiment(seeds=(0,))}, {})


@pytest.fixture
def full(make_experiment, make_run):
    """A reduced experiment, a judged one, which is to be shown first, and one that was left out."""
    values = {("udlm", 1): [[17.0, 18.0, 16.0]] * 3, ("pairflow", 1): THREE}
    runs = [make_run(values, "qm9_small", scale="reduced"), make_run(values)]
    experiments = {"qm9": make_experiment(), "qm9_small": make_experiment(scale="reduced")}
    return PaperPage(experiments, {run.name: run for run in runs}, ["<b>stale</b>"])


@pytest.mark.parametrize("kind", ["empty", "full"])
def test_the_page_is_whole_and_fetches_nothing(kind, request):
    html = render(request.getfixturevalue(kind))
    document = Document(html)
    ids = [attributes["id"] for _, attributes in document.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in document.tags:
        assert tag not in {"script", "link", "iframe", "img", "object", "embed", "base"}
        assert attributes.get("href", "#").startswith(("#", "data:")), attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "th":
            assert attributes["scope"] in ("col", "row", "rowgroup")
    assert not re.search(r"url\((?!#)|@import", html)
    tags = [tag for tag, _ in document.tags]
    assert tags.count("table") == tags.count("caption") > 26
    inside = re.findall(r'<div class="scroll"[^>]*>\s*<table>', html)
    assert len(inside) == tags.count("table")
    assert "{{" not in html


def test_the_page_is_the_same_every_time_and_its_downloads_hold_their_files(full):
    assert render(full) == render(full)
    html = render(full)
    [link] = re.findall(r'download="qm9_results_valid-qm9.tex" href="([^"]*)"', html)
    kind, _, encoded = link.partition(";base64,")
    assert kind == "data:application/x-tex;charset=utf-8"
    text = full.files["qm9_results_valid"]["qm9_results_valid-qm9.tex"]
    assert base64.b64decode(encoded).decode() == text
    assert data_uri("a", "t.csv") == "data:text/csv;charset=utf-8;base64,YQ=="


def test_without_results_there_are_printed_values_and_commands(empty):
    words = Document(render(empty)).words()
    assert "agree 0 differ 0 not comparable 0 not run 1,268 no experiment 16 The paper prints 1,284" in words
    assert "QM9 – – – 338 –" in words
    assert "No experiment on the paper’s data is finished here" in words
    assert words.count("pairflow run qm9 --cores 8 --gpus 1") == 1
    assert "FFHQ – – – 22 –" in words
    assert "No experiment on continuous MNIST at the paper’s scale is configured." in words
    assert "No experiment on ZINC-250k at the paper’s scale is configured." in words
    assert "223.4 ± 12.7" in words
    assert "× 12.8 11.2 to 14.7" in words  # the paper's own effect
    assert "same sign" not in words.partition("How values are compared")[0]


def test_what_is_judged_and_what_is_not(full):
    words = Document(render(full)).words()
    valid = words.partition("Table 6 · QM9: valid molecules")[2].partition("Table 7 ·")[0]
    # UDLM prints 17.5, our three seeds have 17.0 each; PairFlow prints 223.4.
    assert "17.0 ± 0.0 −0.5 of 4.4 agrees" in valid
    assert re.search(r"51\.3 ± 1\.5 −172\.1 of [0-9.]+ lower", valid)
    reduced = valid.partition("qm9_small reduced scale")[2].partition("Random")[0]
    assert reduced.startswith(" 17.0 ± 0.0")
    assert "agrees" not in reduced
    assert "same sign" in valid
    assert "<b>stale</b>" not in render(full)
    assert "Left out. <b>stale</b>" in words


def test_a_reason_that_holds_for_a_row_stands_once_beside_it(make_experiment, make_run):
    run = make_run({("udlm", 1): THREE[:1], ("udlm", 2): THREE[:1]}, seeds=(0,))
    words = Document(render(PaperPage({"qm9": make_experiment(seeds=(0,))}, {"qm9": run}))).words()
    row = "qm9 paper’s scale not judged: 1 training seed, 3 are needed 51.0 ± 1.4 +33.5 51.0 ± 1.4 −74.5"
    assert row in words.partition("Table 6 ·")[2].partition("Table 7 ·")[0]


def test_a_run_with_other_settings_is_not_called_the_papers(make_experiment, make_run):
    training = make_experiment().training.model_dump() | {"batch_size": 128}
    run = make_run({("udlm", 1): THREE, ("udlm", 2): THREE}, training=training)
    page = PaperPage({"qm9": run.experiment}, {"qm9": run})
    words = Document(render(page)).words()
    assert "qm9: not the paper’s settings, 3 training seeds" in words
    reason = "training.batch_size is 128, in the paper 1,024"
    row = f"qm9 not the paper’s settings not judged: {reason} 51.3 ± 1.5 +33.8 51.3 ± 1.5 −74.2"
    assert row in words.partition("Table 6 ·")[2].partition("Table 7 ·")[0]
    assert f"but its values are not judged: {reason}." in words
    assert "not the paper's settings" in page.files["qm9_results_valid"]["qm9_results_valid-qm9.tex"]
    assert set(page.values.dropna(subset="measured").scale) == {"not the paper’s settings"}


def test_what_remains_different_stands_below_the_tables_that_it_concerns(empty):
    words = Document(render(empty)).words()
    valid = words.partition("Table 6 ·")[2].partition("Table 7 ·")[0]
    assert "our transformer computes in float32, and the authors’ in bfloat16" in valid
    assert "‡" not in valid
    fid = words.partition("Table 12 ·")[2].partition("Table 25 ·")[0]
    assert "our U-Net takes level x of K as 2x/(K − 1) − 1, the authors’ as 2x/K − 1" in fid
    assert "MDLM ‡ 204.64" in fid
    assert "‡ On images our MDLM is another model" in fid
    assert "‡" not in words.partition("Table 25 ·")[2].partition("Table 27 ·")[0]  # it has no MDLM
    cost = words.partition("Table 1 ·")[2].partition("Table 3 ·")[0]
    assert "What remains different" not in cost
    coverage = words.partition("Table 5 ·")[2]
    assert "does not state the number of forward steps" in coverage
    assert words.count("The printed ones divide by n, ours by n − 1.") == 1


def test_a_distance_that_is_not_fid_is_called_so(make_experiment, make_run, metric_rows):
    values = {("udlm", 1): [[130.0, 130.5, 131.0]], ("pairflow", 1): [[40.0, 40.5, 41.0]]}
    rows = metric_rows(values, "fd", samples=1000, extractor="classifier-1a2b", reference="train")
    settings = {"source": "mnist_binary", "scale": "reduced", "seeds": (0,)}
    run = make_run(rows, "small", **settings)
    page = PaperPage({"small": make_experiment(**settings)}, {"small": run})
    *_, held = write_effects(page.sections, page.runs)
    assert held == (
        "small (reduced scale), FD by classifier-1a2b, not FID, beside the printed FID, "
        "pairflow against udlm: the paper’s sign at NFE 1."
    )
    table = Document(render(page)).words().partition("Table 12 ·")[2]
    assert "small reduced scale FD by classifier-1a2b, not FID 130.5" in table


def test_samples_of_all_methods_stand_side_by_side_at_the_steps_shown(make_experiment, make_run):
    images = np.random.default_rng(0).integers(0, 256, (8, 28, 28, 1), dtype=np.uint8)
    settings = {"source": "mnist_binary", "scale": "reduced", "seeds": (0,)}
    run = make_run({}, "small", **settings)
    pictures = {nfe: dict.fromkeys(("udlm", "pairflow"), images) for nfe in (1, 2)}
    page = PaperPage({"small": make_experiment(**settings)}, {"small": run}, pictures={"small": pictures})
    html = render(page)
    shown = html.partition('<section id="samples"')[2].partition("</section>")[0]
    assert re.findall(r'alt="([^"]*)"', shown) == [
        f"8 samples of {method} at {steps}"
        for steps in ("1 sampling step", "2 sampling steps")
        for method in ("udlm", "pairflow")
    ]
    assert "small, reduced scale 1 step udlm pairflow 2 steps udlm pairflow" in Document(html).words()
    assert shown.count('src="data:image/png;base64,') == 4


def test_ratios_have_the_digits_that_tell_them_from_one():
    ratios = {0.9944: "0.994", 1.0: "1.000", 1.996: "2.00", 9.99: "9.99", 12.77: "12.8", 1234.5: "1,234.5"}
    assert {ratio: format_ratio(ratio) for ratio in ratios} == ratios


def test_one_row_of_the_toy_set_shows_the_method(empty):
    words = Document(render(empty)).words()
    first = "t d State 1 0 0 7 3 6 2 4 5 4 1 1"  # both ways start from the same data
    assert words.count(first) == 2
    assert "Backward pairing " + first in words
    assert "Uniform corruption " + first in words


def test_the_scoreboard_and_the_effects_count(full):
    counts = {"agree": 2, "differ": 2, "not comparable": 0, "not run": 1264, "no experiment": 16}
    assert count_outcomes(full.sections) == counts  # two values, in two tables each
    effects, *held = write_effects(full.sections, full.runs)
    assert (
        "Of the 2 effects that compare, 2 have the paper’s sign, 0 have the opposite one and 0 are undecided."
        in effects
    )
    assert held == [
        "qm9 (paper’s scale), valid of 1,024, pairflow against udlm: the paper’s sign at NFE 1.",
        "qm9_small (reduced scale), valid of 1,024, pairflow against udlm: the paper’s sign at NFE 1.",
    ]


def test_what_it_would_cost(make_experiment, make_run, empty):
    methods = ("mdlm", "udlm", "pairflow", "random", "udlm+dcd", "pairflow+redi+redi")
    experiment = make_experiment(methods=methods, seeds=(0,))
    # Four bases of 450 minutes, one DCD of 115, two ReDi of 100, one pairing of 0.8.
    assert seed_minutes(experiment) == pytest.approx(4 * 450 + 115 + 2 * 100 + 0.8)
    parts = make_experiment("zinc250k", methods=("pairflow-sub2", "pairflow-sub4"))
    assert seed_minutes(parts) == pytest.approx(2 * 1110 + 13 / 2 + 13 / 4)
    found, *others = advise(empty.sections, {"qm9": experiment}, {})
    assert found.text == "qm9 was not run. Numbers are judged from 3 seeds on; it has 1."
    assert others[0].text == "No experiment on ZINC-250k at the paper’s scale is configured."
    assert found.hours == "One seed of all its 7 models takes about 35 h"
    assert describe_cost(experiment).startswith(
        f"{found.hours} on one RTX A6000 by the paper’s own table of cost"
    )
    ffhq = make_experiment("ffhq64", features="inception")
    found = list(advise(empty.sections, {"ffhq64": ffhq}, {}))[-6]
    assert (found.text, found.hours) == (
        "ffhq64 was not run. The paper does not print how long it takes.",
        "",
    )
    assert describe_cost(ffhq) == "The paper does not print how long it takes."
    run = make_run({("udlm", 1): THREE[:1]}, seeds=(0,))
    found, *_ = advise(empty.sections, {"qm9": experiment}, {"qm9": run})
    assert found.text.endswith("needs: give it seeds: [0, 1, 2].")


def test_a_finished_experiment_without_some_cells_says_what_would_fill_them(make_experiment, make_run):
    run = make_run({("udlm", 1): THREE, ("udlm", 2): THREE})
    page = PaperPage({"qm9": make_experiment(methods=("udlm",))}, {"qm9": run})
    [section] = [each for each in page.sections if each.table == "qm9_results_valid"]
    found, *_ = advise([section], page.experiments, page.runs)
    assert found.text == (
        "qm9 is finished without 54 values, which need the methods mdlm, random, pairflow, udlm+dcd, "
        "pairflow+dcd, udlm+redi, pairflow+redi; NFE 4, 8, 16, 32, 64 of the methods that it has."
    )
    assert found.command == "pairflow run qm9 --cores 8 --gpus 1"
    # Three bases of 450 minutes, two DCD of 115, two ReDi of 100, one pairing of 0.8.
    assert found.hours == "One seed of 7 further models takes about 30 h, 3 seeds about 89 h"


def test_every_table_has_its_number(empty):
    """The preprint has 27 tables; Table 2 is of settings."""
    assert sorted(NUMBERS.values()) == [1, *range(3, 28)]
    words = Document(render(empty)).words()
    for title in ("Table 6 · QM9: valid molecules", "Table 12 · MNIST-Binary: FID", "Table 1 · Cost"):
        assert title in words
    assert "The paper draws these values in Figures 2 and 6." in words


def test_only_tables_with_measured_values_are_open_and_the_page_is_not_long(make_run, open_page):
    """As it opens, at 1280 pixels, with an experiment at either scale that has every value of QM9."""
    cells = [value for value in printed() if value.dataset == "qm9" and value.metric == "valid"]
    methods = tuple(dict.fromkeys(value.method for value in cells))
    values = {(value.method, value.nfe): [[value.value - 1, value.value + 1]] * 3 for value in cells}
    settings = {"methods": methods, "distillation": {"dcd": DCD, "redi": {**RUN, "pairs": {"count": 9}}}}
    runs = [make_run(values, **settings), make_run(values, "small", scale="reduced", **settings)]
    assert _opened(PaperPage({}, {})) == []
    page = PaperPage({}, {run.name: run for run in runs})
    assert _opened(page) == ["qm9_results_valid"]  # the next one would make the page too long
    shown = open_page(render(page))
    assert shown.evaluate("document.documentElement.scrollHeight") <= 6000


def _opened(page):
    return re.findall(r'<details class="paper-table" id="(\w+)" open', render(page))
