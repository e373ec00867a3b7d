"""The script of the charts in a real browser."""

import pandas as pd
import pytest
from pages import EVIL, metric_rows, unfold, violations
from playwright.sync_api import expect

from pairflow.report.experiment.page import render

MOST = 1_200_000  # bytes of a page
SAID = ["4 steps, 5 calls", "valid 34.3 %", "351.0 ± 1.0 of 1,024 samples", "3 trials"]
METHODS = ["udlm", "random", "pairflow", "mdlm"]


@pytest.fixture(scope="module")
def html(make) -> str:
    """Four methods in three charts of quality, three of them in two charts of training."""
    contents = make()
    fourth = contents.metrics[contents.metrics.method == "random"].assign(method="mdlm")
    metrics = pd.concat([contents.metrics, fourth])
    changes = {"metrics": metrics, "couplings": {}, "correlations": {}, "samples": {}}
    html = render(make(settings={"methods": METHODS}, **changes))
    assert len(html.encode()) < MOST
    return html


def charts(page):
    return page.locator("#quality .charts .plot")


def lines(plot):
    """The curves that are to be seen."""
    return plot.locator("g[data-line]:has(use):visible")


def test_names_hide_and_show_methods_in_all_charts_below(html, open_page):
    page = open_page(html)
    first = charts(page).first
    buttons = page.locator("#quality .legend button")
    assert " ".join(buttons.all_text_contents()).split() == [*METHODS, "hide", "all"]
    every = lines(charts(page)).count()
    names = first.locator("text:visible")
    expect(names.filter(has_text="udlm")).to_have_count(1)
    buttons.first.focus()
    page.keyboard.press("Space")
    assert buttons.first.get_attribute("aria-pressed") == "false"
    expect(names.filter(has_text="udlm")).to_have_count(0)
    assert lines(charts(page)).count() == every * 3 / 4
    buttons.last.click()
    expect(buttons.last).to_have_text("hide all")
    assert lines(charts(page)).count() == every
    buttons.last.click()
    assert lines(charts(page)).count() == 0
    buttons.nth(2).click()
    assert lines(charts(page)).count() == every / 4


def test_a_pointer_near_a_point_shows_its_values_and_arrow_keys_go_from_point_to_point(html, open_page):
    page = open_page(html)
    first, tip = charts(page).first, charts(page).first.get_by_role("status")
    marker = first.locator('g[data-line="1"] use').last  # of the line, after the ends of its bars
    marker.scroll_into_view_if_needed()
    box = marker.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 3, box["y"] + box["height"] / 2 + 3)
    expect(tip.locator("b")).to_have_text("random")
    expect(tip.locator("span").nth(1)).to_have_text("valid 53.0 %")
    assert first.locator(".mark").is_visible()
    page.mouse.move(0, 0)
    expect(tip).to_have_text("")
    first.locator(".chart").focus()
    page.keyboard.press("ArrowRight")
    expect(tip.locator("b")).to_have_text("udlm")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(tip.locator("b")).to_have_text("random")
    expect(tip.locator("span")).to_have_text(SAID)
    page.keyboard.press("Escape")
    expect(tip).to_have_text("")
    page.locator("#quality .legend button").first.click()
    first.locator(".chart").focus()
    page.keyboard.press("ArrowLeft")
    expect(tip.locator("b")).to_have_text("random")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pointed_sorted_and_copied_it_is_accessible(html, open_page, scheme):
    page = open_page(html, color_scheme=scheme)
    charts(page).last.locator(".chart").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#quality table").first.get_by_role("button", name="1", exact=True).click()
    for title in ("Settings", "More measurements"):
        unfold(page, title)
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="What is valid?").first.click()
    assert violations(page) == []


def test_colours_follow_the_scheme_and_paper_shows_every_method(html, open_page):
    page = open_page(html, color_scheme="light")
    line = charts(page).first.locator('g[data-line="2"]:has(use) > path')
    stroke = "path => getComputedStyle(path).stroke"
    assert line.evaluate(stroke) == "rgb(213, 94, 0)"
    page.emulate_media(color_scheme="dark")
    assert line.evaluate(stroke) == "rgb(255, 138, 61)"
    page.locator("#quality .legend button").last.click()
    assert not line.is_visible()
    page.emulate_media(media="print")
    assert line.is_visible()
    assert not page.locator(".hint").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 33, 39)"


def test_evil_names_are_only_text(make, open_page):
    none = {name: {} for name in ("couplings", "correlations", "logs", "samples")}
    rows = metric_rows({EVIL: (1, 2, 3)})
    contents = make(name=EVIL, settings={"methods": [EVIL]}, metrics=rows, **none)
    page = open_page(render(contents))
    charts(page).first.locator(".chart").focus()
    page.keyboard.press("ArrowRight")
    tip = charts(page).first.get_by_role("status").locator("b")
    assert tip.text_content() == page.locator("#quality .legend button").text_content().strip() == EVIL
    assert page.evaluate("document.scripts.length") == 2 + 3
