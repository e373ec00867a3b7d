"""Images on the page: grids of samples, pairs, states on the way to noise, nearest training images."""

from dataclasses import dataclass

import numpy as np

from pairflow.report.pixels import ROOM, Png, encode, enlarge, tile

_SHOWN = 64  # images of a grid, if they are small
_BYTES = 2**18  # most raw pixels of a grid
_COLUMNS = 8
_LEAST = 40  # CSS pixels of an image in a grid
_STRIP = 90  # CSS pixels of an image in a row of neighbours


@dataclass(frozen=True)
class Pairs:
    """Some pairs of a coupling, one a row, under the times of its columns."""

    png: Png
    times: list[float]


@dataclass(frozen=True)
class Neighbour:
    """A sample above the training image nearest to it, and how far apart they are."""

    png: Png
    distance: float


def draw_grid(images: np.ndarray, title: str) -> Png:
    """The first samples (B, H, W, C) in the order they were drawn, row by row. None is picked by hand."""
    size, width = images[0].size, images.shape[2] + 1
    least = -(-_LEAST // width) * width
    columns = max(1, min(_COLUMNS, ROOM // least))
    rows = max(1, min(_SHOWN, _BYTES // size) // columns)
    first = images[: rows * columns]
    return encode(tile(first, min(columns, len(first))), f"{len(first)} samples of {title}")


def draw_pairs(x1: np.ndarray, between: np.ndarray, x0: np.ndarray, coupling: str) -> Pairs:
    """Rows x1 (B, H, W, C), states between (B, S, H, W, C), x0: times fall evenly from t = 1 to t = 0."""
    states = np.concatenate([x1[:, None], between, x0[:, None]], axis=1)
    times = np.linspace(1, 0, states.shape[1]).tolist()
    listed = ", ".join(f"{time:.3g}" for time in times[1:-1])
    alt = f"{len(x1)} pairs of {coupling}, one a row: data x1, states at t = {listed}, source x0"
    return Pairs(encode(tile(states.reshape(-1, *x1.shape[1:]), states.shape[1]), alt), times)


def draw_states(states: np.ndarray, title: str) -> Png:
    """States (S, H, W, C) of one image side by side."""
    return encode(tile(states, len(states)), f"{len(states)} states of a training image, {title}")


def draw_neighbours(samples: np.ndarray, nearest: np.ndarray, distances: np.ndarray) -> list[Neighbour]:
    """Each sample (B, H, W, C) above its nearest training image; distances (B,)."""
    factor = enlarge(_STRIP, samples.shape[2] + 2)
    alt = "A sample above the training image nearest to it, at {:,.0f}"
    return [
        Neighbour(encode(tile(np.stack(both), 1), alt.format(distance), factor), float(distance))
        for *both, distance in zip(samples, nearest, distances, strict=True)
    ]
