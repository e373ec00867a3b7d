"""Puts images on a page: PNGs whose pixels the browser enlarges by whole factors, without smoothing."""

import base64
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image

ROOM = 365  # CSS pixels for the width of a picture: three fit in a row on a desktop, one on a telephone
_LARGEST = 8  # factor
_GREY = 128  # between images: visible on light and on dark pages


@dataclass(frozen=True)
class Png:
    """A PNG as a data URI, its width, the factor by which the page enlarges it, and its text alternative."""

    uri: str
    width: int
    factor: int
    alt: str

    @property
    def pixels(self) -> np.ndarray:
        """The pixels (H, W, C) or (H, W), enlarged as on the page."""
        with Image.open(BytesIO(base64.b64decode(self.uri.partition(",")[2]))) as image:
            return np.asarray(image).repeat(self.factor, axis=0).repeat(self.factor, axis=1)


def tile(images: np.ndarray, columns: int) -> np.ndarray:
    """Join images (B, H, W, C) uint8 in a grid: (rows (H+1) + 1, columns (W+1) + 1, C), with grey lines."""
    count, height, width, channels = images.shape
    rows = -(-count // columns)
    tiles = np.full((rows * columns, height + 1, width + 1, channels), _GREY, np.uint8)
    tiles[:count, 1:, 1:] = images
    tiles = tiles.reshape(rows, columns, height + 1, width + 1, channels).swapaxes(1, 2)
    whole = tiles.reshape(rows * (height + 1), columns * (width + 1), channels)
    return np.pad(whole, ((0, 1), (0, 1), (0, 0)), constant_values=_GREY)


def encode(pixels: np.ndarray, alt: str, factor: int | None = None) -> Png:
    """Encode `pixels` (H, W, C) uint8, grey (C = 1) or RGB, as a PNG with the text alternative `alt`. The
    page enlarges it by `factor` (None: as its width allows)."""
    buffer = BytesIO()
    Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).save(buffer, "png", optimize=True)
    uri = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    width = pixels.shape[1]
    return Png(uri, width, factor or enlarge(ROOM, width), alt)


def enlarge(room: int, width: int) -> int:
    return max(1, min(_LARGEST, room // width))
