import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import StepPatch
from pages import given_table

from pairflow.kinds.molecules.page import charts
from pairflow.report import drawing, figures
from pairflow.report.colours import HEX, contrast, style, themed
from pairflow.report.grid import Cell

TABLE = given_table(
    "valid",
    [1, 2, 4],
    {"udlm": [Cell(84, 3, 5), Cell(100, 4, 5), Cell()], "odd $x$ <b>": [Cell(9, 1, 2)] * 3},
)
LOG = pd.DataFrame({"iteration": [0, 10, 20], "loss": [9.0, 2.0, 1.0], "validation_nll": [np.nan, 3.5, 2.5]})


def texts(svg: str) -> list[str]:
    return [node.text for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_quality_shows_the_steps_scales_and_takes_the_colours_of_the_page():
    picture = figures.quality(TABLE, [1000], "q")
    assert {"1", "2", "4", "valid (% of samples)"} <= set(texts(picture.svg))
    assert "udlm: 84.0 at 1, 100.0 at 2, – at 4" in picture.alt
    assert {"udlm", "odd $x$ <b>"} <= set(texts(picture.svg))  # names stand at the ends of the lines
    assert "odd $x$ <b>" in picture.alt
    svg = picture.svg
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox")
    assert root.get("width") is root.get("height") is None
    assert f"var(--grey, {HEX['grey']})" in svg
    assert "<metadata" not in svg


def test_values_that_are_all_alike_have_room_above_them():
    cells = [Cell(999, 0, 2), Cell(1000, 0, 2)]
    [axes] = figures.quality(given_table("valid", [1, 2], {"udlm": cells}), [1000], "q").figure.axes
    assert axes.get_ylim() == pytest.approx((0, 105))


def test_ids_of_two_drawings_differ_and_references_follow():
    first, second = (figures.quality(TABLE, [1000], name).svg for name in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, second)]
    assert ids[0].isdisjoint(ids[1])
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', first)) <= ids[0]


def test_of_eleven_numbers_of_steps_every_other_has_a_text():
    steps = [2**power for power in range(11)]
    picture = figures.quality(given_table("valid", steps, {"a": [Cell(1, 0, 2)] * 11}), [100], "q")
    assert [value for value, _ in picture.chart.x.ticks] == steps
    labels = ["1", "4", "16", "64", "256", "1024"]
    assert [text for _, text in picture.chart.x.ticks if text] == labels
    assert set(labels) <= set(texts(picture.svg))
    assert "2" not in texts(picture.svg)


def test_distances_and_jumps_tell_their_means_and_sums():
    picture = figures.distances({"pairflow": np.array([1, 2, 1])}, 30, "d")
    assert picture.alt == "Hamming distance between source and data. pairflow: mean 1.00."
    assert "share of pairs" in texts(picture.svg)
    assert figures.mean_distance(np.array([1, 0, 3])) == 1.5
    picture = figures.jumps({"pairflow": np.array([0.75, 0.5, 0.25])}, "j")
    assert picture.alt == "Positions that jump in each backward step. pairflow: 1.50 in all."
    assert "jumps per row and step" in texts(picture.svg)


def test_curves_skip_what_is_no_number_and_long_ones_are_thinned_to_means():
    logs = {"udlm": LOG, "random": LOG.iloc[:1]}
    picture = figures.curves(logs, "validation_nll", "NLL", "c")
    assert picture.alt == "NLL by iteration. At the end udlm: 2.500."
    [line] = picture.chart.lines
    assert (line.x, line.y, line.texts[0]) == ([10, 20], [3.5, 2.5], ["iteration 10", "3.5"])
    assert picture.chart.y.limits == pytest.approx((2.42, 3.58))
    assert figures.curves({"udlm": LOG}, "loss", "loss", "c").chart.y.limits == pytest.approx((0.92, 2.08))
    assert [figures.has_values(log, "validation_nll") for log in logs.values()] == [True, False]
    diverged = LOG.assign(loss=[1.0, np.inf, 2.0])
    long = pd.DataFrame({"iteration": range(10_000), "loss": np.tile([0.0, 2.0], 5000)})
    picture = figures.curves({"udlm": diverged, "random": long}, "loss", "loss", "c")
    assert picture.alt.endswith("udlm: 2.000; random: 1.000.")


def test_twelve_methods_look_different(many):
    looks = [style(method) for method in many.methods]
    assert len(set(looks)) == len({(look.colour, look.marker) for look in looks}) == 12
    assert len({(look.colour, look.line) for look in looks}) == 12


def test_bases_differ_in_colour_and_numbers_of_subsets_in_marker():
    bases = [style(name) for name in ("pairflow", "udlm", "random", "mdlm", "pairflow-sub4")]
    assert len({look.colour for look in bases}) == len({look.marker for look in bases}) == 5
    assert {(look.line, look.hollow) for look in bases} == {("-", False)}
    looks = [style(f"pairflow-sub{2**power}") for power in range(1, 6)]
    assert len({look.marker for look in looks}) == 5
    assert {look.colour for look in looks} == {"orange"}
    assert style("pairflow-sub4+redi").marker == style("pairflow-sub4").marker


def test_a_distillation_keeps_the_colour_of_its_base_and_has_one_line():
    for rounds in ("+dcd", "+redi", "+redi+redi", "+redi+redi+redi", "+redi+dcd"):
        ours, theirs = style(f"pairflow{rounds}"), style(f"udlm{rounds}")
        assert (ours.colour, theirs.colour) == (style("pairflow").colour, style("udlm").colour)
        assert (ours.line, ours.marker, ours.hollow) == (theirs.line, theirs.marker, True)
        assert ours.line != "-"


@pytest.mark.parametrize("name", ["mine", "Mine 2", "pairflow-x", "udlm+", "mine+redi", ""])
def test_unknown_methods_always_look_the_same_and_like_no_known_one(name):
    assert style(name) == style(name)
    assert style(name).colour not in {style(base).colour for base in ("pairflow", "udlm", "random", "mdlm")}


def test_keys_show_the_whole_marker_in_the_colours_of_the_page():
    page = f"var(--page, {HEX['page']})"
    assert page in drawing.key(style("udlm+dcd"), "k")
    assert page not in drawing.key(style("udlm"), "k")
    assert "clip-path" not in drawing.key(style("mdlm"), "k")
    assert themed("fill: #0072B2; stroke: #123456") == "fill: var(--blue, #0072b2); stroke: #123456"


def test_molecules_beyond_the_bins_stand_apart_from_the_curve():
    """Of a method's ten molecules two are below the training molecules' range and five above it."""
    counts = pd.DataFrame(
        {
            "low": [-np.inf, 0.0, 1.0, 2.0],
            "high": [0.0, 1.0, 2.0, np.inf],
            "samples": [2, 1, 2, 5],
            "training": [0, 3, 1, 0],
        }
    )
    one = {"udlm": counts}
    picture = charts.histograms(one, "QED", "h")
    [axes] = picture.figure.axes
    _, curve = (patch for patch in axes.patches if isinstance(patch, StepPatch))
    assert curve.get_data().values.tolist() == [0.1, 0.2]
    below, above = axes.get_lines()
    assert below.get_xdata()[0] < 0.0
    assert above.get_xdata()[0] > 2.0
    assert [*below.get_ydata(), *above.get_ydata()] == [0.2, 0.5]
    assert {"udlm", "less", "more"} <= set(texts(picture.svg))
    assert picture.alt.endswith("training molecules: 0.75; udlm: 1.17, 70.0 % beyond.")
    inside = counts.assign(samples=[0, 1, 2, 0])
    assert not {"less", "more"} & set(texts(charts.histograms({"udlm": inside}, "QED", "h").svg))


def test_each_method_has_a_small_histogram_of_its_own_on_the_same_scales():
    bins = pd.DataFrame(
        {"low": [-np.inf, 0.0, 1.0, 2.0], "high": [0.0, 1.0, 2.0, np.inf], "training": [0, 3, 1, 0]}
    )
    counts = {"udlm": [0, 1, 3, 0], "pairflow": [0, 3, 1, 0], "mdlm": [0, 0, 0, 0], "random": [0, 2, 2, 0]}
    picture = charts.histograms({name: bins.assign(samples=own) for name, own in counts.items()}, "QED", "h")
    panels = picture.figure.axes
    assert [axes.get_title() for axes in panels] == [*counts]
    drawn = [[patch for patch in axes.patches if isinstance(patch, StepPatch)] for axes in panels]
    assert [patches[0].get_fill() for patches in drawn] == [True] * 4  # the training molecules
    assert [len(patches) for patches in drawn] == [2, 2, 1, 2]  # mdlm has no valid molecule
    assert len({axes.get_ylim() for axes in panels}) == len({axes.get_xlim() for axes in panels}) == 1
    low, high = panels[0].get_ylim()
    assert (low, high > 0.75) == (0, True)


def test_names_at_the_ends_of_lines_keep_a_distance_and_their_order():
    assert drawing.spread([], 1) == []
    assert drawing.spread([0, 5, 9], 1) == [0, 5, 9]
    assert drawing.spread([4, 4, 4], 1) == pytest.approx([3, 4, 5])
    assert drawing.spread([0, 4, 4.5, 9], 1) == pytest.approx([0, 3.75, 4.75, 9])
    rows = {f"a{i}": [Cell(100, 0, 2)] for i in range(4)} | {"a" * 60: [Cell(100, 0, 2)], "b": [Cell()]}
    picture = figures.quality(given_table("valid", [1], rows), [1000], "q")
    names = [text for text in texts(picture.svg) if text[0] in "ab"]
    assert names == ["a0", "a1", "a2", "a3", "a" * 23 + "…"]  # what has no value has no end


def test_baselines_are_grey_where_there_is_something_to_set_off():
    look = contrast(["udlm", "udlm+dcd", "pairflow", "pairflow+redi"])
    assert [look(name).colour for name in ("udlm", "udlm+dcd", "random", "mdlm")] == ["grey"] * 4
    assert look("udlm+dcd").marker == style("udlm+dcd").marker
    assert look("pairflow+redi") == style("pairflow+redi")
    assert contrast(["udlm", "mdlm"])("udlm") == style("udlm")
    lines = figures.quality(TABLE, [1000], "q").chart.lines
    assert [line.look.colour for line in lines] == ["grey", style("odd $x$ <b>").colour]


def test_logarithmic_times_have_few_round_ticks():
    times = pd.DataFrame(
        {"nfe": [1, 2, 4], "calls": [2, 3, 5], "seconds": [0.16, 0.3, 4.4], "valid": [10.0, 20.0, 30.0]}
    )
    picture = charts.trade({"udlm": times}, 1024, "main", "t")
    [axes] = picture.figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.2", "0.5", "1", "2", "5"]
    assert axes.get_xticks(minor=True).size == 0
