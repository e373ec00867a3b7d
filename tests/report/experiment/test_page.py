import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

from pairflow.report.experiment.page import render
from pairflow.report.legends import legend
from pairflow.report.scripts import sha256
from pairflow.report.words import (
    format_count,
    format_duration,
    format_percent,
    make_breakable,
    name_distillation,
)

SCRIPT = "<script>alert(1)</script>"


def test_every_section_is_there_once(make, parse):
    document = parse(render(make()))
    sections = ["run", "quality", "molecules", "coupling", "correlation", "training", "cost"]
    assert document.headings() == ["summary", *sections]
    ids = [attributes["id"] for _, attributes in document.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_bytes_every_time(make):
    assert render(make()) == render(make())


def test_nothing_is_fetched(make, parse):
    html = render(make())
    for tag, attributes in parse(html).tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base"}
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            known = ("#", "data:") if "download" in attributes else "#"
            assert attributes.get(name, "#").startswith(known), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\((?!#)|@import", html)


def test_nothing_runs_but_the_pages_own_scripts(make):
    html = render(make())
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    [allowed] = re.findall(r"script-src ([^;]*)", unescape(policy))
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert allowed.split() == [f"'{sha256(script)}'" for script in (*scripts, get_plotlyjs())]
    assert len(scripts) == 2


def test_pictures_have_text_that_stands_in_for_them(make, parse):
    pictures = [attributes for _, attributes in parse(render(make())).tags if attributes.get("role") == "img"]
    assert len(pictures) > 6
    assert all(attributes["aria-label"] for attributes in pictures)


@pytest.mark.parametrize(
    "name", [SCRIPT, f"udlm+{SCRIPT}", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "a" * 60]
)
def test_names_and_smiles_are_only_text(make, metric_rows, name, coupling, parse):
    contents = make(
        name=name,
        settings={"methods": [name, "udlm"], "description": name},
        metrics=metric_rows({name: (1, 2, 3), "udlm": (2, 3, 4)}).assign(evaluation=name),
        timings=make().timings.assign(method=name, device=name),
        provenance=make().provenance | {"command": name, "commit": name, "versions": {name: name}},
        couplings={name: coupling(np.ones(17))},
        training_logs={name: make().training_logs["udlm"]},
        samples={name: {1: [name, "CCO"]}},
    )
    document = parse(render(contents))
    tags = [tag for tag, attributes in document.tags if "type" not in attributes]
    assert (tags.count("script"), tags.count("img")) == (2, 0)
    assert document.words().count(name) > 10


@pytest.mark.parametrize(("scale", "labelled"), [("reduced", True), ("paper", False)])
def test_reduced_scale_is_labelled(make, scale, labelled, parse):
    words = parse(render(make(settings={"scale": scale}))).words()
    assert ("Reduced scale. These numbers are not comparable with the paper’s" in words) is labelled


def test_tables_hold_means_deviations_and_the_best_in_bold(make):
    html = render(make())
    assert "<td><strong>352.0</strong> <small>± 1.0</small></td>" in html
    assert "<td>84.0 <small>± 1.0</small></td>" in html
    assert html.count("<strong>352.0</strong>") == 5
    assert "1,024 samples × 3 trials × 1 seed" in html


def test_incomplete_cells_say_how_many_values_they_have(make):
    metrics = make().metrics
    lost = (metrics.method == "udlm") & (metrics.nfe == 1)
    metrics.loc[lost & (metrics.trial == 0), "value"] = np.nan
    html = render(make(metrics=metrics))
    assert "<td>84.5 <small>± 0.7</small> <small>(n = 2)</small></td>" in html


def test_missing_cells_are_dashes(make):
    metrics = make().metrics
    html = render(make(metrics=metrics[(metrics.method != "udlm") | (metrics.nfe != 1)]))
    assert "<td>–</td>" in html
    assert ">nan" not in html


def test_one_method_one_trial(make, metric_rows):
    html = render(
        make(settings={"methods": ["udlm"]}, metrics=metric_rows({"udlm": (84, 245, 437)}, trials=1))
    )
    assert "<td>84.0</td>" in html
    assert "<strong>84.0" not in html


def test_deviations_between_seeds_stand_apart_from_those_between_trials(make, metric_rows, parse):
    rows = metric_rows({"udlm": (84, 245, 437)}, seeds=(0, 1, 2))
    rows["value"] += 10 * rows.seed
    html = render(make(metrics=rows))
    assert '<td>94.0 <small>± 10.0</small> <small class="trials">trials ± 1.0</small></td>' in html
    words = parse(html).words()
    assert "1,024 samples × 3 trials × 3 seeds" in words
    assert "Means are means of the seeds’ means. The deviation after ± is between these seeds" in words
    assert "bars one standard deviation between seeds." in words
    assert "deviations are between sampling trials, not between trainings" not in words


def test_a_cell_of_fewer_seeds_says_so_and_has_no_deviation_between_them(make, metric_rows):
    rows = metric_rows({"udlm": (84, 245, 437)}, seeds=(0, 1, 2))
    html = render(make(metrics=rows[(rows.nfe != 4) | (rows.seed == 1)]))
    assert '<td>245.0 <small>(1 of 3 seeds)</small> <small class="trials">trials ± 1.0</small></td>' in html


def test_every_evaluation_has_its_block(make, parse):
    metrics = make().metrics
    words = parse(render(make(metrics=pd.concat([metrics, metrics.assign(evaluation="check")])))).words()
    assert words.index("Evaluation main") < words.index("Evaluation check")


def test_parts_without_results_are_left_out(make, parse):
    empty = make(
        metrics=make().metrics.iloc[:0],
        timings=make().timings.iloc[:0],
        couplings={},
        correlations={},
        training_logs={},
        samples={},
    )
    assert parse(render(empty)).headings() == ["run"]


def test_galleries_show_valid_molecules_and_count_the_others(make):
    html = render(make())
    assert "9 of 15 valid, 6 invalid (3 of them empty)" in html
    assert "Structure of CCO" in html
    assert "CC(C</code>" not in html
    assert "chosen at random with seed 0" in html


def test_costs_are_totals_in_the_order_of_the_workflow(make, parse):
    words = parse(render(make())).words()
    assert "sample udlm 1 min 14 s 512 MiB 3 cpu" in words
    assert (
        words.index("preprocess – 3.0 s") < words.index("pair pairflow 12 s") < words.index("train udlm 48 s")
    )


def test_training_cost_stands_above_the_time_per_step(make, parse):
    words = parse(render(make())).words()
    assert "udlm base training 48 s 100.0 % 1 min 12 s 384,000 – 512 MiB cpu" in words
    assert "pairflow pairing 12 s 25.0 % 18 s – – 512 MiB cpu" in words
    assert words.index("Training cost") < words.index("Time per step")


def test_unknown_costs_are_dashes(make, parse):
    timings = make().timings.assign(seconds=np.nan, device_seconds=np.nan, peak_memory_mb=np.nan, device=None)
    words = parse(render(make(timings=timings))).words()
    assert "udlm base training – – – 384,000 – – –" in words
    assert "train udlm – – 1" in words
    assert "nan" not in words


def test_without_a_training_there_is_no_training_cost(make, parse):
    timings = make().timings
    words = parse(render(make(timings=timings[timings.step != "train"]))).words()
    assert "Training cost" not in words
    assert "preprocess – 3.0 s" in words


@pytest.mark.parametrize(
    ("share", "text"),
    [(1, "100.0 %"), (0.1, "10.0 %"), (0.0267, "2.67 %"), (12.5, "1,250.0 %"), (np.nan, "–")],
)
def test_percent(share, text):
    assert format_percent(share) == text


def test_count():
    assert [format_count(number) for number in (51_200_000.0, 511.7, np.nan)] == ["51,200,000", "512", "–"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
        (np.nan, "–"),
    ],
)
def test_durations(seconds, text):
    assert format_duration(seconds) == text


def test_jumps_of_the_backward_steps(make):
    page = render(make())
    assert "in each of the 20 backward steps" in page
    assert "over 800 rows. In all: pairflow 10.50 jumps per row" in page


def test_total_correlation_stands_beside_its_ceiling_and_its_bias(make, parse):
    html = render(make())
    assert "<td>31.87 <small>± 0.02</small></td>" in html
    assert html.count("<td>32.47</td>") == 1
    words = parse(html).words()
    assert "over 20,000 source states (seed 0), each with 10 samples of 256 steps" in words
    assert "none exceeds log₂ 10 = 3.32 bits" in words


def test_a_method_without_a_total_correlation_is_left_out_of_its_table(make, parse):
    found = make().correlations
    words = parse(render(make(correlations={"pairflow": found["pairflow"]}))).words()
    table = words[words.index("Total correlation (bits)") : words.index("How much the positions")]
    assert table == (
        "Total correlation (bits) pairflow 30.72 ± 0.02 ceiling: draws from the data 32.47 "
        "Download: CSV · LaTeX · Markdown "
    )


def test_training_cost_of_twelve_methods(many, parse):
    words = parse(render(many)).words()
    assert "udlm +redi +redi ReDi, round 2 2 min 00 s 200.0 % – – 20,000 512 MiB cpu" in words
    assert "pairflow +dcd DCD 1 min 00 s 100.0 % – – – 512 MiB cpu" in words


def test_names_may_break_only_before_a_distillation_and_a_new_one_has_its_own_name():
    assert make_breakable("pairflow+redi+redi") == "pairflow<wbr>+redi<wbr>+redi"
    assert make_breakable("<b>+x") == "&lt;b&gt;<wbr>+x"
    names = [name_distillation(method) for method in ("udlm", "udlm+dcd", "udlm+dcd+redi", "udlm+new")]
    assert names == ["", "DCD", "ReDi", "new"]


def test_legends_of_many_methods_have_a_row_per_distilled_base(many):
    keys = legend(many.methods, "l")
    assert [[name for _, name in row] for row in keys.rows] == [
        ["mdlm", "random", "pairflow-sub4"],
        ["udlm", "udlm+dcd", "udlm+redi", "udlm+redi+redi"],
        ["pairflow", "pairflow+dcd", *(f"pairflow{rounds * '+redi'}" for rounds in (1, 2, 3))],
    ]
    assert len(legend(many.methods[:6], "l").rows) == 1


def test_of_many_galleries_the_first_four_are_open(many, parse):
    details = [attributes for tag, attributes in parse(render(many)).tags if tag == "details"]
    galleries = [attributes for attributes in details if attributes.get("class") == "method"]
    assert ["open" in attributes for attributes in galleries] == 4 * [True] + 8 * [False]


def test_distillations_have_training_curves_of_their_own(many, make, parse):
    alternatives = [
        attributes["aria-label"]
        for _, attributes in parse(render(many)).tags
        if attributes.get("role") == "img"
    ]
    [base] = [text for text in alternatives if text.startswith("training loss")]
    [dcd] = [text for text in alternatives if text.startswith("DCD: training loss")]
    [redi] = [text for text in alternatives if text.startswith("ReDi: training loss")]
    assert base.count(";") == 4
    assert "udlm+dcd" in dcd
    assert "pairflow+redi+redi" in redi
    assert "Distillations have charts of their own" in render(many)
    assert "Distillations have charts of their own" not in render(make())
