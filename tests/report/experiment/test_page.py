import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from pages import Document, metric_rows

from pairflow.report.experiment.page import render
from pairflow.report.templates import sha256
from pairflow.report.words import format_count, format_duration, format_p_value, format_percent

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def document(molecule_page):
    return Document(molecule_page)


@pytest.fixture
def words(make, empty_charts):
    """The words of a page with some of its contents replaced."""
    return lambda **changes: Document(render(make(**changes))).words()


def test_every_section_is_there_once(document):
    sections = ["more", "coupling", "correlation", "training", "cost", "run", "metrics"]
    assert document.headings() == ["headline", "summary", "quality", "samples", *sections]
    ids = [attributes["id"] for _, attributes in document.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_bytes_every_time(make, make_images, molecule_page, image_page):
    assert (render(make()), render(make_images())) == (molecule_page, image_page)


def test_nothing_is_fetched(molecule_page, document):
    for tag, attributes in document.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base"}
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            known = ("#", "data:") if "download" in attributes else "#"
            assert attributes.get(name, "#").startswith(known), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\((?!#)|@import", molecule_page)


def test_nothing_runs_but_the_pages_own_scripts(molecule_page):
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', molecule_page)
    [allowed] = re.findall(r"script-src ([^;]*)", unescape(policy))
    scripts = re.findall(r"<script>(.*?)</script>", molecule_page, flags=re.DOTALL)
    assert allowed.split() == [f"'{sha256(script)}'" for script in scripts]
    assert len(scripts) == 2


@pytest.mark.parametrize("name", [f"udlm+{SCRIPT}", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}"])
def test_names_and_smiles_are_only_text(make, name):
    contents = make(
        name=name,
        settings={"methods": [name, "udlm"], "description": name},
        metrics=metric_rows({name: (1, 2, 3), "udlm": (2, 3, 4)}),
        timings=make().timings.assign(method=name, device=name),
        provenance=make().provenance | {"command": name, "commit": name, "versions": {name: name}},
        couplings={name: make().couplings["random"]},
        logs={name: make().logs["udlm"]},
        samples={name: {1: [name, "CCO"]}},
    )
    document = Document(render(contents))
    tags = [tag for tag, attributes in document.tags if "type" not in attributes]
    assert (tags.count("script"), tags.count("img")) == (2, 0)
    assert document.words().count(name) > 10


def test_what_the_page_shows(molecule_page, document, words):
    for text in (
        *("<td><strong>352.0</strong> <small>± 1.0</small></td>", "<td>84.0 <small>± 1.0</small></td>"),
        *("<td>31.87 <small>± 0.02</small></td>", "Structure of CCO"),
        "9 of 15 valid, 6 invalid (3 of them empty)",
    ):
        assert text in molecule_page
    assert "CC(C</code>" not in molecule_page
    for text in (
        "1,024 samples × 3 trials × 1 seed",
        "udlm base training 48 s 100.0 % 1 min 12 s 384,000 – 512 MiB cpu",
        "pairflow pairing 12 s 25.0 % 18 s – – 512 MiB cpu",
        "sample udlm 1 min 14 s 512 MiB 3 cpu",
    ):
        assert text in document.words()
    label = "Reduced scale. "
    assert (label in document.words(), label in words(settings={"scale": "paper"})) == (True, False)


def test_every_evaluation_has_its_block(make, words):
    metrics = make().metrics
    evaluations = {name: {"nfe": (1, 4, 32), "trials": 3} for name in ("main", "check")}
    both = pd.concat([metrics, metrics.assign(evaluation="check")])
    said = words(settings={"evaluations": evaluations}, metrics=both)
    assert said.index("Evaluation main") < said.index("Evaluation check")


def test_parts_without_results_are_left_out(make):
    nothing = {name: {} for name in ("couplings", "correlations", "logs", "samples")}
    empty = make(metrics=make().metrics.iloc[:0], timings=make().timings.iloc[:0], **nothing)
    assert Document(render(empty)).headings() == ["run", "metrics"]


def test_costs_that_are_unknown_or_missing(make, words):
    timings = make().timings
    unknown = dict.fromkeys(("seconds", "device_seconds", "peak_memory_mb"), np.nan)
    said = words(timings=timings.assign(**unknown, device=None))
    assert "udlm base training – – – 384,000 – – –" in said
    assert "train udlm – – 1" in said
    assert "nan" not in said
    said = words(timings=timings[timings.step != "train"])
    assert "Training cost" not in said
    assert "preprocess – 3.0 s" in said


def test_numbers_in_words():
    shares = {1: "100.0 %", 0.1: "10.0 %", 0.0267: "2.67 %", 12.5: "1,250.0 %", np.nan: "–"}
    assert {share: format_percent(share) for share in shares} == shares
    counts = {51_200_000.0: "51,200,000", 511.7: "512", np.nan: "–"}
    assert {number: format_count(number) for number in counts} == counts
    p_values = {0.0123: "p = 0.012", 0.0004: "p < 0.001", 1: "p = 1.000"}
    assert {p: format_p_value(p) for p in p_values} == p_values
    durations = {0.04: "0.0 s", 9.94: "9.9 s", 9.96: "10 s", 59.6: "1 min 00 s", 200: "3 min 20 s"}
    durations |= {7500: "2 h 05 min", np.nan: "–"}
    assert {seconds: format_duration(seconds) for seconds in durations} == durations


def test_the_page_of_twelve_methods(many, empty_charts):
    page = Document(render(many))
    said = page.words()
    assert "udlm +redi +redi ReDi, round 2 2 min 00 s 200.0 % – – 20,000 512 MiB cpu" in said
    assert "pairflow +dcd DCD 1 min 00 s 100.0 % – – – 512 MiB cpu" in said
    charts = [attributes["aria-label"] for _, attributes in page.tags if attributes.get("role") == "img"]
    starts = ("training loss", "DCD: training loss", "ReDi: training loss")
    [base], [dcd], [redi] = ([text for text in charts if text.startswith(start)] for start in starts)
    assert base.count("; ") == 4
    assert "udlm+dcd" in dcd
    assert "pairflow+redi+redi" in redi


def test_the_best_method_stands_open_beside_training_molecules_and_the_others_are_folded(make):
    page = Document(render(make(examples=["CCN", "CCCN"])))
    galleries = [own for tag, own in page.tags if tag == "details" and own.get("class") == "method"]
    assert ["open" in attributes for attributes in galleries] == [True, False, False]
    samples = page.words().split(" Samples Up to ")[1]
    places = [samples.index(text) for text in ("pairflow, the best method", "CCN", "9 of 15 valid", "udlm")]
    assert places == sorted(places)
