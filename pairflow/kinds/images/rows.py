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
from pairflow.kinds.images.extractors import BATCH, Extractor
from pairflow.kinds.images.prepare import to_images
from pairflow.metrics.frechet import Moments
from pairflow.runtime.progress import bar


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
    """Yield (row numbers, features (b, D), class probabilities or None) for each batch of the images with
    numbers `rows`."""
    with bar(total=len(rows), unit="image", quiet=not progress) as extracted:
        for first in range(0, len(rows), BATCH):
            part = rows[first : first + BATCH]
            yield part, *extractor(images[part])
            extracted.update(len(part))


def halves(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows 0..count-1 into two random halves, always the same: one to draw from, one held out."""
    order = rng.random_order(rng.stream_seed("halves"), count)
    return order[: count // 2], order[count // 2 :]


@dataclass(frozen=True)
class ReferenceStatistics:
    """Statistics of the features of real images, with which samples are compared.

    `whole` and `held` are the moments (count, mean, scatter) of all images, and of the half of them that is
    held out for the floor (see `halves`). `features` (M, D) are the features of all images, empty unless the
    extractor has `all_rows`.
    """

    whole: Moments
    held: Moments
    features: np.ndarray
    metadata: Metadata

    def table(self) -> pa.Table:
        """Make a table with a row per feature: its mean, its covariances, and perhaps its values."""
        values = {"features": row_column(self.features.T)} if len(self.features) else {}
        return pa.table({**self.whole.columns(), **self.held.columns("held_"), **values})

    @classmethod
    def read(cls, path: Path, images: ImageRows, extractor: Extractor) -> "ReferenceStatistics":
        """Read the statistics in the file `path`. Raises InputError unless they are of `images` and by
        `extractor`."""
        table, metadata = read_table(path, "reference")
        facts = metadata.parameters
        if facts["extractor"] != extractor.name:
            raise InputError(f"{path}: made by the extractor {facts['extractor']}, expected {extractor.name}")
        if metadata.inputs.get("tokens") != digest(images.path):
            raise InputError(f"{path}: was made from a file other than {images.path}")
        if (count := facts["count"]) != images.originals:
            raise InputError(f"{path}: expected statistics of {images.originals} images, found {count}")
        whole = Moments.from_columns(table, count)
        held = Moments.from_columns(table, len(halves(count)[1]), "held_")
        if extractor.all_rows and "features" not in table.column_names:
            raise InputError(f"{path}: no column 'features', which statistics by {extractor.name} have")
        values = token_array(table["features"]) if extractor.all_rows else np.empty((0, 0))
        return cls(whole, held, np.ascontiguousarray(values.T), metadata)


def measure_statistics(extractor: Extractor, images: ImageRows, progress: bool) -> ReferenceStatistics:
    """Compute the statistics of the features of `images`, without mirror images, in one pass. Raises
    InputError for fewer than 4 images."""
    count = images.originals
    if count < 4:
        raise InputError(f"{images.path}: expected at least 4 images, found {count}")
    is_held = np.isin(np.arange(count), halves(count)[1])
    rest = held = Moments.from_features(np.empty((0, extractor.dimension)))
    features = [np.empty((0, extractor.dimension), np.float32)]
    for rows, batch, _ in extract(extractor, images, np.arange(count), progress):
        rest += Moments.from_features(batch[~is_held[rows]])
        held += Moments.from_features(batch[is_held[rows]])
        features += [batch] if extractor.all_rows else []
    facts = {"extractor": extractor.name, "dimension": extractor.dimension, "count": count}
    same = ("length", "vocabulary_size", "vocabulary", "shape")
    metadata = Metadata(
        kind="reference",
        parameters=facts,
        inputs={"tokens": digest(images.path)},
        **{key: getattr(images.metadata, key) for key in same},
    )
    return ReferenceStatistics(rest + held, held, np.concatenate(features), metadata)
