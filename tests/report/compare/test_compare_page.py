"""The page itself: whole, offline, the same each time, legible at both widths and to assistive technology."""

import pytest

from pairflow.report.compare.page import render
from pairflow.report.compare.sections import make_sections
from pairflow.report.results import FinishedExperiment


@pytest.fixture
def make_run(make, metric_rows):
    """A run of three methods at three numbers of steps, `plus` more of all; `settings` are merged in."""

    def build(name="a", plus=0.0, seeds=(0, 1, 2), **settings):
        contents = make(settings={"seeds": seeds, **settings})
        counts = {"udlm": (84, 245, 437), "random": (183, 351, 543), "pairflow": (352, 498, 662)}
        rows = metric_rows(counts, seeds=seeds)
        rows = rows.assign(value=rows.value + plus + rows.seed * (1 + plus) + rows.nfe * rows.seed % 3)
        return FinishedExperiment(name, contents.experiment, rows, contents.timings, contents.provenance)

    return build


@pytest.fixture
def page(make_run) -> str:
    runs = [
        make_run(),
        make_run("b" * 60, 2, network={"name": "mlp", "width": 768}),
        make_run("c", 1, seeds=(0,)),
    ]
    return render(make_sections(runs), "comparison.parquet")


def test_every_section_is_there_and_nothing_is_fetched(page, parse):
    document = parse(page)
    assert document.headings() == ["runs", "rules", "section1", "cost"]
    assert not {"script", "link", "img"} & {tag for tag, _ in document.tags}
    assert "nan" not in document.words()


def test_names_are_escaped(make_run):
    page = render(make_sections([make_run("<script>alert(1)</script>")]), "comparison.parquet")
    assert "<script>" not in page


def test_costs_stand_side_by_side(page, parse):
    assert "udlm base training 48 s cpu 48 s cpu 48 s cpu" in parse(page).words()


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1600, "dark")])
def test_the_page_fits_its_window_and_is_accessible(page, open_page, violations, width, scheme):
    shown = open_page(page, width, color_scheme=scheme)
    shown.evaluate("document.querySelectorAll('details').forEach(element => { element.open = true; })")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(shown) == []
