"""Sources of vectors for continuous flows: two moons in d dimensions, drawn at random, and a user's file.

Two moons are two half-circles, as in scikit-learn's make_moons, each with half of the points:

    (cos a, sin a)   and   (1 - cos a, 1/2 - sin a),   a uniform in [0, pi],

plus normal noise. In d dimensions there are d / 2 independent pairs of such coordinates.
"""

from dataclasses import dataclass

import numpy as np

from pairflow.arrays import checked_points
from pairflow.artifacts import read_array
from pairflow.data.prepared import PreparedRows
from pairflow.data.source import DatasetSize, DataSource, RowFile
from pairflow.errors import InputError
from pairflow.files import require_regular
from pairflow.kinds.vectors.settings import Vectors

TRAINING_ROWS, VALIDATION_ROWS, NOISE = 50_000, 5_000, 0.05  # defaults of two moons


def two_moons(rows: int, dims: int, noise: float, generator: np.random.Generator) -> np.ndarray:
    """Draw points (rows, d) float32, in which each of the d / 2 pairs of coordinates follows two moons.
    `noise` is the standard deviation of normal noise on each coordinate."""
    angle = generator.uniform(0, np.pi, (rows, dims // 2))
    lower = generator.random((rows, dims // 2)) < 0.5
    x = np.where(lower, 1 - np.cos(angle), np.cos(angle))
    y = np.where(lower, 0.5 - np.sin(angle), np.sin(angle))
    points = np.stack([x, y], axis=-1).reshape(rows, dims)
    return (points + noise * generator.standard_normal(points.shape)).astype(np.float32)


@dataclass(frozen=True)
class TwoMoons(DataSource):
    """Points (rows, dims) on two moons, drawn at random; equal settings give equal points."""

    name: str

    def read(self, settings: Vectors) -> PreparedRows:
        size, noise = self.measure(settings), NOISE if settings.noise is None else settings.noise
        generator = np.random.default_rng(settings.split_seed)
        points = two_moons(size.total, size.length, noise, generator)
        return PreparedRows("vectors", points[: size.rows], points[size.rows :])

    def measure(self, settings: Vectors) -> DatasetSize:
        assert settings.dims is not None
        rows, held_out = settings.training_rows or TRAINING_ROWS, settings.validation_rows or VALIDATION_ROWS
        return DatasetSize(rows, held_out, 0, settings.dims)

    def guess(self, settings: Vectors) -> DatasetSize:
        return self.measure(settings)


@dataclass(frozen=True)
class VectorFile(RowFile):
    """A user's .npy file of vectors."""

    def read(self, settings: Vectors) -> PreparedRows:
        """Read the vectors, and split them at random into training and held-out ones. Raises InputError if
        the file is not an .npy file of vectors (rows, d), or has too few."""
        if self.path.suffix.lower() != ".npy":
            raise InputError(f"{self.path}: unknown suffix {self.path.suffix!r}; expected vectors in .npy")
        require_regular(self.path)
        vectors = checked_points(read_array(self.path), str(self.path)).astype(np.float32)
        if vectors.ndim != 2:
            raise InputError(f"{self.path}: expected an array (rows, d), found shape {vectors.shape}")
        order = np.random.default_rng(settings.split_seed).permutation(len(vectors))
        held_out = settings.validation_rows or -(-len(vectors) // 10)
        rows = settings.training_rows or max(1, len(vectors) - held_out)
        if held_out + rows > len(vectors):
            parts = f"{rows:,} for training and {held_out:,} that are held out"
            raise InputError(
                f"{self.path}: expected at least {held_out + rows:,} vectors, {parts}; found {len(vectors):,}"
            )
        validation, train = (np.sort(part) for part in (order[:held_out], order[held_out : held_out + rows]))
        return PreparedRows("vectors", vectors[train], vectors[validation])
