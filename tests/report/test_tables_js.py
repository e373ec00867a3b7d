"""Sorting, downloads, the copied command, print: the page's script and styles in a real browser."""

import base64
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from pages import METRICS

from pairflow.report.experiment.page import render

COMMAND = "pairflow sample --model results/demo --count 1000 --unique --out demo_samples.smi"
VALUES = {"udlm": (100.0, 9.0), "random": (1234.5, np.nan), "pairflow": (9.0, 7.04), "mdlm": (100.0, 7.01)}
NONE = {"reference": None, "extractor": None}  # as molecules have them
STEPS = [2**power for power in range(11)]


@pytest.fixture(scope="module")
def four(make) -> str:
    """Four methods at 1 and 4 steps: numbers that sort otherwise as text, a tie, a missing one."""
    frame = pd.DataFrame(VALUES, index=[1, 4]).unstack().reset_index()
    frame.columns = ["method", "nfe", "value"]
    metrics = frame.assign(metric="valid", trial=0, seed=0, evaluation="main", samples=1024, **NONE)
    return render(make(settings={"methods": list(VALUES)}, metrics=metrics, sample_command=COMMAND))


def table_of(page):
    return page.locator("#quality table").first


def names(page) -> list[str]:
    return table_of(page).locator("tbody").first.locator("th[scope=row]").all_inner_texts()


def sorted_as(page) -> list[str | None]:
    heads = table_of(page).locator("thead th")
    return [heads.nth(i).get_attribute("aria-sort") for i in range(heads.count())]


def test_three_clicks_are_up_down_and_as_it_was_and_missing_values_come_last(four, open_page):
    page = open_page(four)
    button = table_of(page).get_by_role("button", name="1", exact=True)
    assert (names(page), sorted_as(page)) == ([*VALUES], [None] * 3)
    button.click()
    assert names(page) == ["pairflow", "udlm", "mdlm", "random"]
    assert sorted_as(page) == [None, "ascending", None]
    button.click()
    assert names(page) == ["random", "udlm", "mdlm", "pairflow"]  # the tie stays in its order
    assert sorted_as(page) == [None, "descending", None]
    button.click()
    assert (names(page), sorted_as(page)) == ([*VALUES], [None] * 3)
    button = table_of(page).get_by_role("button", name="4", exact=True)
    button.click()
    assert names(page) == ["mdlm", "pairflow", "udlm", "random"]  # 7.01 and 7.04 print alike
    button.click()
    assert names(page) == ["udlm", "pairflow", "mdlm", "random"]
    table_of(page).get_by_role("button", name="Method").focus()
    page.keyboard.press("Enter")
    assert (names(page), sorted_as(page)) == (sorted(VALUES), ["ascending", None, None])


def test_each_group_of_rows_is_sorted_apart_under_its_heading(image_page, open_page):
    page = open_page(image_page)
    before = table_of(page).locator("tbody").all_inner_texts()
    table_of(page).get_by_role("button", name="32", exact=True).click()
    groups = table_of(page).locator("tbody")
    rows = groups.nth(0).locator("tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["FD", "pairflow", "random", "udlm", "real"]
    both = (before, groups.all_inner_texts())
    assert len({tuple("".join(sorted(text.split())) for text in texts) for texts in both}) == 1


def test_a_download_has_the_bytes_that_the_page_holds(four, open_page):
    page = open_page(four)
    page.get_by_role("button", name="Downloads").click()
    links = page.locator("#downloads li", has_text="Quality by sampling steps").get_by_role("link")
    assert links.all_inner_texts() == ["CSV", "LaTeX"]
    for i, kind in enumerate(("csv", "tex")):
        with page.expect_download() as found:
            links.nth(i).click()
        name = f"demo-main-quality.{kind}"
        [data] = re.findall(rf'download="{name}" href="[^,"]*,([^"]*)"', four)
        assert found.value.suggested_filename == name
        assert found.value.path().read_bytes() == base64.b64decode(data)
    assert page.url.startswith("file:")


@pytest.mark.parametrize("clipboard", [True, False])
def test_the_command_is_copied(four, open_page, clipboard):
    page = open_page(four, permissions=["clipboard-read", "clipboard-write"])
    if not clipboard:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    status = page.locator("#headline").get_by_role("status")
    assert status.inner_text() == ""
    page.locator("#headline").get_by_role("button", name="Copy").click()
    status.get_by_text("Copied", exact=True).wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Copy"
    page.evaluate("document.body.append(document.createElement('textarea'))")
    page.locator("textarea").focus()
    page.keyboard.press("Control+V")
    assert page.locator("textarea").input_value() == COMMAND


def test_without_scripts_the_page_is_whole(four, open_page):
    page = open_page(four, java_script_enabled=False)
    assert page.locator(".tip, button:not([popovertarget])").count() == 0
    assert page.locator("#quality .chart > svg").first.is_visible()
    assert names(page) == [*VALUES]
    assert table_of(page).locator("thead th").all_inner_texts() == ["Method steps", "1", "4"]
    assert page.get_by_text(COMMAND, exact=True).is_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_question_mark_opens_the_entry_of_its_metric(four, open_page, scripts):
    page = open_page(four, java_script_enabled=scripts)
    assert not page.locator(".entry").first.is_visible()
    page.locator("#quality").get_by_role("button", name="What is valid?").click()
    [entry] = [entry for entry in page.locator(".entry").all() if entry.is_visible()]
    words = entry.inner_text().split("\n")
    facts = ["valid", *METRICS["valid"].facts]
    assert [word for word in words if word in facts] == facts
    page.keyboard.press("Escape")
    assert not entry.is_visible()


def test_a_link_to_a_folded_section_opens_it_below_the_navigation(four, open_page):
    page = open_page(four)
    settings = page.locator("#run .facts")
    assert not settings.is_visible()
    page.get_by_role("link", name="Settings").click()
    settings.wait_for()
    page.wait_for_timeout(800)  # until it has scrolled there
    heading = page.get_by_role("heading", name="Settings").bounding_box()
    navigation = page.locator("nav").bounding_box()
    assert navigation["y"] == 0
    assert heading["y"] >= navigation["height"]


@pytest.fixture(scope="module")
def twelve(make) -> str:
    """Twelve methods at eleven numbers of steps."""
    methods = [f"pairflow{'+redi' * rounds}" for rounds in range(6)] + [f"udlm-{i}" for i in range(6)]
    rows = product(methods, STEPS, range(3), ("valid", "unique", "novel"))
    frame = pd.DataFrame(rows, columns=["method", "nfe", "trial", "metric"])
    metrics = frame.assign(value=1000.0 + 20 * frame.trial, seed=0, evaluation="main", samples=1024, **NONE)
    return render(make(settings={"methods": methods}, metrics=metrics))


def test_on_paper_no_table_is_cut_all_is_told_and_nothing_is_there_to_click(twelve, open_page):
    """On A4, its margins left out."""
    printed = open_page(twelve, width=687, color_scheme="dark")  # 182 mm
    printed.emulate_media(media="print")
    over = """[...document.querySelectorAll("td, th, pre")].filter(each =>
        each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth + 0.5)
        .map(each => each.textContent)"""
    assert printed.evaluate(over) == []
    assert len(re.findall(rb"/Type\s*/Page\b", printed.pdf(format="A4"))) > 3
    for hidden in ("nav", ".skip", ".files", ".command button"):
        assert not printed.locator(hidden).first.is_visible()
    closed = printed.locator("details:not([open])")
    heights = closed.evaluate_all("all => all.map(each => each.getBoundingClientRect().height)")
    assert min(heights) > 100
    assert all(entry.is_visible() for entry in printed.locator(".entry").all())
    assert printed.evaluate("getComputedStyle(document.body).color") == "rgb(29, 33, 39)"
