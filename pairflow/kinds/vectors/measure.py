"""Distances of samples of vectors from real vectors. See docs/metrics.md, "Vectors"."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pairflow import rng
from pairflow.artifacts import token_array
from pairflow.config import RealDraws
from pairflow.kinds.kind import RowFiles
from pairflow.metrics.continuous import average_paths, chamfer, wasserstein
from pairflow.metrics.measured import Measurement, RealRows, Row

TRANSPORTED = 1000  # vectors of each set whose exact Wasserstein distance is computed, which takes n^3
DRAWS = 10  # of held-out vectors, for the mean and deviation of the floor


def compare(vectors: np.ndarray, real: RealRows) -> Iterator[Row]:
    """Compare the samples (B, d) of a trial with the training vectors; yields metric rows.

    `chamfer` is the Chamfer distance in the first two coordinates, `chamfer_all` in all. `w2` is the exact
    2-Wasserstein distance between the first 1,000 samples and training vectors, or fewer of both.
    """
    rows = min(TRANSPORTED, len(vectors), len(real.train))
    values = {
        "chamfer": chamfer(vectors[:, :2], real.train[:, :2]),
        "chamfer_all": chamfer(vectors, real.train),
        "w2": wasserstein(vectors[:rows], real.train[:rows]),
    }
    for metric, value in values.items():
        yield {"metric": metric, "value": value, "reference": "train"}


def measure_samples(samples: Path, files: RowFiles) -> Measurement:
    real = RealRows.read(*files, kind="vectors")
    table, metadata = real.read_samples(samples, "vector samples")
    drawn = token_array(table["values"])

    def measure(rows: np.ndarray) -> Iterable[Row]:
        return [*compare(drawn[rows], real), *average_paths(table, rows)]

    return real.measure_table(samples, table, metadata, measure)


def measure_floor(settings: RealDraws, files: RowFiles) -> Measurement:
    real = RealRows.read(*files, kind="vectors")
    measured = draw_floor(real, settings.samples, settings.seed)
    return Measurement([*measured], real.metadata.vocabulary, real.inputs)


def draw_floor(real: RealRows, samples: int, seed: int) -> Iterator[Row]:
    """Compute the metric rows of DRAWS random draws of `samples` held-out vectors, or of all if there are
    fewer.

    Each metric uses as many vectors as it uses samples, and the same training vectors. A metric that uses all
    held-out vectors is computed once, because all draws would be equal.
    """
    for trial in range(DRAWS):
        order = rng.random_order(rng.stream_seed(seed, "floor", "test", trial), len(real.held_out))
        drawn = real.held_out[order[:samples]]
        for row in compare(drawn, real):
            rows = min(TRANSPORTED, len(drawn), len(real.train)) if row["metric"] == "w2" else len(drawn)
            if trial == 0 or rows < len(real.held_out):
                yield {**row, "method": "data", "trial": trial, "samples": rows}
