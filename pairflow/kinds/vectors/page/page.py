"""What pages show of vectors: clouds of points, and lines from noise to data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection

from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.plan import paths
from pairflow.report.colours import HEX
from pairflow.report.contents import Contents
from pairflow.report.drawing import Picture, canvas, finish
from pairflow.report.kind_page import KindPage, Samples, read_pairs
from pairflow.report.words import name_file, pluralise

SHOWN = 600  # most points of a cloud
_PAIRS = 150  # lines per coupling
_WIDTH = 2.4  # inches
_TALLEST = 1.2  # largest height of the axes over their width; taller data are drawn narrower
_LABELS = 0.25  # inches for the numbers of an axis
_MARGIN = 0.05  # on each side, relative to the range of the data

Clouds = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> (B, d)


class VectorsPage(KindPage):
    things, section, shown, bounded = "vectors", "kinds/vectors/page/section.html", SHOWN, False

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> dict[str, object]:
        """Read the first two coordinates of some vectors, as arrays (B, 2).

        Returns `training` vectors; `points`, samples by method and number of steps (NFE); and `ends`, noise
        x0 and its data x1 for each coupling, and for each method that trains on its parent's pairs.
        """
        train = token_array(read_table(paths.data(root, "train.parquet"), "vectors")[0]["values"])
        names, seed = [*experiment.couplings(), *experiment.taught()], experiment.seeds[0]
        pairs = {name: read_pairs(root, seed, name, _PAIRS) for name in names}  # the same rows in each
        return {
            "training": train[:SHOWN, :2],
            "points": {
                method: {nfe: rows[:, :2] for nfe, rows in by_nfe.items()}
                for method, by_nfe in samples.items()
            },
            "ends": {name: (x0[:, :2], x1[:, :2]) for name, (x0, x1, _) in pairs.items()},
        }

    def draw(self, contents: Contents) -> dict[str, object]:
        """Draw the pictures of the page: `clouds` of samples over the data, by method and number of steps
        (NFE), and `lines` between paired noise and data."""
        part = contents.part
        return {
            "clouds": draw_clouds(part["training"], part["points"]) if part else {},
            "lines": {
                name: draw_pairs(ends[0], ends[1], name) for name, ends in part.get("ends", {}).items()
            },
        }


def draw_clouds(data: np.ndarray, points: Clouds) -> dict[str, dict[int, Picture]]:
    """Draw the samples (B, 2) of each method and number of steps (NFE) over the data (B, 2), which define
    the frame. Returns the pictures by method and NFE, and a picture of only the data under `data` and 0."""
    clouds = {"data": {0: _draw_cloud(data, None, "data", "points-data")}}
    for method, by_nfe in points.items():
        clouds[method] = {
            nfe: _draw_cloud(
                data, rows, f"{method}, {pluralise(nfe, 'step')}", f"points-{name_file(method)}-nfe{nfe}"
            )
            for nfe, rows in sorted(by_nfe.items())
        }
    return clouds


def _draw_cloud(data: np.ndarray, samples: np.ndarray | None, what: str, name: str) -> Picture:
    groups = {"data": ("ink", data)}
    if samples is not None:
        groups = {"data": ("grey", data), "samples": ("vermillion", samples[:SHOWN])}
    return _draw_points(groups, data, (), f"Points of {what} in the first two coordinates", name)


def draw_pairs(x0: np.ndarray, x1: np.ndarray, coupling: str) -> Picture:
    """Draw lines from noise x0 (B, 2) to the data points x1 (B, 2) that it is paired with."""
    groups = {"source x0": ("blue", x0), "data x1": ("vermillion", x1)}
    alt = f"{len(x0)} pairs of {coupling}: lines from the sources x0 to the data points x1"
    ends, name = np.stack([x0, x1], axis=1), f"pairs-{name_file(coupling)}"
    return _draw_points(groups, ends.reshape(-1, 2), ends, alt, name)


def _draw_points(
    groups: Mapping[str, tuple[str, np.ndarray]],
    framed: np.ndarray,
    pairs: Sequence[np.ndarray] | np.ndarray,
    alt: str,
    name: str,
) -> Picture:
    """Draw groups of points (B, 2) over lines between pairs (P, 2, 2), each the two ends of a line.

    Each group has a label, a colour and points. The points `framed` (F, 2) define the frame, whose axes have
    the same unit. `alt` is the alternative text, and `name` the name of the drawing.
    """
    low, high = framed.min(axis=0), framed.max(axis=0)
    width, height = high - low
    margin = _MARGIN * max(width, height)
    shape = min(_TALLEST, height / max(width, 1e-9))
    with canvas((_WIDTH, _LABELS + (_WIDTH - _LABELS) * shape)) as (figure, axes):
        axes.add_collection(LineCollection(list(pairs), colors=HEX["grey"], linewidths=0.4))
        for label, (colour, points) in groups.items():
            axes.scatter(*points.T, s=2.5, linewidths=0, zorder=3, color=HEX[colour], label=label)
        (left, bottom), (right, top) = low - margin, high + margin
        axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        axes.tick_params(labelsize=6)
        return finish(figure, name, alt)
