"""Images for `sample --count`: one picture of all of them, or an array."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from pairflow.config import DemandSettings
from pairflow.data.delivery import Lines, Rows
from pairflow.errors import InputError
from pairflow.kinds.images.prepare import to_images
from pairflow.pixels import ROOM, enlarge, tile
from pairflow.training.model import DiscreteModel

MOST_PICTURED = 10_000  # images in one picture


class ImageDelivery(Lines):
    """Delivers the images that a model samples. Their text is the tokens in hexadecimal digits."""

    noun = "images"

    def __init__(self, model: DiscreteModel, settings: DemandSettings):
        super().__init__(settings.unique)
        if model.shape is None:
            found = "expected the shape C, H, W of images, found none"
            raise InputError(f"{model.folder / 'model.json'}: {found}")
        channels, height, width = model.shape
        self.shape, self.levels, self.count = (channels, height, width), model.vocabulary_size, settings.count

    def decode(self, tokens: list[int]) -> str:
        return bytes(tokens).hex()

    def decode_all(self, tokens: np.ndarray) -> np.ndarray:
        """Return images (M, H, W, C) uint8."""
        return to_images(tokens, self.shape, self.levels)

    def writer(self, out: Path) -> Callable[[Path, Rows], None]:
        if out.suffix == ".npy":
            return self._write_array
        if out.suffix != ".png":
            raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .png or .npy for images")
        if self.count > MOST_PICTURED:
            raise InputError(f"{out}: a picture has at most {MOST_PICTURED:,} images; write a .npy file")
        return self._write_picture

    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, object]]:
        return lambda text: {"tokens": text}

    def _images(self, rows: Rows) -> np.ndarray:
        """Return the images, uint8 (B, H, W, C)."""
        tokens = np.frombuffer(bytes.fromhex("".join(row["tokens"] for row in rows)), np.uint8)
        return to_images(tokens.reshape(len(rows), -1), self.shape, self.levels)

    def _write_array(self, path: Path, rows: Rows) -> None:
        with path.open("wb") as file:
            np.save(file, self._images(rows), allow_pickle=False)

    def _write_picture(self, path: Path, rows: Rows) -> None:
        """Write all images into one PNG file, row by row in a square grid, small ones enlarged by a whole
        factor."""
        pixels = tile(self._images(rows), math.ceil(math.sqrt(len(rows))))
        factor = enlarge(ROOM, pixels.shape[1])
        pixels = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
        picture = Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels)
        picture.save(path, "png", optimize=True)
