"""The Fréchet distance between two sets of features, of images or molecules, and their moments.

See docs/method.md, "Distances between images".
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from pairflow.artifacts import row_column, token_array


@dataclass(frozen=True)
class Moments:
    """The moments of a set of features f (D,): their count, mean (D,) and scatter (D, D), in float64.

    The scatter is the sum of (f - mean)(f - mean)^T. The sum `a + b` of two moments is the moments of all
    their features (Chan et al. 1983).
    """

    count: int
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def from_features(cls, features: ArrayLike) -> "Moments":
        """Return the moments of the rows of `features` (n, D); n may be 0."""
        features = np.asarray(features, dtype=np.float64)
        if not len(features):
            return cls(0, np.zeros(features.shape[1]), np.zeros((features.shape[1],) * 2))
        mean = features.mean(axis=0)
        centred = features - mean
        return cls(len(features), mean, centred.T @ centred)

    @classmethod
    def from_columns(cls, table: pa.Table, count: int, prefix: str = "") -> "Moments":
        """Return the moments of `count` features, from a table with the columns that `columns` returned."""
        covariance = token_array(table[f"{prefix}covariance"])
        return cls(count, table[f"{prefix}mean"].to_numpy(), covariance * (count - 1))

    def columns(self, prefix: str = "") -> dict[str, pa.Array]:
        """Return columns of a table with D rows: the mean and the covariances."""
        return {f"{prefix}mean": pa.array(self.mean), f"{prefix}covariance": row_column(self.covariance)}

    def __add__(self, other: "Moments") -> "Moments":
        if not (self.count and other.count):
            return self if self.count else other
        count = self.count + other.count
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        between = np.outer(step, step) * (self.count * other.count / count)
        return Moments(count, mean, self.scatter + other.scatter + between)

    @cached_property
    def covariance(self) -> np.ndarray:
        """The unbiased covariance (D, D), which is singular unless count > D."""
        return self.scatter / (self.count - 1)

    @cached_property
    def root(self) -> np.ndarray:
        """The symmetric square root of the covariance, (D, D)."""
        values, vectors = np.linalg.eigh(self.covariance)
        return (vectors * np.sqrt(values.clip(0))) @ vectors.T


def frechet_distance(samples: Moments, reference: Moments) -> float:
    """Return the squared 2-Wasserstein distance of two Gaussians with the given moments.

    It is |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), with the means m1, m2 and the covariances C1, C2. The
    trace of the root is the sum of the roots of the eigenvalues of C2^(1/2) C1 C2^(1/2). This matrix is
    symmetric, so singular covariances cause no complex numbers. The values agree with pytorch-fid, whose
    function cannot be used: SciPy 1.18 removed an argument of scipy.linalg.sqrtm that it needs.
    """
    offset = samples.mean - reference.mean
    values = np.linalg.eigvalsh(reference.root @ samples.covariance @ reference.root)
    traces = np.trace(samples.covariance) + np.trace(reference.covariance)
    return float(offset @ offset + traces - 2 * np.sqrt(values.clip(0)).sum())
