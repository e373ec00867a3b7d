"""What pages show of images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Metadata
from pairflow.config import Experiment
from pairflow.kinds.images.page import pictures
from pairflow.kinds.images.page.pictures import SAMPLES
from pairflow.kinds.images.prepare import to_images
from pairflow.kinds.images.rows import read_images
from pairflow.report.contents import Contents
from pairflow.report.grid import Grid
from pairflow.report.kind_page import Details, KindPage, Samples
from pairflow.report.words import join_steps

_EXTRACTORS = {"classifier": "the classifier", "inception": "Inception", "dinov2": "DINOv2"}


class ImagesPage(KindPage):
    things, section, shown, bounded = "images", "kinds/images/page/section.html", SAMPLES, False
    copies, copies_expected = "nn_copies", False

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> dict[str, Any]:
        return pictures.read_images(root, experiment, samples)

    def read_data(self, metadata: Metadata) -> dict[str, Any]:
        return {"shape": metadata.shape}

    def read_row(self, path: Path, count: int) -> np.ndarray:
        return read_images(path, "samples", count)[:]  # the first trial stands first

    def list_facts(self, data: Mapping[str, Any]) -> list[tuple[str, str]]:
        channels, height, width = data["shape"]
        colours = "grey" if channels == 1 else f"{channels} channels"
        return [*super().list_facts(data), ("Image size", f"{width} × {height} pixels, {colours}")]

    def make_details(
        self, contents: Contents, evaluation: str, tables: Sequence[Grid], prefix: str
    ) -> Details:
        """The networks by whose features images are compared, and those with more features than samples."""
        rows = contents.measured[contents.measured.evaluation == evaluation]
        deficient = rows[(rows.metric == "rank_deficient") & (rows.value > 0)].extractor.dropna()
        accuracies, features = contents.part["accuracies"], []
        for grid in tables:  # whose features it compares, and from how many samples; of pixels, the number
            if grid.extractor:
                by = f" by the features of {name_extractor(grid.extractor, accuracies)}"
                own = f"{grid.about.label}{by if grid.about.features else ''}"
                features.append(f"{own}, from {grid.samples} samples")
        few = dict.fromkeys(name_extractor(extractor, accuracies) for extractor in deficient)
        return Details({"features": [*dict.fromkeys(features)], "deficient": [*few]})

    def draw(self, contents: Contents) -> dict[str, Any]:
        part = contents.part
        states = contents.trajectory.states if contents.trajectory else {}
        shape, levels = tuple(contents.data["shape"]), contents.data["vocabulary_size"]
        examples = part["examples"]
        return {
            "examples": None if examples is None else pictures.draw_grid(examples, "the training data"),
            "grids": {
                method: {
                    nfe: pictures.draw_grid(images, f"{method} at {join_steps([nfe])}")
                    for nfe, images in sorted(by_nfe.items())
                }
                for method, by_nfe in part["images"].items()
                if by_nfe
            },
            "pairs": {
                name: pictures.draw_pairs(x1, between, x0, name)
                for name, (x1, between, x0) in part["ends"].items()
            },
            "neighbours": {
                name: pictures.draw_neighbours(*nearest) for name, nearest in part["neighbours"].items()
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
