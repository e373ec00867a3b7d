"""The data of the plots that a script draws, and the script in a real browser."""

import base64
import json
import zlib

import numpy as np
import pandas as pd
import pytest
from pages import given_table
from playwright.sync_api import expect
from plotly.offline import get_plotlyjs

from pairflow.kinds.molecules.page import charts
from pairflow.report import figures
from pairflow.report.charts import embed
from pairflow.report.colours import contrast
from pairflow.report.experiment.page import render
from pairflow.report.grid import Cell
from pairflow.report.templates import scripts

MOST = 8_000_000  # bytes of a page
EVIL = """</script><script>alert('1')</script> "&<!--%{x}"""
CELLS = {"udlm": [Cell(84, 1.25, 3), Cell()], "udlm+dcd": [Cell(1352, np.nan, 1)] * 2}
TABLE = given_table("valid", [1, 4], CELLS, evaluation="main")


def data(picture) -> dict:
    return json.loads(embed(picture.chart))


def quality(metric: str, rows: dict[str, list[Cell]], evaluation: str = "main", **options) -> dict:
    """The chart at one number of steps."""
    return data(
        figures.quality(given_table(metric, [1], rows, evaluation=evaluation, **options), [1024], "q")
    )


def test_quality_is_the_cells_of_its_table():
    plot = data(figures.quality(TABLE, [1000, 2000], "q"))
    assert plot["title"] == "valid by calls of the network, evaluation main"
    steps = {"log": True, "ticks": [[1, "1"], [4, "4"]], "limits": None, "zero": False}
    assert plot["x"] == {"label": "calls of the network"} | steps
    counts = {"log": False, "ticks": [], "limits": None, "zero": True}
    assert plot["y"] == {"label": "valid (% of samples)"} | counts
    udlm, distilled = plot["lines"]
    assert (udlm["x"], udlm["y"], udlm["error"]) == ([1, 4], [4.2, None], [0.0625, None])
    said = ["NFE 1, 1 call", "valid 4.20 %", "84.0 ± 1.2 of 1,000 or 2,000 samples", "3 trials"]
    assert udlm["texts"][0] == said
    assert (distilled["y"], distilled["error"]) == ([67.6, 67.6], [None, None])
    assert distilled["texts"][1][1:] == ["valid 67.6 %", "1,352.0 of 1,000 or 2,000 samples", "1 trial"]
    [line] = quality("valid", {"udlm": [Cell(84, 1.25, 6, seeds=2)]}, all_seeds=2)["lines"]
    assert line["texts"][0][2:] == ["84.0 ± 1.2 of 1,024 samples", "2 seeds, 6 trials in all"]


def test_a_floor_reaches_beyond_the_steps_and_has_no_markers():
    rows, real = {"udlm": [Cell(84.25, 2, 9)]}, Cell(4.8, count=1)
    plot = quality("fd", rows, reference="test", floor=real)
    axis = plot["y"]
    assert (axis["label"], axis["log"], axis["zero"]) == ("FD to the test images", True, False)
    floor = plot["lines"][-1]
    assert (floor["name"], floor["symbol"], floor["y"], floor["error"]) == ("real images", "", [4.8] * 3, [])
    assert floor["x"][0] < 1 < floor["x"][2]
    assert floor["texts"][1] == ["FD 4.8"]


@pytest.mark.parametrize("cells", [[Cell(5, np.nan, 1)], [Cell()], [Cell(0, 0, 3)], [Cell(-0.1, 0.2, 3)]])
@pytest.mark.parametrize("metric", ["valid", "kd"])
def test_a_single_point_of_one_method_is_drawn_twice(metric, cells):
    plot = quality(metric, {"a": cells})
    assert plot["lines"][0]["x"] == [1]
    assert plot["y"]["log"] == (metric == "kd" and cells[0].mean > 0)


@pytest.mark.parametrize("name", [EVIL, "a" * 60, "$x$ <b>é\u2028</b>", "'\""])
def test_names_are_harmless_and_come_back_whole(name):
    table = given_table("valid", [1], {name: [Cell(1, 0, 2)]}, evaluation=name)
    text = embed(figures.quality(table, [10], "q").chart)
    assert not set(text) & set("<>&'")
    assert json.loads(text)["lines"][0]["name"] == name


def test_lines_look_as_in_the_static_charts(many):
    rows = {name: [Cell(1, 0, 2)] for name in [*many.methods, "pairflow-sub8", "x"]}
    lines = {line["name"]: line for line in quality("valid", rows)["lines"]}
    look = contrast(lines)
    assert all(line["colour"] == look(name).colour for name, line in lines.items())
    looks = [(line["symbol"], line["dash"], line["hollow"]) for line in lines.values()]
    assert looks[list(lines).index("udlm")] == ("square", "solid", False)
    assert looks[list(lines).index("udlm+dcd")] == ("triangle-down", "7.4px,3.2px", True)
    assert len({(line["colour"], line["symbol"], line["dash"]) for line in lines.values()}) == len(lines)


def test_trade_says_what_it_took():
    points = pd.DataFrame(
        {"nfe": [1, 1024], "calls": [2, 1025], "seconds": [0.5, 61.7], "valid": [10.0, 352.25]}
    )
    plot = data(charts.trade({"udlm": points}, 1024, "main", "t"))
    assert (plot["x"]["log"], plot["y"]["zero"]) == (True, True)
    assert plot["lines"][0]["texts"][1] == ["NFE 1,024, 1,025 calls", "valid 352.2", "61.7 s"]


def test_plotly_is_packed_and_no_script_ends_its_element():
    found = scripts(True)
    assert zlib.decompress(base64.b64decode(found.plotly)).decode() == get_plotlyjs()
    assert not any(mark in code for mark in ("</script", "<!--") for code in found.own)


def policy(html: str) -> str:
    return html.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]


def test_a_page_without_plots_goes_without_plotly(make):
    contents = make()
    html = render(make(metrics=contents.metrics.iloc[:0], couplings={}, logs={}, samples={}, correlations={}))
    assert html.count("<script") == 1
    assert policy(html).endswith(f"script-src {scripts(False).allowed}")


@pytest.fixture(scope="module")
def html(make) -> str:
    """Four methods in three charts of quality and one of speed, three of them in two charts of training."""
    contents = make()
    timings = contents.timings.assign(evaluation="main")
    timings.loc[timings.step == "sample", "nfe"] = [1, 4, 32] * 3
    fourth = contents.metrics[contents.metrics.method == "random"].assign(method="mdlm")
    metrics = pd.concat([contents.metrics, fourth])
    return render(make(metrics=metrics, timings=timings, couplings={}, correlations={}, samples={}))


def test_a_page_brings_plotly_once_and_stays_small(html):
    assert html.count('id="plotly"') == 1
    assert html.count('type="application/json"') == 6
    assert len(html.encode()) < MOST
    assert policy(html).endswith(f"img-src data: blob:; script-src {scripts(True).allowed}")


def shown(page, section="#quality"):
    """The charts of a section that stand side by side, once all are drawn."""
    plots = page.locator(f"{section} .charts .plot")
    plots.first.scroll_into_view_if_needed()
    for plot in plots.all():
        plot.and_(page.locator(".live")).wait_for()
    return plots


def point_at(page, plot, line: int, point: int):
    """Moves the mouse to a point of a chart without a label; the lines of the one that appears."""
    page.mouse.move(0, 0)
    expect(plot.locator(".hovertext")).to_have_count(0)
    place = plot.locator(".scatterlayer .trace").nth(line).locator(".points path").nth(point).bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2, steps=2)
    return label(plot)


def label(plot):
    return plot.locator(".hovertext tspan.line")


def colours(plot) -> list[str]:
    return plot.locator(".scatterlayer .js-line").evaluate_all(
        "lines => lines.map(line => getComputedStyle(line).stroke)"
    )


def ticks(plot, side: str):
    return plot.locator(f".{side}tick text")


def test_names_hide_and_show_methods_in_all_charts_above(html, open_page, unfold):
    page = open_page(html)
    unfold(page, "Training")
    plots = shown(page)
    buttons = page.locator("#quality .legend").first.locator("button")
    names = [text.strip() for text in buttons.all_text_contents()]
    assert names == ["udlm", "random", "pairflow", "mdlm", "hide all"]
    page.get_by_role("button", name="udlm", exact=True, pressed=True).first.focus()
    page.keyboard.press("Space")
    assert buttons.first.get_attribute("aria-pressed") == "false"
    lines = plots.locator(".scatterlayer .trace")  # of three charts
    expect(lines).to_have_count(3 * 3)
    assert shown(page, "#training").first.locator(".scatterlayer .trace").count() == 3
    page.keyboard.press("Enter")
    expect(lines).to_have_count(3 * 4)
    buttons.last.click()
    buttons.nth(2).click()
    expect(lines).to_have_count(3)
    assert colours(plots.first) == ["rgb(213, 94, 0)"]
    page.get_by_role("button", name="show all").click()
    expect(lines).to_have_count(3 * 4)
    assert buttons.last.text_content() == "hide all"


def test_axes_of_a_figure_switch_between_logarithmic_and_linear_unless_there_is_a_zero(
    html, open_page, unfold
):
    page = open_page(html)
    plots = shown(page)
    first, last = plots.first, plots.last
    expect(ticks(first, "x")).to_have_text(["1", "4", "32"])
    steps, counts, reset = (
        page.locator("#quality .tools").get_by_role("button", name=name)
        for name in ("log x", "log y", "reset")
    )
    steps.click()
    counts.click()
    assert [button.get_attribute("aria-pressed") for button in (steps, counts)] == ["false", "true"]
    for plot in (first, last):
        expect(ticks(plot, "x")).to_have_text(["0", "10", "20", "30"])
    expect(ticks(first, "y").first).not_to_have_text("0")
    reset.click()
    assert [button.get_attribute("aria-pressed") for button in (steps, counts)] == ["true", "false"]
    expect(ticks(first, "x")).to_have_text(["1", "4", "32"])
    expect(ticks(first, "y").first).to_have_text("0")
    unfold(page, "Training")
    loss, bound = shown(page, "#training").all()
    page.locator("#training .tools").get_by_role("button", name="log x").click()
    expect(ticks(loss, "x").first).not_to_have_text("0")
    expect(ticks(bound, "x").first).to_have_text("0")  # measured before the first iteration, too


APART = """chart => [...chart.querySelectorAll(".annotation-text")]
    .map(name => name.getBoundingClientRect().y)
    .every((y, row, all) => !row || all[row - 1] + 11 <= y)"""


def test_names_stand_at_the_ends_of_lines_without_touching(html, open_page):
    page = open_page(html)
    first = shown(page).first
    names = first.locator(".annotation-text")
    expect(names).to_have_text(["pairflow", "random", "mdlm", "udlm"])  # from the top; two are equal
    page.wait_for_function(APART, arg=first.element_handle())  # they move once after they are drawn
    boxes = names.evaluate_all("all => all.map(name => name.getBoundingClientRect().toJSON())")
    frame = first.bounding_box()
    assert all(box["x"] + box["width"] <= frame["x"] + frame["width"] for box in boxes)
    page.locator("#quality .legend button").nth(2).click()
    expect(names).to_have_text(["random", "mdlm", "udlm"])


def test_every_chart_of_images_is_drawn_once_it_is_unfolded(image_page, open_page):
    page = open_page(image_page)
    page.evaluate("document.querySelectorAll('details').forEach(element => { element.open = true; })")
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.and_(page.locator(".live")).wait_for()


def test_arrow_keys_go_from_point_to_point(html, open_page):
    page = open_page(html)
    first = shown(page).first
    first.locator(".drawn").focus()
    page.keyboard.press("ArrowRight")
    counts = "84.0 ± 1.0 of 1,024 samples"
    expect(label(first)).to_have_text(["udlm", "NFE 1, 2 calls", "valid 8.20 %", counts, "3 trials"])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    status = first.get_by_role("status")
    said = ["random", "NFE 4, 5 calls", "valid 34.3 %", "351.0 ± 1.0 of 1,024 samples", "3 trials"]
    expect(status).to_have_text(", ".join(said))
    expect(label(first)).to_have_text(said)
    page.keyboard.press("Escape")
    expect(first.locator(".hovertext")).to_have_count(0)
    expect(status).to_have_text("")


def test_colours_are_the_pages_and_follow_its_scheme(html, open_page):
    page = open_page(html, color_scheme="light", reduced_motion="reduce")
    first = shown(page).first
    assert colours(first)[:3] == ["rgb(133, 141, 151)", "rgb(133, 141, 151)", "rgb(213, 94, 0)"]
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.js-line')).stroke == 'rgb(124, 133, 145)'"
    )
    assert colours(first)[:3] == ["rgb(124, 133, 145)", "rgb(124, 133, 145)", "rgb(255, 138, 61)"]
    assert page.evaluate("document.getAnimations().length") == 0


def test_on_paper_and_without_scripts_the_charts_are_the_pages_own(html, open_page):
    page = open_page(html, color_scheme="dark")
    first = shown(page).first
    static = first.locator(".chart > svg")
    assert not static.is_visible()
    page.emulate_media(media="print")
    assert static.is_visible()
    assert not first.locator(".drawn").is_visible()
    assert not first.get_by_role("button").first.is_visible()
    ink = "getComputedStyle(document.body).color"
    assert page.evaluate(ink) == "rgb(29, 33, 39)"

    page = open_page(html, java_script_enabled=False)
    assert page.locator(".chart > svg").count() == 6
    assert page.locator("#quality .chart > svg").first.is_visible()
    assert page.locator(".drawn, button:not([popovertarget])").count() == 0


def test_charts_are_drawn_when_they_are_to_be_seen_and_tell_the_value_of_a_point(html, open_page, unfold):
    page = open_page(html)
    assert page.evaluate("typeof Plotly") == "undefined"
    first = shown(page).first
    counts = "437.0 ± 1.0 of 1,024 samples"
    expect(point_at(page, first, 0, 2)).to_have_text(
        ["udlm", "NFE 32, 33 calls", "valid 42.7 %", counts, "3 trials"]
    )
    assert page.locator("#training .plot.live").count() == 0
    unfold(page, "Training")
    shown(page, "#training")
    speed = page.locator("#more .plot")
    assert not speed.and_(page.locator(".live")).count()
    unfold(page, "More measurements")
    unfold(page, "Speed against quality")
    speed.and_(page.locator(".live")).wait_for()
    expect(point_at(page, speed, 2, 0)).to_have_text(["pairflow", "NFE 1, 2 calls", "valid 352.0", "0.667 s"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawn_sorted_and_copied_it_is_accessible(html, open_page, unfold, violations, scheme):
    page = open_page(html, color_scheme=scheme)
    shown(page)
    page.locator("#quality .legend button").first.click()
    page.locator("#quality table").first.get_by_role("button", name="1", exact=True).click()
    for title in ("Settings", "More measurements", "Speed against quality"):
        unfold(page, title)
    page.get_by_role("button", name="Copy").click()
    page.locator("#more .plot.live").wait_for()
    page.get_by_role("button", name="What is valid?").first.click()
    assert violations(page) == []


def test_drawn_charts_are_as_wide_as_the_static_ones(html, open_page):
    page = open_page(html, 1600)
    shown(page)
    for width in (1600, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """() => {
              const width = name => document.querySelector(`.plot ${name}`).getBoundingClientRect().width;
              return Math.abs(width(".chart") - width(".main-svg")) < 1;
            }"""
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#quality .tools button").last.is_visible()


def test_an_image_is_saved_without_a_request(html, open_page):
    page = open_page(html)
    page.get_by_role("button", name="Downloads").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG: valid by calls of the network, evaluation main").click()
    assert saved.value.suggested_filename == "valid-by-calls-of-the-network-evaluation-main.png"
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def test_evil_names_are_only_text(make, metric_rows, open_page):
    contents = make(
        name=EVIL,
        settings={"methods": [EVIL]},
        metrics=metric_rows({EVIL: (1, 2, 3)}).assign(evaluation=EVIL),
        couplings={},
        correlations={},
        logs={},
        samples={},
    )
    page = open_page(render(contents))
    first = shown(page).first
    said = point_at(page, first, 0, 1)
    expect(said.nth(-4)).to_have_text("NFE 4, 5 calls")
    assert "".join(said.all_text_contents()[:-4]).replace(" ", "") == EVIL.replace(" ", "")
    assert page.locator("#quality .legend button").text_content().strip() == EVIL
    assert page.evaluate("document.scripts.length") == 3 + 4
