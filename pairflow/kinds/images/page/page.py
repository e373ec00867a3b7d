"""What pages show of images."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Metadata
from pairflow.config import Experiment
from pairflow.kinds.images.page import pictures
from pairflow.kinds.images.page.pictures import SAMPLES, ImagePart
from pairflow.kinds.images.prepare import to_images
from pairflow.kinds.images.rows import read_images
from pairflow.report.contents import Contents
from pairflow.report.flaws import Evidence, Flaw, Run, find_copies
from pairflow.report.grid import Grid, list_grids
from pairflow.report.headline import Box, Headline, Measure, MethodLine, measure_grid
from pairflow.report.kind_page import (
    Details,
    Flawed,
    KindPage,
    Samples,
    count_rows,
    count_symbols,
    find_means,
)
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import join_steps

_EXTRACTORS = {"classifier": "the classifier", "inception": "Inception", "dinov2": "DINOv2"}


@dataclass(frozen=True)
class ImageDetails(Details):
    """The networks by whose features images are compared, and those with more features than samples."""

    features: list[str] = field(default_factory=list)
    deficient: list[str] = field(default_factory=list)


class ImagesPage(KindPage):
    things, section, shown, bounded = "images", "kinds/images/page/section.html", SAMPLES, False

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> ImagePart:
        return pictures.read_images(root, experiment, samples)

    def read_data(self, root: Path, metadata: Metadata) -> dict[str, Any]:
        return {"shape": metadata.shape, "partial": metadata.parameters["partial"]}

    def read_row(self, path: Path, count: int) -> np.ndarray:
        return read_images(path, "samples", count)[:]  # the first trial stands first

    def headline_columns(self, contents: Contents | FinishedExperiment, leading: Grid) -> dict[str, Measure]:
        measures = {"distance": measure_grid(leading, leading.label)}
        for grid in list_grids(contents.metrics, contents.experiment, leading.evaluation):
            if grid.metric == "nn_copies":
                measures["copies"] = Measure("copies", grid.metric, grid.means)
        return measures

    def write_headline(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], contents: Contents
    ) -> str:
        distance = measures["distance"]
        value, steps = distance.text(best), join_steps([best.nfe])
        real = (
            f"real images have {distance.real}" if leading.floor else "that of real images was not measured"
        )
        return f"The best method, {best.method} at {steps}, has {distance.heading} of {value}; {real}."

    def find_flaws(
        self, evidence: Evidence, measured: Sequence[Grid], evaluation: str
    ) -> Iterator[tuple[Run, Flaw]]:
        yield from find_copies(find_means(measured, "nn_copies"), "most of its samples equal training images")

    def write_boxes(
        self, flawed: Mapping[str, Flawed], headline: Headline, contents: Contents
    ) -> Iterator[Box]:
        if copying := flawed.get("copies"):
            text = (
                f"More than half of the samples equal training images: {headline.name_shares(copying)}. "
                "Use more data, fewer iterations or a smaller network."
            )
            yield Box("Mostly copies.", text, severe=True)

    def list_facts(self, data: Mapping[str, Any]) -> list[tuple[str, str]]:
        channels, height, width = data["shape"]
        colours = "grey" if channels == 1 else f"{channels} channels"
        return [
            *count_rows(data, "Training images", "Test images"),
            ("Image size", f"{width} × {height} pixels, {colours}"),
            ("Length N", f"{data['length']:,} tokens"),
            count_symbols(data, "levels"),
        ]

    def make_details(
        self, contents: Contents, evaluation: str, tables: Sequence[Grid], prefix: str
    ) -> ImageDetails:
        rows = contents.measured[contents.measured.evaluation == evaluation]
        deficient = rows[(rows.metric == "rank_deficient") & (rows.value > 0)].extractor.dropna()
        accuracies, features = contents.part.accuracies, []
        for grid in tables:  # whose features it compares, and from how many samples; of pixels, the number
            if grid.extractor:
                by = f" by the features of {name_extractor(grid.extractor, accuracies)}"
                own = f"{grid.about.label}{by if grid.about.features else ''}"
                features.append(f"{own}, from {grid.samples} samples")
        return ImageDetails(
            features=list(dict.fromkeys(features)),
            deficient=list(dict.fromkeys(name_extractor(extractor, accuracies) for extractor in deficient)),
        )

    def draw(self, contents: Contents) -> dict[str, Any]:
        part, examples = contents.part, contents.part.training_images
        states = contents.trajectory.states if contents.trajectory else {}
        shape, levels = tuple(contents.data["shape"]), contents.data["vocabulary_size"]
        return {
            "examples": None if examples is None else pictures.draw_grid(examples, "the training data"),
            "grids": {
                method: {
                    nfe: pictures.draw_grid(images, f"{method} at {join_steps([nfe])}")
                    for nfe, images in sorted(part.images[method].items())
                }
                for method in contents.methods
                if part.images.get(method)
            },
            "pairs": {
                name: pictures.draw_pairs(ends[0], ends[1], ends[2], name)
                for name, ends in part.pairs.items()
            },
            "neighbours": {
                name: pictures.draw_neighbours(*part.neighbours[name])
                for name in contents.methods
                if name in part.neighbours
            },
            "states": {
                name: pictures.draw_states(to_images(tokens, shape, levels), name)
                for name, tokens in states.items()
            },
        }


def name_extractor(extractor: str, accuracies: Mapping[str, float | None]) -> str:
    """`classifier-1a2b3c4d` in words, with its accuracy where that is known."""
    kind, _, weights = extractor.partition("-")
    name = f"{_EXTRACTORS.get(kind, kind)} {weights}".strip()
    accuracy = accuracies.get(extractor)
    return name if accuracy is None else f"{name} (accuracy {100 * accuracy:.1f} %)"


PAGE = ImagesPage()
