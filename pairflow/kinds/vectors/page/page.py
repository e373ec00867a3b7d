"""What pages show of vectors: clouds of points, and lines from sources to data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.plan import paths
from pairflow.report.colours import HEX
from pairflow.report.contents import Contents, PagePart
from pairflow.report.drawing import Picture, canvas, finish
from pairflow.report.grid import Grid, choose_digits, list_grids
from pairflow.report.headline import Measure, MethodLine
from pairflow.report.kind_page import KindPage, Samples, count_rows, read_pairs
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_number, join_steps, name_file

SHOWN = 600  # points of a cloud
_PAIRS = 150  # lines of a coupling
_WIDTH = 2.4  # inches
_TALLEST = 1.2  # height of the axes over their width; data that are taller are drawn narrower
_LABELS = 0.25  # inches for the numbers of an axis
_MARGIN = 0.05  # of the range of the data, on each side

Clouds = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> (B, d)


@dataclass(frozen=True)
class VectorPart(PagePart):
    """What only pages of vectors show, in the first two coordinates: some training vectors (B, 2), method ->
    NFE -> samples (B, 2), and of each coupling sources x0 and data points x1 (B, 2)."""

    training_points: np.ndarray | None = None
    points: Clouds = field(default_factory=dict)
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


class VectorsPage(KindPage):
    things, section, shown, bounded = "vectors", "kinds/vectors/page/section.html", SHOWN, False

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> VectorPart:
        train = token_array(read_table(paths.data(root, "train.parquet"), "vectors")[0]["values"])
        names, seed = [*experiment.couplings(), *experiment.taught()], experiment.seeds[0]
        pairs = {name: read_pairs(root, seed, name, _PAIRS) for name in names}  # the same rows of each
        return VectorPart(
            training_points=train[:SHOWN, :2],
            points={
                method: {nfe: rows[:, :2] for nfe, rows in by_nfe.items()}
                for method, by_nfe in samples.items()
            },
            pairs={name: (x0[:, :2], x1[:, :2]) for name, (x0, x1, _) in pairs.items()},
        )

    def headline_columns(self, contents: Contents | FinishedExperiment, leading: Grid) -> dict[str, Measure]:
        """The main distances, each beside that of held-out data."""
        measures = {}
        for grid in list_grids(contents.metrics, contents.experiment, leading.evaluation):
            if not grid.about.group:
                floor = grid.floor.mean if grid.floor else np.nan
                digits = max(grid.about.digits, choose_digits([*grid.means.values(), floor]))
                spread = replace(grid.floor, digits=digits).spread if grid.floor else ""
                text = f"{format_number(floor, digits)} {spread}".rstrip()
                measures[grid.metric] = Measure(grid.about.label, grid.metric, grid.means, text, digits)
        return measures

    def write_headline(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], contents: Contents
    ) -> str:
        distance = measures[leading.metric]
        return (
            f"The best method, {best.method} at {join_steps([best.nfe])}, has a {distance.heading} of "
            f"{distance.text(best)} to the training data; held-out data have {distance.real}."
        )

    def list_facts(self, data: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [*count_rows(data), ("Dimensions d", f"{data['length']:,}")]

    def draw(self, contents: Contents) -> dict[str, Any]:
        """The data, then each method's samples by NFE; and the lines of the pairs."""
        part, clouds = contents.part, {}
        if part.training_points is not None:
            points = {name: part.points[name] for name in contents.methods if name in part.points}
            clouds = draw_clouds(part.training_points, points)
        return {
            "clouds": clouds,
            "lines": {name: draw_pairs(ends[0], ends[1], name) for name, ends in part.pairs.items()},
        }


def draw_clouds(data: np.ndarray, points: Clouds) -> dict[str, dict[int, Picture]]:
    """Method -> NFE -> its samples (B, 2) over the data (B, 2), which give the frame; under `data` and 0 the
    data by themselves."""
    clouds = {"data": {0: _draw_cloud(data, None, "data", "points-data")}}
    for method, by_nfe in points.items():
        clouds[method] = {
            nfe: _draw_cloud(data, rows, f"{method}, NFE {nfe}", f"points-{name_file(method)}-nfe{nfe}")
            for nfe, rows in sorted(by_nfe.items())
        }
    return clouds


def _draw_cloud(data: np.ndarray, samples: np.ndarray | None, what: str, name: str) -> Picture:
    with canvas(_size(data)) as (figure, axes):
        dots = {"s": 2.0, "linewidths": 0}
        axes.scatter(*data.T, color=HEX["grey" if samples is not None else "ink"], label="data", **dots)
        if samples is not None:
            axes.scatter(*samples[:SHOWN].T, color=HEX["vermillion"], label="samples", **dots)
        _frame(axes, data)
        alt = f"Points of {what} in the first two coordinates"
        return finish(figure, name, alt)


def draw_pairs(x0: np.ndarray, x1: np.ndarray, coupling: str) -> Picture:
    """Lines from sources (B, 2) to the data points that they belong to."""
    with canvas(_size(np.concatenate([x0, x1]))) as (figure, axes):
        lines = np.stack([x0, x1], axis=1)
        axes.add_collection(LineCollection(list(lines), colors=HEX["grey"], linewidths=0.4))
        dots = {"s": 3.0, "linewidths": 0, "zorder": 3}
        axes.scatter(*x0.T, color=HEX["blue"], label="source x0", **dots)
        axes.scatter(*x1.T, color=HEX["vermillion"], label="data x1", **dots)
        _frame(axes, np.concatenate([x0, x1]))
        alt = f"{len(x0)} pairs of {coupling}: lines from the sources x0 to the data points x1"
        return finish(figure, f"pairs-{name_file(coupling)}", alt)


def _size(points: np.ndarray) -> tuple[float, float]:
    """Width and height of a figure, in inches, whose axes have the shape of the points (B, 2)."""
    width, height = np.ptp(points, axis=0)
    return _WIDTH, _LABELS + (_WIDTH - _LABELS) * min(_TALLEST, height / max(width, 1e-9))


def _frame(axes: Axes, points: np.ndarray) -> None:
    """Limits of both axes by the points, and as long a unit on both."""
    low, high = points.min(axis=0), points.max(axis=0)
    margin = _MARGIN * (high - low).max()
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=6)


PAGE = VectorsPage()
