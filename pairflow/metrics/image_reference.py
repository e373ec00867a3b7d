"""Statistics of real images, as the step `reference` writes them: what samples are compared with."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow import rng
from pairflow.artifacts import Metadata, digest, read_table, token_array, write_table
from pairflow.config import ExtractorSettings
from pairflow.errors import InputError
from pairflow.metrics import extractors
from pairflow.metrics.extractors import Extractor
from pairflow.metrics.image_rows import Images, extract, read_images
from pairflow.metrics.images import Moments, RealImages, mean_kernel

KERNEL_ROWS = 5000  # real images at most whose features the kernel distance sees


def halves(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two random halves of the rows 0..count-1: one to draw from, one held against it. Always the same."""
    order = rng.random_order(rng.stream_seed("halves"), count)
    return order[: count // 2], order[count // 2 :]


@dataclass(frozen=True)
class Reference:
    """Moments of a set of real images and of its held half, features of some rows, (n, D)."""

    whole: Moments
    held: Moments
    rows: np.ndarray
    features: np.ndarray
    metadata: Metadata

    @cached_property
    def kernel(self) -> tuple[np.ndarray, float]:
        """Features (n, D) for the kernel distance, and their mean kernel."""
        return self._kernel(kernel_rows(self.whole.count))

    @cached_property
    def held_kernel(self) -> tuple[np.ndarray, float]:
        """The same, of the held half alone."""
        return self._kernel(np.intersect1d(kernel_rows(self.whole.count), halves(self.whole.count)[1]))

    def _kernel(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        features = self.features[np.isin(self.rows, rows)]
        return features, mean_kernel(features)

    def write(self, path: Path) -> None:
        """A row per feature: its mean, its covariances, and its values on the kept images."""
        columns = {}
        for name, moments in {"": self.whole, "held_": self.held}.items():
            columns[f"{name}mean"] = pa.array(moments.mean)
            columns[f"{name}covariance"] = _column(moments.covariance)
        write_table(path, pa.table({**columns, "features": _column(self.features.T)}), self.metadata)

    @classmethod
    def read(cls, path: Path, images: Images, extractor: Extractor) -> "Reference":
        """InputError unless it is of these images by this extractor."""
        table, metadata = read_table(path, "reference")
        facts = metadata.parameters
        if facts["extractor"] != extractor.name:
            raise InputError(f"{path}: made by the extractor {facts['extractor']}, expected {extractor.name}")
        if metadata.inputs["tokens"] != digest(images.path):
            raise InputError(f"{path}: made of another file than {images.path}")
        counts = {"": facts["count"], "held_": len(halves(facts["count"])[1])}
        whole, held = (
            Moments(
                count,
                table[f"{name}mean"].to_numpy(),
                token_array(table[f"{name}covariance"]) * (count - 1),
            )
            for name, count in counts.items()
        )
        features = np.ascontiguousarray(token_array(table["features"]).T)
        return cls(whole, held, _kept(facts["count"], facts["kept"]), features, metadata)


@dataclass(frozen=True)
class Compared:
    """Real images, the extractor that compares by their features, and their statistics by `train`, `test`."""

    train: Images
    test: Images
    extractor: Extractor
    references: dict[str, Reference]

    @classmethod
    def read(cls, real: RealImages, settings: ExtractorSettings, where) -> "Compared":
        """InputError unless all of it belongs together. `where` is the extractor's device."""
        train, test = read_images(real.tokens), read_images(real.validation)
        train.require_like(test)
        extractor = extractors.load(settings, real.classifier, where)
        references = {
            "train": Reference.read(real.train_reference, train, extractor),
            "test": Reference.read(real.test_reference, test, extractor),
        }
        return cls(train, test, extractor, references)

    @property
    def inputs(self) -> dict[str, str]:
        return {"tokens": digest(self.train.path), "validation": digest(self.test.path)}


def kernel_rows(count: int) -> np.ndarray:
    """The rows of a set of real images whose features the kernel distance sees: of the held half first."""
    return np.concatenate(halves(count)[::-1])[:KERNEL_ROWS]


def measure(extractor: Extractor, images: Images, progress: bool) -> Reference:
    """Of all originals among `images`, in one pass.

    The features of `KERNEL_ROWS` of them are kept, or of all where the extractor compares by cosine, too.
    """
    count = images.originals
    if count < 4:
        raise InputError(f"{images.path}: expected at least 4 images, found {count}")
    kept = _kept(count, count if extractor.all_rows else min(count, KERNEL_ROWS))
    is_kept, is_held = (np.isin(np.arange(count), rows) for rows in (kept, halves(count)[1]))
    rest = held = Moments.of(np.empty((0, extractor.dimension)))
    features = []
    for rows, found, _ in extract(extractor, images, np.arange(count), progress):
        rest += Moments.of(found[~is_held[rows]])
        held += Moments.of(found[is_held[rows]])
        features.append(found[is_kept[rows]])
    facts = {"extractor": extractor.name, "dimension": extractor.dimension, "count": count, "kept": len(kept)}
    made = Metadata(
        kind="reference",
        length=images.metadata.length,
        vocabulary_size=images.metadata.vocabulary_size,
        vocabulary=images.metadata.vocabulary,
        shape=images.metadata.shape,
        parameters=facts,
        inputs={"tokens": digest(images.path)},
    )
    return Reference(rest + held, held, kept, np.concatenate(features), made)


def _kept(count: int, kept: int) -> np.ndarray:
    return np.arange(count) if kept == count else np.sort(kernel_rows(count)[:kept])


def _column(rows: np.ndarray) -> pa.FixedSizeListArray:
    flat = np.ascontiguousarray(rows).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), rows.shape[1])
