"""What pages show of vectors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.config import Experiment
from pairflow.kinds.vectors.page.clouds import SHOWN, VectorPart, draw_clouds, draw_pairs, read_vectors
from pairflow.report.contents import Contents
from pairflow.report.grid import Grid, choose_digits, list_grids
from pairflow.report.headline import Measure, MethodLine
from pairflow.report.kind_page import KindPage, Samples, count_rows
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_number, join_steps


class VectorsPage(KindPage):
    things, section, shown, bounded = "vectors", "kinds/vectors/page/section.html", SHOWN, False

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> VectorPart:
        return read_vectors(root, experiment, samples)

    def measure(self, contents: Contents | FinishedExperiment, leading: Grid) -> dict[str, Measure]:
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

    def describe(
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


PAGE = VectorsPage()
