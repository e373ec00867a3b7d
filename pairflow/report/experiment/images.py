"""Images on the page: PNGs of real pixels, which the browser enlarges by whole factors, unsmoothed."""

import base64
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image

_SHOWN = 64  # images of a grid, if they are small
_BYTES = 2**18  # most raw pixels of a grid
_COLUMNS = 8
_ROOM = 365  # CSS pixels that a picture may fill: three in a row on a desk, one on a telephone
_LEAST = 40  # CSS pixels of an image in a grid
_STRIP = 90  # CSS pixels of an image in a row of neighbours
_LARGEST = 8  # factor
_GREY = 128  # between images: neither black nor white, on a light page and on a dark one


@dataclass(frozen=True)
class Png:
    """A PNG as a data URI, its width in pixels, and the whole factor that it is shown at."""

    uri: str
    width: int
    factor: int
    alt: str


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
    columns = max(1, min(_COLUMNS, _ROOM // least))
    rows = max(1, min(_SHOWN, _BYTES // size) // columns)
    first = images[: rows * columns]
    return _png(_tile(first, min(columns, len(first))), f"{len(first)} samples of {title}")


def draw_pairs(x1: np.ndarray, between: np.ndarray, x0: np.ndarray, coupling: str) -> Pairs:
    """Rows x1 (B, H, W, C), states between (B, S, H, W, C), x0: times fall evenly from t = 1 to t = 0."""
    states = np.concatenate([x1[:, None], between, x0[:, None]], axis=1)
    times = np.linspace(1, 0, states.shape[1]).tolist()
    listed = ", ".join(f"{time:.3g}" for time in times[1:-1])
    alt = f"{len(x1)} pairs of {coupling}, one a row: data x1, states at t = {listed}, source x0"
    return Pairs(_png(_tile(states.reshape(-1, *x1.shape[1:]), states.shape[1]), alt), times)


def draw_neighbours(samples: np.ndarray, nearest: np.ndarray, distances: np.ndarray) -> list[Neighbour]:
    """Each sample (B, H, W, C) above its nearest training image; distances (B,)."""
    factor = _factor(_STRIP, samples.shape[2] + 2)
    alt = "A sample above the training image nearest to it, at {:,.0f}"
    return [
        Neighbour(_png(_tile(np.stack(both), 1), alt.format(distance), factor), float(distance))
        for *both, distance in zip(samples, nearest, distances, strict=True)
    ]


def _tile(images: np.ndarray, columns: int) -> np.ndarray:
    """(B, H, W, C) uint8 -> one image (rows (H+1) + 1, columns (W+1) + 1, C), a grey pixel around each."""
    count, height, width, channels = images.shape
    rows = -(-count // columns)
    tiles = np.full((rows * columns, height + 1, width + 1, channels), _GREY, np.uint8)
    tiles[:count, 1:, 1:] = images
    tiles = tiles.reshape(rows, columns, height + 1, width + 1, channels).swapaxes(1, 2)
    whole = tiles.reshape(rows * (height + 1), columns * (width + 1), channels)
    return np.pad(whole, ((0, 1), (0, 1), (0, 0)), constant_values=_GREY)


def _png(pixels: np.ndarray, alt: str, factor: int | None = None) -> Png:
    """`pixels` (H, W, C), grey (C = 1) or RGB."""
    buffer = BytesIO()
    Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).save(buffer, "png", optimize=True)
    uri = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    width = pixels.shape[1]
    return Png(uri, width, factor or _factor(_ROOM, width), alt)


def _factor(room: int, width: int) -> int:
    return max(1, min(_LARGEST, room // width))
