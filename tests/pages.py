"""What tests of pages share: their tags, a browser that opens them, LaTeX that sets their tables."""

import shutil
import subprocess
from html.parser import HTMLParser
from itertools import product
from typing import Any

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as PlaywrightPage

from pairflow.config import Experiment
from pairflow.kinds import KINDS, load_kind
from pairflow.report.grid import Cell, Grid

OPEN: list[Browser] = []  # the browser that is running
EVIL = """</script><script>alert('1')</script> "&<!--$x$"""  # a name that must be only text
NFE = (1, 4, 32)
COUNTS = {"udlm": (84, 245, 437), "random": (183, 351, 543), "pairflow": (352, 498, 662)}
METRICS = {name: metric for kind in KINDS for name, metric in load_kind(kind).settings.metrics.items()}


def given_table(
    metric: str,
    columns: list[int],
    rows: dict[str, list[Cell]],
    floor: Cell | None = None,
    samples: tuple[int, ...] = (1000,),
    **options: Any,
) -> Grid:
    """A table whose cells are given, not computed from metric rows."""
    shared = {"evaluation": "main", "all_seeds": 1, "frame": pd.DataFrame({"samples": samples})}
    table = Grid(metric=metric, about=METRICS[metric], **shared | options)
    vars(table).update(columns=columns, rows=rows, floor=floor)
    return table


def trial_rows(
    values: dict[tuple[str, int], list[float]], metric: str = "valid", seed: int = 0
) -> pd.DataFrame:
    """The metric rows of one metric: the values of the trials by (method, number of steps)."""
    shared = {"metric": metric, "seed": seed, "evaluation": "main", "samples": 1024}
    return pd.DataFrame(
        {"method": method, "nfe": nfe, "trial": trial, "value": value, **shared}
        for (method, nfe), trials in values.items()
        for trial, value in enumerate(trials)
    )


def metric_rows(counts: dict[str, tuple[float, ...]], seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """Every metric at `counts` per method and NFE, give or take one in each of three trials."""
    values = {
        (method, nfe): [value - 1.0, float(value), value + 1.0]
        for method, own in counts.items()
        for nfe, value in zip(NFE, own, strict=True)
    }
    names = ("valid", "unique", "novel", "unique_strict", "novel_strict")
    rows = [trial_rows(values, metric, seed) for metric, seed in product(names, seeds)]
    return pd.concat(rows, ignore_index=True).assign(reference="train", extractor=None)


def sampled(values: dict[str, float], **facts: Any) -> pd.DataFrame:
    """The metric rows of one file of samples: metric -> value, and of which file."""
    shared = {"method": "udlm", "nfe": 1, "trial": 0, "seed": 0, "evaluation": "main", "samples": 1000}
    rows = pd.DataFrame({"metric": [*values], "value": [*values.values()], "reference": None})
    return rows.assign(extractor=None, **shared | facts)


UNCHECKED = ("description", "methods")  # names that an experiment would refuse are to be shown harmlessly


def make_experiment(**changes: Any) -> Experiment:
    """The constructed experiment with some settings replaced; any text goes as a method."""
    settings = {
        "description": "Constructed numbers",
        "scale": "reduced",
        "data": {"source": "small_molecules", "length": 16},
        "network": {"name": "mlp"},
        "training": {"batch_size": 256, "iterations": 1500, "learning_rate": 2e-3},
        "methods": tuple(COUNTS),
        "evaluations": {"main": {"nfe": NFE, "trials": 3}},
        "correlation": {},
    }
    unchecked = {key: changes.pop(key) for key in UNCHECKED if key in changes}
    if "methods" in unchecked:
        unchecked["methods"] = tuple(unchecked["methods"])
    return Experiment(**settings | changes).model_copy(update=unchecked)


class Document(HTMLParser):
    """Tags, attributes and text of a page but for scripts and styles; fails on tags that do not match."""

    VOID = frozenset({"meta", "br", "wbr", "hr", "img", "input", "link"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & {*self.open}:
            self.text.append(data)

    def headings(self) -> list[str]:
        return [attributes["id"] for tag, attributes in self.tags if tag == "section"]

    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="session")
def browser():
    """A real Chromium, that of the system: a single one, even if several folders of tests ask for it."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no chromium here to open the report in")
    if OPEN:
        yield OPEN[0]
        return
    with sync_playwright() as playwright:
        OPEN.append(playwright.chromium.launch(executable_path=found, args=["--no-sandbox"]))
        yield OPEN[0]
        OPEN.pop().close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a page's text as a file; a request beyond it, or a word on the console, fails the test."""
    contexts, said, asked = [], [], []

    def show(html: str, width: int = 1280, **options: Any) -> PlaywrightPage:
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        asked.remove(file.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == []


@pytest.fixture
def compile_latex(tmp_path):
    """Have pdflatex set tables; what it does not understand fails the test."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex here to compile the tables")

    def compile(tables: str) -> None:
        head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage[landscape]{geometry}\n"
        file = tmp_path / "all.tex"
        file.write_text(f"{head}\\begin{{document}}\n\\tiny\n{tables}\\end{{document}}\n")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-2000:]

    return compile


def unfold(page: PlaywrightPage, title: str) -> None:
    """Open a part of a page that is folded, by its title."""
    page.locator("summary").get_by_text(title, exact=True).click()


def violations(page: PlaywrightPage) -> list[tuple]:
    """What a page does that keeps people out, by axe."""
    return [
        (violation["id"], node["target"], node["failureSummary"])
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
