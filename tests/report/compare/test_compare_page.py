"""The page itself: whole, offline, the same each time, legible at both widths and to assistive technology."""

from dataclasses import replace

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


def raised(run, by, column):
    """Another run whose values are higher, by a little more or less from seed to seed or trial to trial."""
    noise = run.metrics[column].map({0: 0.5, 1: -1.0, 2: 0.5})
    return replace(run, name="b", metrics=run.metrics.assign(value=run.metrics.value + by + noise))


def test_one_training_says_so_and_its_verdicts_have_no_colour(make_run, parse):
    several, one = make_run(), make_run(seeds=(0,))
    page = render(make_sections([several, raised(several, 20, "seed")]), "comparison.parquet")
    assert '<small class="verdict better">better</small>' in page
    assert "Differences from a, over all tables" in parse(page).words()
    page = render(make_sections([one, raised(one, 20, "trial")]), "comparison.parquet")
    assert "<small>better</small>" in page
    assert 'class="verdict' not in page
    assert "In this training, differences from a, over all tables" in parse(page).words()


def test_what_is_undecided_says_what_would_have_shown(make_run, parse):
    """Equal means whose differences over three trials have standard error 0.5, times t(0.975, 2) = 4.303."""
    run = make_run(seeds=(0,))
    page = render(make_sections([run, raised(run, 0, "trial")]), "comparison.parquet")
    assert "p = 1.000 undecided; about 2.2 would show" in parse(page).words()


def test_distances_of_pixels_are_not_by_an_extractor(make_images):
    contents = make_images()
    run = FinishedExperiment("a", contents.experiment, contents.metrics, contents.timings)
    [section] = make_sections([run])
    labels = [grid.label for grid in section.grids]
    assert "FD to the training images, by classifier-1a2b3c4d" in labels
    assert labels[-2:] == ["L2 to the nearest training image", "share of copies of training images"]


def test_what_is_not_in_a_complete_data_set_is_worse(make_run):
    [section] = make_sections([make_run(), make_run("b", 2)])
    grids = {grid.label: grid.about.best for grid in section.grids}
    assert grids["off the rules"] == "lowest"
    assert "novel" not in grids
