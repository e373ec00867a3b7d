"""The page of an image experiment: its words, tables, pictures and floor."""

import numpy as np
import pandas as pd
import pytest
from pages import Document, given_table

from pairflow.kinds.images.settings import METRICS
from pairflow.report import figures
from pairflow.report.experiment import quality
from pairflow.report.experiment.page import render
from pairflow.report.experiment.summary import write_summary
from pairflow.report.grid import Cell, Grid

pytestmark = pytest.mark.usefixtures("empty_charts")


def test_what_the_page_shows(image_page):
    page = Document(image_page)
    assert page.headings() == [
        *("headline", "summary", "quality", "samples", "more", "neighbours", "coupling"),
        *("correlation", "training", "cost", "run", "metrics"),
    ]
    for text in (
        *("Training rows 1,257", "Image size 8 × 8 pixels, grey"),
        "FD by the features of the classifier 1a2b3c4d, from 1,000 samples; IS by",
        "the floor, the same distance between real images: FD to the training images 4.8 (from 540).",
    ):
        assert page.words().count(text) == 1
    # The lowest distance is best, and the highest score.
    for text in ("<strong>14.0</strong>", "84.0", "<strong>8.6</strong>", "1.6"):
        assert f"<td>{text}</td>" in image_page
    pictures = image_page.split("<img ")[1:]
    assert len(pictures) == 3 * 2 + 2 * 12 + 2
    assert all('src="data:image/png;base64,' in part and 'alt="' in part for part in pictures)


NEAREST = ("nn_l2", "nn_copies")


def test_tables_follow_the_order_of_metrics_and_references(make_images):
    contents = make_images()
    [block] = quality.evaluation_blocks(contents)
    main = ["FD to the training images", "FD to the test images", "IS"]
    assert [table.label for table in block.main.tables] == main
    assert [[table.metric for table in group.tables] for group in block.groups] == [[*NEAREST]]
    assert [len(group.charts) for group in [block.main, *block.groups]] == [3, 1]  # no chart of copies
    measured = {table.metric: table for table in block.tables}
    assert contents.methods == list(measured["fd"].rows) == ["udlm", "random", "pairflow"]  # not `data`
    best = {
        metric: any(cell.best for row in table.rows.values() for cell in row)
        for metric, table in measured.items()
    }
    assert best == {"fd": True, "is": True, "nn_l2": False, "nn_copies": False}
    fd, test, *_ = block.main.charts
    assert fd.alt.endswith("; real images: 4.8.")
    assert "real images" not in test.alt


def test_parts_that_are_not_there(make_images):
    contents, part = make_images(), "cifar10: 10,000 of 50,000 training images are here"
    bare = {"metrics": contents.metrics[contents.metrics.method != "data"]}
    bare |= {"images": {}, "ends": {}, "neighbours": {}}
    html = render(make_images(**bare)).partition("</style>")[2]
    for absent in ("floor", "real images</th>", "<img", 'id="samples"', 'id="neighbours"', "Part of the"):
        assert absent not in html
    data = {**contents.data, "shape": (3, 4, 6)}
    html = render(make_images(couplings={}, data=data, partial=part))
    for shown in ("<li>t = 0.75</li>", "6 × 4 pixels, 3 channels", f"Part of the data.</strong> {part}</p>"):
        assert shown in html


def test_a_floor_of_another_evaluation_serves_where_there_is_none_of_its_own(make_images):
    metrics = make_images().metrics
    real = metrics.method == "data"
    other = metrics.assign(evaluation=np.where(real, "halves", metrics.evaluation))
    contents = make_images(metrics=other)
    assert contents.evaluations == ["main"]
    assert "training images 4.8 (from 540)" in Document(render(contents)).words()
    own = other[real].assign(evaluation="main", value=5.5)
    page = render(make_images(metrics=pd.concat([other, own])))
    assert "training images 5.5 (from 540)" in Document(page).words()


def test_fid_is_called_so_and_leads(make_images):
    metrics = make_images().metrics
    fid = metrics[metrics.metric == "fd"].assign(metric="fid", extractor="inception")
    contents = make_images(metrics=pd.concat([metrics, fid]))
    assert "FID by the features of Inception" in Document(render(contents)).words()
    assert write_summary(contents)[1].startswith("FID to the training images")


@pytest.mark.parametrize(("value", "warned"), [(1.0, True), (0.0, False)])
def test_fewer_images_than_features_are_warned_of(make_images, value, warned):
    metrics = make_images().metrics
    few = metrics.iloc[:1].assign(metric="rank_deficient", value=value)
    html = render(make_images(metrics=pd.concat([metrics, few])))
    assert ("than features of the classifier 1a2b3c4d" in html) is warned
    assert "rank_deficient" not in Document(html).words()


def test_a_metric_over_all_trials_has_single_values(make_images):
    metrics = make_images().metrics.assign(trial=pd.array([pd.NA] * len(make_images().metrics), "Int32"))
    said = Document(render(make_images(metrics=metrics))).words()
    assert "1,000 samples × 1 seed. Each" in said
    assert "±" not in said.split("Quality against sampling steps ")[1].split(" Samples The first")[0]


def test_distances_that_are_not_positive_or_deviate_by_more_than_the_mean_are_drawn():
    cells = {"a": [Cell(-0.01, count=1, digits=2), Cell(0.5, count=1, digits=2)]}
    assert "a: −0.01 at 1, 0.5 at 2" in figures.quality(given_table("fd", [1, 2], cells), "q").alt
    cells = {"a": [Cell(1, 5, 3), Cell(2, 0.1, 3)]}
    [axes] = figures.quality(given_table("fd", [1, 2], cells), "q").figure.axes
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] > 0.2


@pytest.mark.parametrize(
    ("values", "text"),
    [([0.004, 0.1], "0.0040"), ([0.4, 90], "0.40"), ([4.8, 90], "4.8"), ([0.0, 0.0], "0.0")],
)
def test_digits_suit_the_smallest_value(values, text):
    rows = pd.DataFrame({"method": ["a", "b"], "nfe": 1, "seed": 0, "value": values})
    assert Grid("main", "fd", METRICS["fd"], rows, methods=["a", "b"]).rows["a"][0].text == text


def test_long_rows_have_binned_distances():
    shares = np.zeros(3073)
    shares[2800:3000] = 1 / 200
    assert figures.find_bins([shares]).tolist() == list(range(2800, 3001, 2))
    assert figures.find_bins([np.ones(17)]).tolist() == list(range(18))
    assert "mean 2899.50" in figures.distances({"pairflow": shares}, 256, "d").alt


def test_the_deviation_of_several_draws_of_real_data_is_in_the_table_and_in_the_chart(make_images):
    """Draws of 3.8, 4.8 and 5.8 deviate by 1: a band from 3.8 to 5.8 around the line."""
    rows = make_images().metrics
    real = rows[(rows.method == "data") & (rows.metric == "fd")]
    draws = [real.assign(trial=trial, value=4.8 + by) for trial, by in enumerate((-1.0, 0.0, 1.0))]
    contents = make_images(metrics=pd.concat([rows.drop(real.index), *draws], ignore_index=True))
    [block] = quality.evaluation_blocks(contents)
    assert "training images 4.8 ± 1.0 (from 540)" in Document(render(contents)).words()
    [axes] = block.main.charts[0].figure.axes
    [band] = axes.patches
    assert (band.get_y(), band.get_height()) == pytest.approx((3.8, 2.0))
