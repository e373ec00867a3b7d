"""Turns images into rows of tokens, and rows back into images.

A data set has a shape (C, H, W) and K grey levels, where K divides 256. A row of tokens holds N = C H W
pixels in channel-height-width order, and

    token = value // (256 / K)        value = token * 255 // (K - 1)

So black is 0 and white is 255 at every K, K = 256 leaves values unchanged, and tokens that are turned into
an image and back do not change.
"""

import hashlib
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import token_dtype
from pairflow.data import prepared
from pairflow.data.split import split_rows
from pairflow.files import escaped
from pairflow.kinds.images.settings import Images

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class RawImages:
    """Images (M, H, W, C) uint8, labels (M,) if there are any, and the rows of a given test set.

    `partial` is a sentence on missing images, if the local copy of a published data set is not complete.
    `notes` are further sentences for the user.
    """

    images: np.ndarray
    labels: np.ndarray | None = None
    test_rows: Sequence[int] | None = None
    partial: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of pixels and labels, which does not depend on the format of the files."""
        content = hashlib.sha256(np.ascontiguousarray(self.images).data)
        if self.labels is not None:
            content.update(self.labels.astype("<i4").data)
        return content.hexdigest()


def to_tokens(images: np.ndarray, levels: int) -> np.ndarray:
    """Turn images (B, H, W, C) uint8 into token rows (B, N) of the smallest dtype that holds `levels`, K."""
    planes = np.moveaxis(images // np.uint8(256 // levels) if levels < 256 else images, 3, 1)
    return np.ascontiguousarray(planes, token_dtype(levels)).reshape(len(images), math.prod(planes.shape[1:]))


def to_images(tokens: np.ndarray, shape: Shape, levels: int) -> np.ndarray:
    """Turn token rows (B, N) into images (B, H, W, C) uint8, which `to_tokens` turns into the same rows."""
    channels, height, width = shape
    values = np.arange(levels) * 255 // (levels - 1)
    planes = values.astype(np.uint8)[tokens].reshape(-1, channels, height, width)
    return np.ascontiguousarray(np.moveaxis(planes, 1, 3))


def contract(shape: Shape, levels: int) -> str:
    """Return the content of vocabulary.json: shape and levels, in which rows and models must agree."""
    return prepared.contract(kind="image", shape=[*map(int, shape)], levels=int(levels))


@dataclass(frozen=True)
class PreparedImages:
    """A data set of images, ready for pairing and training.

    `train` (M, N) and `test` (V, N) are token rows in the order of the data; with `flips`, mirror images are
    the last half of `train`. Labels are (M,) and (V,), or None. `source` is the digest of the raw images.
    `partial` says which images a local copy lacks, and `notes` are further sentences for the user.
    """

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray | None
    test_labels: np.ndarray | None
    shape: Shape
    levels: int
    source: str
    partial: str | None
    notes: tuple[str, ...] = ()


def prepare(raw: RawImages, levels: int, settings: Images) -> PreparedImages:
    """Split images into training and test rows of K = `levels` grey levels, with mirror images if the
    settings ask for them.

    The test rows are the given test set, or a random share if there is none. Raises InputError for fewer rows
    than `training_rows`.
    """
    options = settings.model_dump(include={"training_rows", "validation_fraction", "split_seed"})
    split = split_rows(range(len(raw.images)), validation_rows=raw.test_rows, **options)
    parts = split == "train", split == "validation"
    train, test = (raw.images[part] for part in parts)
    train_labels, test_labels = (None if raw.labels is None else raw.labels[part] for part in parts)
    if settings.flips:
        train = np.concatenate([train, train[:, :, ::-1]])
        train_labels = None if train_labels is None else np.tile(train_labels, 2)
    height, width, channels = raw.images.shape[1:]
    return PreparedImages(
        *(to_tokens(train, levels), to_tokens(test, levels), train_labels, test_labels),
        shape=(channels, height, width),
        levels=levels,
        source=raw.digest,
        partial=raw.partial,
        notes=raw.notes,
    )


def store(images: PreparedImages, settings: Images, files: Mapping[str, Path]) -> None:
    """Write the token rows and labels of images, and vocabulary.json, into `files` (paths by name without
    suffix). Prints the notes of `images` on stderr."""
    for note in filter(None, (images.partial, *images.notes)):
        print(f"pairflow preprocess: note: {escaped(note)}", file=sys.stderr)
    parts = {"train": images.train, "validation": images.test}
    labels = {"train": images.train_labels, "validation": images.test_labels}
    if images.train_labels is None:
        labels = {split: pa.nulls(len(rows), pa.int32()) for split, rows in parts.items()}
    prepared.write_prepared(
        files,
        parts,
        contract(images.shape, images.levels),
        images.levels,
        {**settings.model_dump(mode="json"), "partial": images.partial},
        {"source": images.source},
        labels=labels,
        own=settings.folder is not None,
        shape=list(images.shape),
    )
