"""Distances of samples of vectors from real ones. See docs/metrics.md, "Vectors"."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairflow import rng
from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.config import RealDraws
from pairflow.errors import InputError
from pairflow.kinds.kind import RowFiles
from pairflow.metrics.continuous import average_paths, chamfer, wasserstein
from pairflow.metrics.measured import Measurement

TRANSPORTED = 1000  # rows of each side whose exact Wasserstein distance is computed
DRAWS = 10  # of held-out vectors, from which the floor and its deviation come


@dataclass(frozen=True)
class RealVectors:
    """The training vectors (M, d) and the held-out ones (V, d) that samples are compared with."""

    train: np.ndarray
    held_out: np.ndarray
    path: Path
    metadata: Metadata
    inputs: dict[str, str]

    @classmethod
    def read(cls, train: Path, validation: Path) -> "RealVectors":
        """Read the files; InputError unless they are the two parts of one data set."""
        (rows, metadata), (others, held_out) = (read_table(path, "vectors") for path in (train, validation))
        metadata.require_same_data(held_out.data, train, validation)
        metadata.require_split("train", train)
        held_out.require_split("validation", validation)
        inputs = {"tokens": digest(train), "validation": digest(validation)}
        return cls(token_array(rows["values"]), token_array(others["values"]), train, metadata, inputs)

    def read_samples(self, path: Path) -> tuple[Any, Metadata]:
        """The table of samples of a model of these data, and their metadata."""
        table, metadata = read_table(path, "vector samples")
        metadata.require_same_data(self.metadata.data, path, self.path)
        if metadata.length != self.metadata.length:
            raise InputError(f"{path}: expected d = {self.metadata.length}, found {metadata.length}")
        return table, metadata


def compare(vectors: np.ndarray, real: RealVectors) -> Iterator[dict[str, Any]]:
    """The metric rows of a trial's samples (B, d), against the training vectors.

    `chamfer` is of the first two coordinates, and `chamfer_all` of all; `w2` is the exact 2-Wasserstein
    distance of the first 1,000 samples from as many training vectors, or of fewer if there are fewer.
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
    """The metric rows of samples and of the paths on which they were made, trial by trial."""
    real = RealVectors.read(*files)
    table, metadata = real.read_samples(samples)
    drawn, trials = token_array(table["values"]), table["trial"].to_numpy()
    shared, rows = {"samples": metadata.parameters["samples"]}, []
    for trial in np.unique(trials):
        of_trial = trials == trial
        measured = [*compare(drawn[of_trial], real), *average_paths(table, of_trial)]
        rows += [{**row, "trial": int(trial), **shared} for row in measured]
    inputs = {"samples": digest(samples), **real.inputs}
    return Measurement(rows, metadata.vocabulary, inputs, metadata.parameters)


def measure_floor(settings: RealDraws, files: RowFiles) -> Measurement:
    """The metric rows of draws of held-out vectors in the place of samples."""
    real = RealVectors.read(*files)
    measured = draw_floor(real, settings.samples, settings.seed)
    return Measurement([*measured], real.metadata.vocabulary, real.inputs)


def draw_floor(real: RealVectors, samples: int, seed: int) -> Iterator[dict[str, Any]]:
    """The metric rows of `DRAWS` draws of held-out vectors.

    Each metric takes as many of them as it takes samples, and compares them with the same training vectors.
    Where that is all of them there is one draw.
    """
    for trial in range(DRAWS):
        order = rng.random_order(rng.stream_seed(seed, "floor", "test", trial), len(real.held_out))
        drawn = real.held_out[order[:samples]]
        for row in compare(drawn, real):
            rows = min(TRANSPORTED, len(drawn), len(real.train)) if row["metric"] == "w2" else len(drawn)
            if trial == 0 or rows < len(real.held_out):
                yield {**row, "method": "data", "trial": trial, "samples": rows}
