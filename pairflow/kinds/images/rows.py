"""Rows of tokens as images, the features of images, and statistics of the features of real images."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow import rng
from pairflow.artifacts import Metadata, digest, read_table, row_column, token_array
from pairflow.errors import InputError
from pairflow.kinds.images.extractors import Extractor
from pairflow.kinds.images.measures import mean_kernel
from pairflow.kinds.images.prepare import to_images
from pairflow.metrics.frechet import Moments
from pairflow.runtime.progress import bar

KERNEL_ROWS = 5000  # the kernel distance uses at most this number of real images


@dataclass(frozen=True)
class ImageRows:
    """Rows of tokens (M, N) that are images, with the path and metadata of their file."""

    path: Path
    tokens: np.ndarray
    metadata: Metadata

    def __post_init__(self) -> None:
        if self.metadata.shape is None:
            raise InputError(f"{self.path}: holds no images; its metadata have no shape")

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows as images, uint8 (B, H, W, C)."""
        return self.draw(self.tokens[rows])

    def draw(self, tokens: np.ndarray) -> np.ndarray:
        """Turn rows (B, N) of other data with the same shape and levels into images, uint8 (B, H, W, C)."""
        assert self.metadata.shape is not None
        channels, height, width = self.metadata.shape
        return to_images(tokens, (channels, height, width), self.levels)

    @property
    def originals(self) -> int:
        """The number of rows that are not mirror images. Mirror images are the last half of the rows."""
        flipped = self.metadata.split == "train" and self.metadata.parameters.get("flips")
        return len(self.tokens) // (2 if flipped else 1)

    @cached_property
    def values(self) -> np.ndarray:
        """Integers (M, N) that give pixel values (0 to 255) if they are multiplied by `unit`. If grey levels
        are evenly spaced, these are the tokens."""
        return self[:].reshape(len(self.tokens), -1) if 255 % (self.levels - 1) else self.tokens

    @property
    def unit(self) -> int:
        return 1 if 255 % (self.levels - 1) else 255 // (self.levels - 1)

    @property
    def levels(self) -> int:
        return self.metadata.dimensions[1]


def read_images(path: Path, kind: str = "tokens") -> ImageRows:
    """Read a file of token rows that are images."""
    table, metadata = read_table(path, kind)
    return ImageRows(path, token_array(table["tokens"]), metadata)


def extract(
    extractor: Extractor, images: ImageRows, rows: np.ndarray, progress: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Yield for each batch of `rows` their numbers, features (b, D), and class probabilities or None."""
    with bar(total=len(rows), unit="image", quiet=not progress) as extracted:
        for first in range(0, len(rows), extractor.batch):
            part = rows[first : first + extractor.batch]
            yield part, *extractor(images[part])
            extracted.update(len(part))


def halves(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows 0..count-1 into two random halves, always the same: one to draw from, one held out."""
    order = rng.random_order(rng.stream_seed("halves"), count)
    return order[: count // 2], order[count // 2 :]


@dataclass(frozen=True)
class ReferenceStatistics:
    """Statistics of the features of real images, with which samples are compared.

    `whole` and `held` are the moments of all images and of the held-out half (see `halves`). `features`
    (n, D) are the features of the images with the numbers `rows` (n,).
    """

    whole: Moments
    held: Moments
    rows: np.ndarray
    features: np.ndarray
    metadata: Metadata

    @cached_property
    def kernel(self) -> tuple[np.ndarray, float]:
        """What the kernel distance needs of the real images: their features (n, D), and the mean of the
        kernel over pairs of them."""
        return self._kernel(kernel_rows(self.whole.count))

    @cached_property
    def held_kernel(self) -> tuple[np.ndarray, float]:
        """The same as `kernel`, of images in the held-out half only."""
        return self._kernel(np.intersect1d(kernel_rows(self.whole.count), halves(self.whole.count)[1]))

    def _kernel(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        features = self.features[np.isin(self.rows, rows)]
        return features, mean_kernel(features)

    def table(self) -> pa.Table:
        """Make a table with a row per feature: its mean, its covariances, and its values on images `rows`."""
        columns = {**self.whole.columns(), **self.held.columns("held_")}
        return pa.table({**columns, "features": row_column(self.features.T)})

    @classmethod
    def read(cls, path: Path, images: ImageRows, extractor: Extractor) -> "ReferenceStatistics":
        """Read a file. Raises InputError unless it has statistics of these images by this extractor."""
        table, metadata = read_table(path, "reference")
        facts = metadata.parameters
        if facts["extractor"] != extractor.name:
            raise InputError(f"{path}: made by the extractor {facts['extractor']}, expected {extractor.name}")
        if metadata.inputs.get("tokens") != digest(images.path):
            raise InputError(f"{path}: was made from a file other than {images.path}")
        count, kept = facts["count"], facts["kept"]
        if count != images.originals or kept > count:
            part = f"{kept} of {count}"
            raise InputError(f"{path}: expected statistics of {images.originals} images, found {part}")
        whole = Moments.from_columns(table, count)
        held = Moments.from_columns(table, len(halves(count)[1]), "held_")
        features = np.ascontiguousarray(token_array(table["features"]).T)
        return cls(whole, held, _stored_rows(count, kept), features, metadata)


def kernel_rows(count: int) -> np.ndarray:
    """Return the rows of `count` that the kernel distance uses: at most KERNEL_ROWS, held-out rows first."""
    return np.concatenate(halves(count)[::-1])[:KERNEL_ROWS]


def measure_statistics(extractor: Extractor, images: ImageRows, progress: bool) -> ReferenceStatistics:
    """Compute the statistics of `images`, without mirror images, in one pass.

    The features of KERNEL_ROWS images are stored, or of all if the extractor has `all_rows`. Raises
    InputError for fewer than 4 images.
    """
    count = images.originals
    if count < 4:
        raise InputError(f"{images.path}: expected at least 4 images, found {count}")
    stored = _stored_rows(count, count if extractor.all_rows else min(count, KERNEL_ROWS))
    is_stored, is_held = (np.isin(np.arange(count), rows) for rows in (stored, halves(count)[1]))
    rest = held = Moments.from_features(np.empty((0, extractor.dimension)))
    features = []
    for rows, batch, _ in extract(extractor, images, np.arange(count), progress):
        rest += Moments.from_features(batch[~is_held[rows]])
        held += Moments.from_features(batch[is_held[rows]])
        features.append(batch[is_stored[rows]])
    facts = {"extractor": extractor.name, "dimension": extractor.dimension, "count": count}
    same = ("length", "vocabulary_size", "vocabulary", "shape")
    metadata = Metadata(
        kind="reference",
        parameters={**facts, "kept": len(stored)},
        inputs={"tokens": digest(images.path)},
        **{key: getattr(images.metadata, key) for key in same},
    )
    return ReferenceStatistics(rest + held, held, stored, np.concatenate(features), metadata)


def _stored_rows(count: int, stored: int) -> np.ndarray:
    return np.arange(count) if stored == count else np.sort(kernel_rows(count)[:stored])
