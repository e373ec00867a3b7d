"""What pages show of images: samples, pairs with the states between them, nearest training images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pairflow.artifacts import read_metadata
from pairflow.artifacts.tables import from_points
from pairflow.config import Experiment
from pairflow.kinds.images.measures import nearest
from pairflow.kinds.images.rows import ImageRows, read_images
from pairflow.pixels import ROOM, Png, encode, enlarge, tile
from pairflow.plan import paths
from pairflow.report import kind_page
from pairflow.report.contents import Contents
from pairflow.report.grid import Grid
from pairflow.report.kind_page import Details, KindPage, Samples, choose_examples
from pairflow.report.words import join_steps

_EXTRACTORS = {"classifier": "the classifier", "inception": "Inception", "dinov2": "DINOv2"}
SAMPLES = 64  # most samples per method and NFE
_PAIRS = 6
_NEIGHBOURS = 12
_SHOWN = 64  # most images of a grid
_BYTES = 2**18  # most raw bytes of a grid
_COLUMNS = 8  # most columns of a grid
_LEAST = 40  # least width of an image in a grid, in CSS pixels
_STRIP = 90  # most CSS pixels for an image in a row of neighbours


class ImagesPage(KindPage):
    things, section, shown, bounded = "images", "kinds/images/page/section.html", SAMPLES, False
    copies, copies_expected = "nn_copies", False

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> dict[str, object]:
        """Read what only the page of images shows, as uint8 (B, H, W, C) with C = 1 (grey) or 3 (RGB).

        Returns a dict with these entries:
            examples: some training images.
            images: for each method and number of steps (NFE), samples in the order in which they were drawn.
            ends: for each coupling, some pairs: data x1, the states at S times from t = S/(S+1) down to
                1/(S+1), (B, S, H, W, C), and noise x0.
            neighbours: for each method, samples at its highest NFE, the training image nearest to each, and
                their distances (B,).
        """
        train, seed = read_images(paths.data(root, "train.parquet")), experiment.seeds[0]
        return {
            "examples": train[choose_examples(len(train.tokens), SAMPLES, seed)],
            "images": {
                method: {nfe: train.draw(tokens) for nfe, tokens in by_nfe.items()}
                for method, by_nfe in samples.items()
            },
            "ends": {name: _pairs(root, seed, name, train) for name in experiment.couplings()},
            "neighbours": _neighbours(samples, train),
        }

    def make_details(
        self, contents: Contents, evaluation: str, tables: Sequence[Grid], prefix: str
    ) -> Details:
        """Return `features`, for each metric of `tables` a phrase with the network behind it, and
        `deficient`, the networks with as many features as images, or more."""
        rows = contents.measured[contents.measured.evaluation == evaluation]
        deficient = rows[(rows.metric == "rank_deficient") & (rows.value > 0)].extractor.dropna()
        features = []
        for grid in tables:
            if grid.extractor:
                by = f" by the features of {name_extractor(grid.extractor)}"
                metric = f"{grid.about.label}{by if grid.about.features else ''}"  # pixels have no features
                features.append(f"{metric}, from {grid.samples}")
        few = dict.fromkeys(name_extractor(extractor) for extractor in deficient)
        return Details({"features": [*dict.fromkeys(features)], "deficient": [*few]})

    def draw(self, contents: Contents) -> dict[str, object]:
        part = contents.part
        examples = part["examples"]
        return {
            "examples": None if examples is None else draw_grid(examples, "the training data"),
            "grids": {
                method: {
                    nfe: draw_grid(images, f"{method} at {join_steps([nfe])}")
                    for nfe, images in sorted(by_nfe.items())
                }
                for method, by_nfe in part["images"].items()
                if by_nfe
            },
            "pairs": {
                name: draw_pairs(x1, between, x0, name) for name, (x1, between, x0) in part["ends"].items()
            },
            "neighbours": {name: draw_neighbours(*nearest) for name, nearest in part["neighbours"].items()},
        }


def name_extractor(extractor: str) -> str:
    """Return `the classifier 1a2b3c4d` for `classifier-1a2b3c4d`."""
    kind, _, weights = extractor.partition("-")
    return f"{_EXTRACTORS.get(kind, kind)} {weights}".strip()


def _pairs(root: Path, seed: int, coupling: str, train: ImageRows) -> tuple[np.ndarray, ...]:
    """Read some pairs as images: x1 (B, H, W, C), states between (B, S, H, W, C), and x0 (B, H, W, C). The
    real numbers of a continuous flow are rounded to grey levels."""
    parts = kind_page.draw_pairs(root, seed, coupling, _PAIRS)
    if np.issubdtype(parts[0].dtype, np.floating):
        levels = read_metadata(paths.pairs(root, seed, coupling)).dimensions[1]
        parts = tuple(from_points(part, levels) for part in parts)
    x1, states, x0 = parts
    images = train.draw(states.reshape(-1, x1.shape[1]))
    return train.draw(x1), images.reshape(*states.shape[:2], *images.shape[1:]), train.draw(x0)


def _neighbours(samples: Samples, train: ImageRows) -> dict[str, tuple[np.ndarray, ...]]:
    """Find the training images nearest to each method's first samples at its highest NFE. Returns for each
    method the samples, their nearest training images, and the L2 distances of their pixels."""
    first = {
        method: train.draw(by_nfe[max(by_nfe)][:_NEIGHBOURS]) for method, by_nfe in samples.items() if by_nfe
    }
    if not first:
        return {}
    images = np.concatenate(list(first.values()))
    data = train[:]
    distance, row = nearest(images.reshape(len(images), -1), data.reshape(len(data), -1))
    ends = np.cumsum([len(samples) for samples in first.values()])[:-1]
    by_method = zip(*(np.split(rows, ends) for rows in (images, data[row], distance)), strict=True)
    return dict(zip(first, by_method, strict=True))


def draw_grid(images: np.ndarray, title: str) -> Png:
    """Draw the first of `images` (B, H, W, C), as many as a picture has room for, row by row; the
    alternative text has `title`."""
    size, width = images[0].size, images.shape[2] + 1
    least = -(-_LEAST // width) * width  # CSS pixels of an image that is enlarged by a whole factor
    columns = max(1, min(_COLUMNS, ROOM // least))
    rows = max(1, min(_SHOWN, _BYTES // size) // columns)
    first = images[: rows * columns]
    return encode(tile(first, min(columns, len(first))), f"{len(first)} samples of {title}")


def draw_pairs(x1: np.ndarray, between: np.ndarray, x0: np.ndarray, coupling: str) -> dict[str, object]:
    """Draw pairs of a coupling, one per row: data x1, the states between, and noise x0.

    x1 and x0 are (B, H, W, C), the states (B, S, H, W, C). Returns the picture (`png`) and the times of its
    columns (`times`), from 1 to 0.
    """
    states = np.concatenate([x1[:, None], between, x0[:, None]], axis=1)
    times = np.linspace(1, 0, states.shape[1]).tolist()
    listed = ", ".join(f"{time:.3g}" for time in times[1:-1])
    alt = f"{len(x1)} pairs of {coupling}, one per row: data x1, states at t = {listed}, source x0"
    png = encode(tile(states.reshape(-1, *x1.shape[1:]), states.shape[1]), alt)
    return {"png": png, "times": times}


def draw_neighbours(
    samples: np.ndarray, nearest: np.ndarray, distances: np.ndarray
) -> list[dict[str, object]]:
    """Draw each sample (B, H, W, C) above its nearest training image (B, H, W, C). Returns a dict for
    each, with the picture (`png`) and the `distance`."""
    factor = enlarge(_STRIP, samples.shape[2] + 2)
    alt = "A sample above the training image nearest to it, at {:,.0f}"
    return [
        {"png": encode(tile(np.stack(both), 1), alt.format(distance), factor), "distance": float(distance)}
        for *both, distance in zip(samples, nearest, distances, strict=True)
    ]
