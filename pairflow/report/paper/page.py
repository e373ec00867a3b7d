"""The page on the paper's tables: one HTML file that opens offline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from pairflow.config import Experiment
from pairflow.report import figures
from pairflow.report.colours import style
from pairflow.report.downloads import data_uri
from pairflow.report.drawing import key
from pairflow.report.experiment.page import environment
from pairflow.report.legends import Legend
from pairflow.report.paper import illustration as figure2
from pairflow.report.paper.advice import Advice, advice
from pairflow.report.paper.compare import Section, sections
from pairflow.report.paper.export import files, values
from pairflow.report.paper.measured import Run
from pairflow.report.paper.names import number
from pairflow.report.paper.printed import TRIALS
from pairflow.report.paper.summary import sentences
from pairflow.report.paper.verdicts import SEEDS

_GROUPS = {
    "QM9": ("qm9_", "appendix_tc"),
    "ZINC-250k": ("zinc",),
    "MNIST-Binary": ("binary_mnist", "mnist_binary"),
    "CIFAR-10": ("cifar", "appendix_cifar"),
    "Coverage and cost": ("appendix_forward", "computation"),
    "Other data": ("ffhq", "lm1b", "continuous"),
}


@dataclass(frozen=True)
class Page:
    """What the page is made of.

    experiments  configured experiments on the paper's data sets
    runs         those of them that are finished
    left_out     a line for each finished one whose files are not what the configuration would make
    """

    experiments: Mapping[str, Experiment]
    runs: Mapping[str, Run]
    left_out: list[str] = field(default_factory=list)

    @cached_property
    def sections(self) -> list[Section]:
        return sections(self.runs.values())

    @cached_property
    def files(self) -> dict[str, dict[str, str]]:
        """Table -> name of a file -> its text."""
        return {section.table: files(section) for section in self.sections}

    @property
    def values(self) -> pd.DataFrame:
        """Every cell of every table: what is printed, and what each run has of it."""
        return values(self.sections)


def render(page: Page) -> str:
    """The page as HTML: no scripts, and nothing that is fetched."""
    templates = environment()
    templates.filters |= {"data_uri": data_uri, "factor": factor}
    found = figure2.illustration()
    lines = {"pairflow": "backward pairing (Algorithm 1)", "udlm": "uniform corruption"}
    return templates.get_template("paper/paper.html").render(
        page=page,
        summary=sentences(page.sections, page.runs),
        groups=_groups(page.sections),
        advice={section.table: _advice(page, section) for section in page.sections},
        seeds=SEEDS,
        trials=TRIALS,
        figure=found,
        toy=figure2,
        legend_of_figure=Legend(
            [[(key(style(name), f"figure-key-{name}"), text) for name, text in lines.items()]]
        ),
        picture=figures.corruption(
            found.times, {"pairflow": found.backward, "udlm": found.uniform}, "figure"
        ),
    )


def factor(ratio: float) -> str:
    """A ratio with the digits that tell it from 1: `0.994`, `1.004`, `12.8`."""
    return number(ratio, 3 if ratio < 1.995 else 2 if ratio < 9.995 else 1)


def _advice(page: Page, section: Section) -> list[Advice]:
    return advice(section, page.experiments, page.runs)


def _groups(found: list[Section]) -> dict[str, list[Section]]:
    return {
        name: [section for section in found if section.table.startswith(starts)]
        for name, starts in _GROUPS.items()
    }
