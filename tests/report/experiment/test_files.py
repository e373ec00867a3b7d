import re
import zlib
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

BASES = ("mdlm", "udlm", "random", "pairflow", "pairflow-sub4")
TABLE = given_table(
    "valid",
    [1, 2],
    {name: [Cell(9, 1, 2), Cell(8, 1, 2)] for name in ("udlm", "odd $x$ <b>")},
)
POINTS = 72  # to the inch


def unpacked(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return stream


def test_every_chart_of_the_page_has_a_name_of_its_own(many, make_images):
    for contents in (many, make_images()):
        parts = draw(contents)
        names = [name for name, figure in files.find_figures(parts) if isinstance(figure, Picture)]
        assert render(contents, parts).count('<div class="chart"') == len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z0-9+_-]+", name) for name in names)


def test_a_chart_is_saved_with_its_names_a_column_wide_on_white_with_its_fonts(tmp_path):
    files.save_chart(quality(TABLE, [1024], "q"), tmp_path / "main-valid")
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
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    [font] = [data for data in map(unpacked, streams) if data[:4] == b"\0\1\0\0"]  # TrueType
    tables = {font[start : start + 4] for start in range(12, 12 + 16 * int.from_bytes(font[4:6]), 16)}
    assert not tables & {b"GSUB", b"GPOS"}  # which nothing in a PDF uses


def test_the_same_bytes_every_time_without_a_date(tmp_path):
    for path, name in (("a", "q"), ("b", "q"), ("c", "another")):
        files.save_chart(quality(TABLE, [1024], name), tmp_path / path)
    for kind in ("svg", "pdf"):
        found = {(tmp_path / f"{path}.{kind}").read_bytes() for path in "abc"}
        assert len(found) == 1
        assert not re.search(rb"Date|dc:date", found.pop())


def test_a_legend_is_no_wider_than_the_column(many, tmp_path):
    picture = dict(files.find_figures(draw(many)))["training-loss"]
    figure = picture.figure
    files.save_chart(picture, tmp_path / "training-loss")
    [legend] = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set(BASES)
    assert legend.get_window_extent().width <= figure.bbox.width
    assert figure.bbox.height > legend.get_window_extent().height + 2 * figure.dpi


def test_charts_and_pixels_land_in_one_folder(make_images, tmp_path):
    contents = make_images(images={"udlm": {4: make_images().part["images"]["udlm"][1]}})
    files.save(draw(contents), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"main-fd-to-the-training-images.svg", "coupling-jumps.pdf", "neighbours-udlm-11.png"}
    assert len(names) == 2 * 10 + 3 + 2 * 12  # charts as SVG and PDF; grids and pairs; neighbours
    saved = np.asarray(Image.open(tmp_path / "grids-udlm-4.png"))
    factor = 5  # 365 pixels of room for 8 images of 8 pixels with a line of grey around each
    first = contents.part["images"]["udlm"][4][0, :, :, 0]
    assert (saved[factor : 9 * factor : factor, factor : 9 * factor : factor] == first).all()
