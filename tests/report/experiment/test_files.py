import re
from xml.etree import ElementTree

import numpy as np
import pytest
from pages import given_table
from PIL import Image

from pairflow.report.drawing import Picture
from pairflow.report.experiment import files
from pairflow.report.experiment.page import draw, render
from pairflow.report.figures import quality
from pairflow.report.grid import Cell

CELLS = [Cell(9, 1, 2), Cell(8, 1, 2)]
TABLE = given_table("valid", [1, 2], {"udlm": CELLS, "odd $x$ <b>": CELLS})
POINTS = 72  # to the inch


def test_every_chart_of_the_page_has_a_name_of_its_own(many, make_images):
    for contents in (many, make_images()):
        parts = draw(contents)
        names = [name for name, figure in files.find_figures(parts) if isinstance(figure, Picture)]
        assert render(contents, parts).count('<div class="chart"') == len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z0-9+_-]+", name) for name in names)


def test_a_chart_is_saved_with_its_names_a_column_wide_on_white_with_its_fonts(tmp_path):
    files.save_chart(quality(TABLE, "q"), tmp_path / "main-valid")
    svg = (tmp_path / "main-valid.svg").read_text()
    root = ElementTree.fromstring(svg)
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(3.35 * POINTS)
    assert float(root.get("height").removesuffix("pt")) == pytest.approx(2.37 * POINTS)
    assert "fill: #ffffff" in svg
    assert "var(" not in svg
    for name in ("udlm", "odd $x$ &lt;b&gt;", "valid (% of samples)"):
        assert f"<!-- {name} -->" in svg  # drawn as outlines, the same wherever it is opened
    assert not list(root.iter("{http://www.w3.org/2000/svg}text"))
    pdf = (tmp_path / "main-valid.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_the_same_bytes_every_time_without_a_date(tmp_path):
    for path, name in (("a", "q"), ("b", "q"), ("c", "another")):
        files.save_chart(quality(TABLE, name), tmp_path / path)
    for kind in ("svg", "pdf"):
        found = {(tmp_path / f"{path}.{kind}").read_bytes() for path in "abc"}
        assert len(found) == 1
        assert not re.search(rb"Date|dc:date", found.pop())


def test_charts_and_pixels_land_in_one_folder(make_images, tmp_path):
    contents = make_images(images={"udlm": {4: make_images().part["images"]["udlm"][1]}})
    files.save(draw(contents), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"main-fd-to-the-training-images.svg", "coupling-distances.pdf", "neighbours-udlm-11.png"}
    assert len(names) == 2 * 7 + 3 + 2 * 12  # charts as SVG and PDF; grids and pairs; neighbours
    saved = np.asarray(Image.open(tmp_path / "grids-udlm-4.png"))
    factor = 5  # 365 pixels of room for 8 images of 8 pixels with a line of grey around each
    first = contents.part["images"]["udlm"][4][0, :, :, 0]
    assert (saved[factor : 9 * factor : factor, factor : 9 * factor : factor] == first).all()
