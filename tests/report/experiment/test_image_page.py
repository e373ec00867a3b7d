"""The page of an image experiment: its words, tables, pictures and floor."""

import re

import numpy as np
import pandas as pd
import pytest

from pairflow.report import figures, tables
from pairflow.report.drawing import choose_ticks
from pairflow.report.experiment import quality
from pairflow.report.experiment.page import render
from pairflow.report.experiment.summary import write_summary

WORDS_OF_MOLECULES = ("olecule", "SMILES", "ovelty", "Rejected", "canonical", "valid strings", "RDKit")


@pytest.fixture
def page(make_images) -> str:
    return render(make_images())


def words(html: str) -> str:
    text = re.sub("<script.*?</script>", "", html[html.index("<body>") :], flags=re.DOTALL)
    for mark in ("<", ">"):
        text = text.replace(mark, f" {mark}")
    parts = [part.partition(">")[2] for part in text.split("<")]
    return " ".join(" ".join(parts).split())


def test_sections_of_images(page):
    sections = [part.partition('"')[0] for part in page.split('<section id="')[1:]]
    assert sections == [
        *("summary", "run", "quality", "samples", "neighbours", "coupling"),
        *("correlation", "training", "cost"),
    ]


def test_the_same_bytes_every_time(make_images):
    assert render(make_images()) == render(make_images())


def test_no_word_of_molecules(page):
    said = page.partition("<body>")[2].partition("<details><summary>The whole configuration")
    rest = said[0] + said[2].partition("</details>")[2]
    assert [word for word in WORDS_OF_MOLECULES if word in rest] == []


def test_no_word_of_images_on_a_page_of_molecules(make):
    said = words(render(make()))
    for word in ("image", "pixel", "FD", "FID", "classifier", "real against"):
        assert word not in said


def test_facts_of_images(page):
    said = words(page)
    for fact in (
        "Training images 1,257",
        "Test images 540",
        "Image size 8 × 8 pixels, grey",
        "Length N 64 tokens",
        "Vocabulary K 2 levels",
    ):
        assert fact in said


def test_colour_images_have_three_channels(make_images):
    contents = make_images(data={**make_images().data, "shape": (3, 4, 6)})
    assert "Image size 6 × 4 pixels, 3 channels" in words(render(contents))


def test_the_lowest_distance_is_best_and_the_highest_score(page):
    assert "<td><strong>14.0</strong></td>" in page
    assert "<td>84.0</td>" in page
    assert "<td><strong>8.6</strong></td>" in page
    assert "<td>1.6</td>" in page


def test_of_nearest_images_none_is_best(make_images):
    [block] = quality.evaluation_blocks(make_images())
    found = {table.metric: table for table in [*block.metric_tables, *block.plain]}
    best = {
        metric: any(c.best for cells in table.rows.values() for c in cells) for metric, table in found.items()
    }
    assert best == {"fd": True, "kd": True, "is": True, "nn_l2": False, "nn_copies": False}


def test_tables_follow_the_order_of_metrics_and_references(make_images):
    [block] = quality.evaluation_blocks(make_images())
    assert [table.label for table in block.metric_tables] == [
        "FD to the training images",
        "FD to the test images",
        "KD to the training images",
        "IS",
        "L2 to the nearest training image",
    ]
    assert [table.label for table in block.plain] == ["share of copies of training images"]


def test_the_floor_is_a_dotted_line_a_row_and_named(make_images):
    contents = make_images()
    [block] = quality.evaluation_blocks(contents)
    fd, test, *_ = block.charts
    assert fd.alt.endswith("; real images: 4.8.")
    assert "real images" not in test.alt
    html = render(contents)
    assert html.count('<td class="real">4.8</td>') == 3
    said = words(html)
    assert "The dotted line is the floor, the same distance between real images:" in said
    assert (
        "FD to the training images 4.8 (from 540); L2 to the nearest training image 1,234.5 (from 540)."
        in said
    )


def test_without_real_rows_there_is_no_floor(make_images):
    metrics = make_images().metrics
    html = render(make_images(metrics=metrics[metrics.method != "data"]))
    assert "floor" not in words(html)
    assert "real images</th>" not in html
    assert "real images</li>" not in html


def test_a_floor_of_another_evaluation_serves_where_there_is_none_of_its_own(make_images):
    metrics = make_images().metrics
    real = metrics.method == "data"
    other = metrics.assign(evaluation=np.where(real, "halves", metrics.evaluation))
    contents = make_images(metrics=other)
    assert contents.evaluations == ["main"]
    [block] = quality.evaluation_blocks(contents)
    assert block.floors[0] == "FD to the training images 4.8 (from 540)"
    own = other[real].assign(evaluation="main", value=5.5)
    [block] = quality.evaluation_blocks(make_images(metrics=pd.concat([other, own])))
    assert block.floors[0] == "FD to the training images 5.5 (from 540)"


def test_data_is_no_method(make_images):
    contents = make_images()
    assert contents.methods == ["udlm", "random", "pairflow"]
    assert all(
        "data" not in table.rows
        for block in quality.evaluation_blocks(contents)
        for table in block.metric_tables
    )


def test_a_distance_names_its_extractor_and_its_samples(page):
    said = words(page)
    assert (
        "FD, from 1,000 samples: Fréchet distance on features of the classifier 1a2b3c4d "
        "(accuracy 97.2 %), not FID."
    ) in said
    assert said.count("FD, from") == 1


@pytest.mark.parametrize(
    ("extractor", "name"),
    [
        ("inception", "Inception"),
        ("dinov2-0011aabb", "DINOv2 0011aabb"),
        ("classifier-9f", "the classifier 9f"),
        ("mine", "mine"),
    ],
)
def test_names_of_extractors(make_images, extractor, name):
    assert quality.name_extractor(extractor, make_images()) == name


def test_fid_is_called_so_and_leads_the_summary(make_images):
    metrics = make_images().metrics
    fid = metrics[metrics.metric == "fd"].assign(metric="fid", extractor="inception")
    contents = make_images(metrics=pd.concat([metrics, fid]))
    assert "FID, from 1,000 samples: Fréchet distance on features of Inception." in words(render(contents))
    assert write_summary(contents)[1].startswith("FID to the training images at 1 sampling step: 14.0 with")


def test_two_extractors_have_tables_of_their_own(make_images):
    metrics = make_images().metrics
    other = metrics[metrics.metric == "fd"].assign(extractor="dinov2-0011aabb")
    [block] = quality.evaluation_blocks(make_images(metrics=pd.concat([metrics, other])))
    assert [table.label for table in block.metric_tables[:2]] == [
        "FD to the training images (classifier-1a2b3c4d)",
        "FD to the training images (dinov2-0011aabb)",
    ]


@pytest.mark.parametrize(("value", "warned"), [(1.0, True), (0.0, False)])
def test_fewer_images_than_features_are_warned_of(make_images, value, warned):
    metrics = make_images().metrics
    few = metrics.iloc[:1].assign(metric="rank_deficient", value=value)
    html = render(make_images(metrics=pd.concat([metrics, few])))
    assert ("no more samples or reference images than features of the classifier 1a2b3c4d" in html) is warned
    assert "rank_deficient" not in words(html)


def test_trials_have_deviations(make_images):
    rows = make_images().metrics
    later = rows.assign(trial=1, value=rows.value + 1)
    html = render(make_images(metrics=pd.concat([rows, later])))
    assert "<td><strong>14.5</strong> <small>± 0.7</small></td>" in html
    said = words(html)
    assert "1,000 samples × 2 trials × 1 seed" in said
    assert "bars one standard deviation" in said


def test_a_metric_over_all_trials_has_single_values(make_images):
    metrics = make_images().metrics.assign(trial=pd.array([pd.NA] * len(make_images().metrics), "Int32"))
    said = words(render(make_images(metrics=metrics)))
    assert "1,000 samples × 1 seed. Each number is a single value, without a deviation." in said
    assert "standard deviation" not in said


def test_summary_of_images(make_images):
    relative, quality_, distance, _ = write_summary(make_images())
    assert quality_ == (
        "FD to the training images at 1 sampling step: 14.0 with pairflow, 39.0 with random and "
        "84.0 with udlm (one value each; 1,000 samples × 1 trial × 1 seed)."
    )
    assert relative == (
        "FD of pairflow relative to udlm: 0.17 times at 1 sampling step and 0.77 times at 32 sampling steps "
        "(lower is better; no uncertainty: a single observation)."
    )
    assert "20.00 of 64 tokens" in distance


def test_numbers_of_steps_are_whole_where_other_rows_have_none(make_images):
    metrics = make_images().metrics
    contents = make_images(metrics=metrics.assign(nfe=metrics.nfe.astype("float64")))
    assert "at 1 sampling step and 0.77 times at 32 sampling steps" in write_summary(contents)[0]


def test_pictures_are_data_with_alternative_texts(page):
    found = page.split("<img ")[1:]
    assert len(found) == 3 * 2 + 2 * 12 + 2
    assert all('src="data:image/png;base64,' in part and 'alt="' in part for part in found)
    assert 'alt="64 samples of udlm at 1 sampling step"' in page
    assert 'alt="64 samples of pairflow at 32 sampling steps"' in page
    assert "image-rendering: pixelated" in page


def test_parts_without_images_are_left_out(make_images):
    html = render(make_images(images={}, pairs={}, neighbours={}))
    assert "<img" not in html
    assert 'id="samples"' not in html
    assert 'id="neighbours"' not in html
    assert 'id="coupling"' in html


def test_pairs_alone_make_a_section(make_images):
    html = render(make_images(couplings={}))
    assert 'id="coupling"' in html
    assert "<li>t = 0.75</li>" in html


def test_distances_are_on_logarithmic_axes_with_round_ticks():
    assert choose_ticks(3.9, 101) == [5, 10, 20, 50, 100]
    assert choose_ticks(0.01, 12) == [0.01, 0.1, 1, 10]
    assert choose_ticks(1000, 2300) == [1200, 1600, 2000]


def test_a_distance_that_is_not_positive_has_a_linear_axis():
    cells = {"a": [tables.Cell(-0.01, count=1, digits=2), tables.Cell(0.5, count=1, digits=2)]}
    picture = figures.quality(tables.Table("kd", [1, 2], cells), "10", "q")
    assert "a: −0.01 at 1, 0.50 at 2" in picture.alt


def test_deviations_wider_than_the_mean_are_drawn(recwarn):
    cells = {"a": [tables.Cell(1, 5, 3), tables.Cell(2, 0.1, 3)]}
    assert figures.quality(tables.Table("fd", [1, 2], cells), "10", "q").svg
    assert not recwarn.list


@pytest.mark.parametrize(
    ("values", "text"),
    [([0.004, 0.1], "0.0040"), ([0.4, 90], "0.40"), ([4.8, 90], "4.8"), ([0.0, 0.0], "0.0")],
)
def test_digits_suit_the_smallest_value(values, text):
    rows = pd.DataFrame({"method": ["a", "b"], "nfe": 1, "seed": 0, "value": values})
    summary = tables.summarise(rows.assign(metric="fd", evaluation="main"))
    assert tables.make_table(summary, "main", "fd", ["a", "b"]).rows["a"][0].text == text


def test_long_rows_have_binned_distances():
    shares = np.zeros(3073)
    shares[2800:3000] = 1 / 200
    edges, width = figures._bins([shares])
    assert width == 2
    assert (edges[0], edges[-1]) == (2800, 3000)
    assert figures._sum_bins(shares, edges) == pytest.approx(np.full(100, 0.01))
    assert "mean 2899.50" in figures.distances({"pairflow": shares}, 256, "d").alt


def test_short_rows_have_a_bin_per_distance():
    edges, width = figures._bins([np.ones(17)])
    assert (width, edges.tolist()) == (1, list(range(18)))


def test_a_page_on_part_of_a_data_set_says_so(make_images):
    data = make_images().data
    missing = "cifar10: 10,000 of 50,000 training images are here"
    page = render(make_images(data={**data, "partial": missing}))
    assert f"<strong>Part of the data.</strong> {missing}</p>" in page
    assert "Part of the data" not in render(make_images(data={**data, "partial": None}))


def test_deviations_of_images_between_seeds_stand_apart_from_those_between_trials(make_images):
    """The kernel distance has one seed alone: no deviation there, and it says so."""
    rows = make_images().metrics
    seeds = [
        rows.assign(seed=seed, trial=trial, value=rows.value + 3 * seed + trial)
        for seed in (0, 1)
        for trial in (0, 1)
    ]
    metrics = pd.concat(seeds)
    html = render(make_images(metrics=metrics[(metrics.metric != "kd") | (metrics.seed == 0)]))
    assert '<strong>16.0</strong> <small>± 2.1</small> <small class="trials">trials ± 0.7</small>' in html
    assert '<small>(1 of 2 seeds)</small> <small class="trials">trials ± 0.71</small>' in html
    assert "bars one standard deviation between seeds" in words(html)
