"""The page on the paper's tables: one HTML file that opens offline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.paper import illustration as figure1
from benchmarks.paper.advice import advise
from benchmarks.paper.costs import ORIGIN
from benchmarks.paper.export import export_files, tabulate
from benchmarks.paper.grids import PaperSection, make_sections
from benchmarks.paper.inputs import Pictures
from benchmarks.paper.moons import compare_dimensions
from benchmarks.paper.printed import TRIALS
from benchmarks.paper.protocol import FILE as PROTOCOL
from benchmarks.paper.protocol import describe_scale
from benchmarks.paper.standing import generators
from benchmarks.paper.summary import count_outcomes, write_effects
from benchmarks.paper.verdicts import SEEDS
from pairflow.config import Experiment
from pairflow.pixels import Png, encode, enlarge, tile
from pairflow.report.colours import style
from pairflow.report.drawing import legend
from pairflow.report.results import FinishedExperiment
from pairflow.report.templates import make_environment
from pairflow.report.words import format_number, join_steps

_GROUPS = {
    "QM9": ("qm9_", "appendix_tc"),
    "ZINC-250k": ("zinc",),
    "MNIST-Binary": ("binary_mnist", "mnist_binary"),
    "CIFAR-10": ("cifar", "appendix_cifar"),
    "FFHQ": ("ffhq",),
    "Coverage and cost": ("appendix_forward", "computation"),
    "Other data": ("lm1b", "continuous"),
}
_ROOM = 540  # CSS pixels of a row of samples: two stand side by side on a desk
_LINES = 34  # of tables that are open at first: further ones are closed, so that the page stays short


@dataclass(frozen=True)
class PaperPage:
    """What the page shows.

    experiments  configured experiments on the paper's data sets
    runs         those that are finished
    left_out     a line for each finished one whose files are not what the configuration would make
    pictures     the first samples of each, where they are pictures
    """

    experiments: Mapping[str, Experiment]
    runs: Mapping[str, FinishedExperiment]
    left_out: list[str] = field(default_factory=list)
    pictures: Mapping[str, Pictures] = field(default_factory=dict)

    @cached_property
    def sections(self) -> list[PaperSection]:
        return make_sections(self.runs.values())

    @cached_property
    def files(self) -> dict[str, dict[str, str]]:
        """Table -> name of a file -> its text."""
        return {section.table: export_files(section) for section in self.sections}

    @cached_property
    def samples(self) -> dict[str, dict[int, dict[str, Png]]]:
        """Experiment -> NFE -> method -> a row of its first samples."""
        return {
            run: {
                nfe: {name: _draw_row(images, name, nfe) for name, images in by_method.items()}
                for nfe, by_method in by_nfe.items()
            }
            for run, by_nfe in self.pictures.items()
            if by_nfe
        }

    @property
    def values(self) -> pd.DataFrame:
        """Every cell of every table: what is printed, and what each experiment measured."""
        return tabulate(self.sections)


def format_ratio(ratio: float) -> str:
    """A ratio with the digits that tell it from 1: `0.994`, `1.004`, `12.8`."""
    return format_number(ratio, 3 if ratio < 1.995 else 2 if ratio < 9.995 else 1)


def render(page: PaperPage) -> str:
    """The page as HTML. It has no scripts and fetches nothing."""
    figure = figure1.illustrate()
    looks = {"backward pairing (Algorithm 1)": style("pairflow"), "uniform corruption": style("udlm")}
    groups = {
        name: [section for section in page.sections if section.table.startswith(starts)]
        for name, starts in _GROUPS.items()
    }
    environment = make_environment(Path(__file__).parents[1])
    environment.filters["ratio"] = format_ratio
    return environment.get_template("paper/paper.html").render(
        page=page,
        groups=groups,
        generators=generators(page.runs.values()),
        opened=_choose_open(section for group in groups.values() for section in group),
        count_outcomes=count_outcomes,
        moons=compare_dimensions(page.runs.values()),
        effects=write_effects(page.sections, page.runs),
        advice=[*advise(page.sections, page.experiments, page.runs)],
        origin=ORIGIN,
        scales={name: describe_scale(run) for name, run in page.runs.items()},
        protocol=f"benchmarks/paper/{PROTOCOL.name}",
        seeds=SEEDS,
        trials=TRIALS,
        figure=figure,
        toy=figure1,
        legend_of_figure=legend(looks, "figure", looks.__getitem__),
        picture=figure1.draw_corruption(
            figure.times, {"pairflow": figure.backward, "udlm": figure.uniform}, "figure"
        ),
    )


def _draw_row(images: np.ndarray, method: str, nfe: int) -> Png:
    pixels = tile(images, len(images))
    title = f"{len(images)} samples of {method} at {join_steps([nfe])}"
    return encode(pixels, title, enlarge(_ROOM, pixels.shape[1]))


def _choose_open(sections: Iterable[PaperSection]) -> set[str]:
    """Tables that are open at first: those with a measured value, as long as they leave the page short."""
    opened, lines = set(), 0
    for section in sections:
        own = sum(
            1 + sum(2 - grid.runs[name].reduced for name in row.runs)
            for grid in section.grids
            for row in grid.rows
        )
        if section.runs and lines + own <= _LINES:
            opened.add(section.table)
            lines += own
    return opened
