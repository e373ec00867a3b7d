"""The pages in a real browser, at the widths of a telephone and of a desk."""

import numpy as np
import pytest
from pages import metric_rows, violations

from benchmarks.paper.page import PaperPage
from benchmarks.paper.page import render as render_paper
from pairflow.report.experiment.page import render

SIZES = """() => {
  const box = element => element.getBoundingClientRect();
  document.querySelectorAll("details").forEach(element => { element.open = true; });
  const pictures = [...document.querySelectorAll("[role=img] svg")];
  const wide = [...document.querySelectorAll("body *")].filter(element =>
    !element.closest(".scroll, nav ul, pre, svg") && box(element).right > window.innerWidth + 0.5);
  return {
    scroll: document.documentElement.scrollWidth,
    wide: wide.map(element => element.tagName + "." + element.className),
    pictures: pictures.length,
    broken: pictures.filter(svg => box(svg).width < 40 || box(svg).height < 30).length
      + [...document.images].filter(image => !image.naturalWidth).length,
  };
}"""
# Words of tables that stand on more than one line. They may break after a hyphen.
BROKEN_WORDS = """() => {
  document.querySelectorAll("details").forEach(element => { element.open = true; });
  const broken = [];
  for (const cell of document.querySelectorAll("th, td")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const { 0: word, index } of texts.currentNode.data.matchAll(/[^\\s-]+-?/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, index);
        range.setEnd(texts.currentNode, index + word.length);
        const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
        if (lines.size > 1) broken.push(word);
      }
    }
  }
  return broken;
}"""
WIDTHS = pytest.mark.parametrize("width", [400, 1600])


@WIDTHS
def test_no_overflow_and_no_broken_picture(make, open_page, width):
    long = "pairflow-sub" + 41 * "1" + "+redi+x"
    contents = make(
        name="e" * 60,
        settings={"methods": ["udlm", long]},
        metrics=metric_rows({"udlm": (84, 245, 437), long: (352, 498, 662)}),
        timings=make().timings.assign(method=long),
        couplings={long: make().couplings["random"]},
        samples={long: {1: ["CCO", "C" * 70, "(" * 70], 32: ["C1CC1"]}},
    )
    assert fits(open_page(render(contents), width)) >= 9


@pytest.fixture(scope="module")
def many_page(many) -> str:
    return render(many)


@pytest.mark.parametrize(("width", "side"), [(400, 64), (1600, 8)])
def test_images_fit_and_are_whole(make_images, open_page, width, side):
    pixels = np.random.default_rng(0).integers(0, 256, (64, side, side, 3), dtype=np.uint8)
    between = pixels[:18].reshape(6, 3, side, side, 3)
    contents = make_images(
        images={"udlm": {1: pixels, 1024: pixels}, "pairflow": {1: pixels[:3]}},
        ends={"pairflow": (pixels[:6], between, pixels[6:12])},
        neighbours={"pairflow": (pixels[:12], pixels[12:24], np.full(12, 12345.0))},
    )
    fits(open_page(render(contents), width))


def test_a_page_opens_short(many_page, image_page, open_page):
    for html in (many_page, image_page):
        assert open_page(html).evaluate("document.documentElement.scrollHeight") <= 6000


def test_on_a_telephone_tables_scroll_beside_their_first_column_and_no_word_breaks(many_page, open_page):
    page = open_page(many_page, 400)
    table = page.locator("#quality .scroll")
    before = table.locator("th[scope=row]").first.bounding_box()
    table.evaluate("table => { table.scrollLeft = 40; }")
    assert table.evaluate("table => table.scrollLeft") == 40
    assert table.locator("th[scope=row]").first.bounding_box() == before
    assert page.evaluate(BROKEN_WORDS) == []
    fits(page)


@WIDTHS
def test_the_papers_tables_fit(open_page, width):
    assert fits(open_page(render_paper(PaperPage({}, {}, ["n" * 200])), width)) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(molecule_page, image_page, open_page, scheme):
    for html in (molecule_page, image_page, render_paper(PaperPage({}, {}, []))):
        page = open_page(html, color_scheme=scheme)
        page.evaluate("document.querySelectorAll('details').forEach(element => { element.open = true; })")
        assert violations(page) == []


def fits(page) -> int:
    """Asserts that nothing is wider than the page or broken; returns the number of its drawings."""
    found = page.evaluate(SIZES)
    assert found["wide"] == []
    assert found["scroll"] <= page.viewport_size["width"]
    assert found["broken"] == 0
    return found["pictures"]
