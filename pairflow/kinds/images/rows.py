"""What the steps on images share: token rows as images, features in batches, metric rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Metadata, read_table, token_array
from pairflow.errors import InputError
from pairflow.kinds.images.extractors import Extractor
from pairflow.kinds.images.prepare import to_images
from pairflow.runtime.progress import bar


@dataclass(frozen=True)
class ImageRows:
    """Token rows (M, N) of images, and their labels (M,) if every row has one."""

    path: Path
    tokens: np.ndarray
    metadata: Metadata
    labels: np.ndarray | None = None

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Images uint8 (B, H, W, C)."""
        return self.draw(self.tokens[rows])

    def draw(self, tokens: np.ndarray) -> np.ndarray:
        """Further token rows (B, N) as such images."""
        assert self.metadata.shape is not None  # `read_images` refuses rows without a shape
        channels, height, width = self.metadata.shape
        return to_images(tokens, (channels, height, width), self.levels)

    @property
    def originals(self) -> int:
        """The number of rows that are not mirror images; those stand last, as many again."""
        return len(self.tokens) // (2 if self.metadata.parameters.get("flips") else 1)

    @cached_property
    def values(self) -> np.ndarray:
        """Integers (M, N) that make pixel values when multiplied by `unit`."""
        equidistant = 255 % (self.levels - 1) == 0
        return self.tokens if equidistant else self[:].reshape(len(self.tokens), -1)

    @property
    def unit(self) -> int:
        return 255 // (self.levels - 1) if 255 % (self.levels - 1) == 0 else 1

    @property
    def levels(self) -> int:
        assert self.metadata.vocabulary_size is not None
        return self.metadata.vocabulary_size

    def require_like(self, test: "ImageRows") -> None:
        """InputError unless these are the training images of a data set, and `test` its held-out ones."""
        self.metadata.require_same_vocabulary(test.metadata.vocabulary, self.path, test.path)
        self.metadata.require_same_data(test.metadata.data, self.path, test.path)
        if self.metadata.shape != test.metadata.shape:
            sizes = f"{self.metadata.shape} against {test.metadata.shape}"
            raise InputError(f"{self.path} and {test.path} hold images of different sizes: {sizes}")
        self.metadata.require_split("train", self.path)
        test.metadata.require_split("validation", test.path)


def read_images(path: Path, kind: str = "tokens", count: int | None = None) -> ImageRows:
    """Read token rows of images, with their labels; only the first `count` if it is given."""
    table, metadata = read_table(path, kind)
    table = table.slice(0, count)
    if metadata.shape is None:
        raise InputError(f"{path}: holds no images; its metadata name no shape")
    labels = None
    if "label" in table.column_names and not table["label"].null_count:
        labels = table["label"].to_numpy().astype(np.int64)
    return ImageRows(path, token_array(table["tokens"]), metadata, labels)


def read_samples(path: Path, real: ImageRows) -> tuple[ImageRows, Any]:
    """Samples of a model that was trained on the `real` images, and their whole table."""
    table, metadata = read_table(path, "samples")
    metadata.require_same_vocabulary(real.metadata.vocabulary, path, real.path)
    metadata.require_same_data(real.metadata.data, path, real.path)
    tokens = token_array(table["tokens"])
    expected, levels = real.tokens.shape[1], real.levels
    if tokens.shape[1] != expected:
        raise InputError(
            f"{path}: expected rows of {expected} tokens as in {real.path}, found {tokens.shape[1]}"
        )
    if tokens.max(initial=0) >= levels:
        raise InputError(f"{path}: token {tokens.max()} is not one of the {levels} levels of a pixel")
    return ImageRows(path, tokens, replace(metadata, shape=real.metadata.shape)), table


def extract(
    extractor: Extractor, images: ImageRows, rows: np.ndarray, progress: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """(rows, features, class probabilities or None) of one batch after the other."""
    with bar(total=len(rows), unit="image", quiet=not progress) as extracted:
        for first in range(0, len(rows), extractor.batch):
            part = rows[first : first + extractor.batch]
            yield part, *extractor(images[part])
            extracted.update(len(part))
