import json
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import StepPatch
from pages import EVIL, given_table

from pairflow.kinds.molecules.page import charts
from pairflow.report import drawing, figures
from pairflow.report.colours import HEX, style
from pairflow.report.grid import Cell

CELLS = {"udlm": [Cell(84, 3, 5), Cell(100, 4, 5), Cell()], EVIL: [Cell(9, 1, 2)] * 3}
COLUMNS = [1, 2, 4]
LOG = pd.DataFrame({"iteration": [0, 10, 20], "loss": [9.0, 2.0, 1.0], "validation_nll": [np.nan, 3.5, 2.5]})


def texts(svg: str) -> list[str]:
    return [node.text for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_quality_shows_the_steps_scales_and_takes_the_colours_of_the_page():
    picture = figures.quality(given_table("valid", COLUMNS, CELLS), "q")
    assert {"1", "2", "4", "valid (% of samples)", "udlm", EVIL[:23] + "…"} <= set(texts(picture.svg))
    assert "udlm: 8.4 at 1, 10 at 2; " in picture.alt
    root = ElementTree.fromstring(picture.svg)
    assert root.get("viewBox")
    assert root.get("width") is root.get("height") is None
    assert f"var(--grey, {HEX['grey']})" in picture.svg
    assert "<metadata" not in picture.svg


def test_points_are_where_they_are_drawn_and_say_what_the_table_says():
    picture = figures.quality(given_table("valid", COLUMNS, CELLS, samples=(1000, 2000)), "q")
    assert not set(picture.points) & set("<>&'")
    udlm, evil = json.loads(picture.points)
    assert (udlm["name"], udlm["colour"], evil["name"]) == ("udlm", "grey", EVIL)
    assert len(udlm["points"]) == 2  # the third value is missing
    said = ["1 step, 1 call", "valid 4.20 %", "84.0 ± 3.0 of 1,000 or 2,000 samples", "5 trials"]
    assert udlm["points"][0][2] == said
    drawn = re.findall(r'<use xlink:href="#\S+" x="([\d.]+)" y="([\d.]+)"', picture.svg)
    places = {(round(float(x), 1), round(float(y), 1)) for x, y in drawn}
    assert {(x, y) for x, y, _ in udlm["points"]} <= places
    several = given_table("valid", [1], {"udlm": [Cell(84, 1.25, 6, seeds=2)]}, all_seeds=2)
    assert "2 seeds, 6 trials in all" in figures.quality(several, "q").points


def test_a_floor_reaches_beyond_the_steps_and_has_no_markers():
    cells, real = {"udlm": [Cell(84.25, 2, 9)]}, Cell(4.8, count=1)
    picture = figures.quality(given_table("fd", [1], cells, reference="test", floor=real), "q")
    udlm, floor = json.loads(picture.points)
    assert (floor["name"], floor["points"][0][2]) == ("real images", ["FD 4.8"])
    assert floor["points"][0][0] < udlm["points"][0][0] < floor["points"][1][0]
    assert "real images: 4.8." in picture.alt


@pytest.mark.parametrize("cells", [[Cell(5, np.nan, 1)], [Cell()], [Cell(0, 0, 3)], [Cell(-0.1, 0.2, 3)]])
@pytest.mark.parametrize("metric", ["valid", "fd"])
def test_a_single_point_of_one_method_is_drawn(metric, cells):
    [axes] = figures.quality(given_table(metric, [1], {"a": cells}), "q").figure.axes
    assert (axes.get_yscale() == "log") == (metric == "fd" and cells[0].mean > 0)


def test_curves_skip_what_is_no_number_and_long_ones_are_thinned_to_means():
    logs = {"udlm": LOG, "random": LOG.iloc[:1]}
    picture = figures.curves(logs, "validation_nll", "NLL", "c")
    assert picture.alt == "NLL by iteration. udlm: 3.5 at 10, 2.5 at 20."
    [line] = json.loads(picture.points)
    assert [point[2] for point in line["points"]] == [["iteration 10", "3.5"], ["iteration 20", "2.5"]]
    assert [figures.has_values(log, "validation_nll") for log in logs.values()] == [True, False]
    diverged = LOG.assign(loss=[1.0, np.inf, 2.0])
    long = pd.DataFrame({"iteration": range(10_000), "loss": np.tile([0.0, 2.0], 5000)})
    picture = figures.curves({"udlm": diverged, "random": long}, "loss", "loss", "c")
    assert picture.alt.endswith("udlm: 1 at 0, 2 at 20; random: 1 at 9,900.")


def test_methods_look_different_and_distillations_like_their_base(many):
    looks = [style(method) for method in many.methods]
    assert len({(look.colour, look.marker) for look in looks}) == 12
    assert len({(look.colour, look.line) for look in looks}) == 12
    bases = [style(name) for name in ("pairflow", "udlm", "random", "mdlm", "pairflow-sub4")]
    assert len({look.colour for look in bases}) == len({look.marker for look in bases}) == 5
    assert {(look.line, look.hollow) for look in bases} == {("-", False)}
    for rounds in ("+dcd", "+redi", "+redi+redi", "+redi+redi+redi", "+redi+dcd"):
        ours, theirs = style(f"pairflow{rounds}"), style(f"udlm{rounds}")
        assert (ours.colour, theirs.colour) == (style("pairflow").colour, style("udlm").colour)
        assert (ours.line, ours.marker, ours.hollow) == (theirs.line, theirs.marker, True)
        assert ours.line != "-"


def test_each_method_has_a_small_histogram_and_arrows_for_what_is_beyond_its_bins():
    """Of udlm's ten molecules two are below the training molecules' range and five above it."""
    edges = {"low": [-np.inf, 0.0, 1.0, 2.0], "high": [0.0, 1.0, 2.0, np.inf]}
    bins = pd.DataFrame({**edges, "training": [0, 3, 1, 0]})
    counts = {"udlm": [2, 1, 2, 5], "pairflow": [0, 3, 1, 0], "mdlm": [0, 0, 0, 0], "random": [0, 2, 2, 0]}
    picture = charts.histograms({name: bins.assign(samples=own) for name, own in counts.items()}, "QED", "h")
    panels = picture.figure.axes
    assert [axes.get_title() for axes in panels] == [*counts]
    drawn = [[patch for patch in axes.patches if isinstance(patch, StepPatch)] for axes in panels]
    assert [patches[0].get_fill() for patches in drawn] == [True] * 4  # the training molecules
    assert [len(patches) for patches in drawn] == [2, 2, 1, 2]  # mdlm has no valid molecule
    assert drawn[0][1].get_data().values.tolist() == [0.1, 0.2]
    arrows = [[(line.get_marker(), *line.get_ydata()) for line in axes.get_lines()] for axes in panels]
    assert arrows == [[("<", 0.2), (">", 0.5)], [], [], []]
    assert "training molecules: 0.75; udlm: 1.17, 70.0 % beyond; pairflow: 0.75; " in picture.alt
    assert len({axes.get_ylim() for axes in panels}) == len({axes.get_xlim() for axes in panels}) == 1


def test_names_at_the_ends_of_lines_keep_a_distance_and_their_order():
    assert drawing.spread([], 0.1) == []
    assert drawing.spread([0, 0.5, 0.9], 0.1) == pytest.approx([0, 0.5, 0.9])
    assert drawing.spread([0.4, 0.4, 0.4], 0.1) == pytest.approx([0.3, 0.4, 0.5])
    assert drawing.spread([0.2, 1, 1], 0.1) == pytest.approx([0.2, 0.9, 1])  # none above the frame
