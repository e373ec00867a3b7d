"""Real token rows, which samples of text and of token rows are compared with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.config import RealDraws
from pairflow.errors import InputError
from pairflow.metrics.draws import draw_trials
from pairflow.metrics.measured import Measurement

Measure = Callable[[np.ndarray], Iterable[Mapping[str, Any]]]  # rows (B, N) -> their metric rows


@dataclass(frozen=True)
class RealRows:
    """The training rows (M, N) and the held-out rows (V, N) that samples are compared with."""

    train: np.ndarray
    held_out: np.ndarray
    path: Path
    metadata: Metadata
    inputs: dict[str, str]

    @classmethod
    def read(cls, train: Path, validation: Path) -> "RealRows":
        """Read the files; InputError unless they are the two parts of one data set."""
        (rows, metadata), (others, held_out) = (read_table(path, "tokens") for path in (train, validation))
        metadata.require_same_vocabulary(held_out.vocabulary, train, validation)
        metadata.require_same_data(held_out.data, train, validation)
        metadata.require_split("train", train)
        held_out.require_split("validation", validation)
        if not len(others):
            raise InputError(f"{validation}: holds no rows; samples are compared with held-out rows")
        inputs = {"tokens": digest(train), "validation": digest(validation)}
        return cls(token_array(rows["tokens"]), token_array(others["tokens"]), train, metadata, inputs)

    def read_samples(self, path: Path) -> tuple[np.ndarray, np.ndarray, Metadata]:
        """Samples (B, N) of a model of these data, the trial of each, and their metadata."""
        table, metadata = read_table(path, "samples")
        metadata.require_same_data(self.metadata.data, path, self.path)
        if metadata.dimensions != self.metadata.dimensions:
            raise InputError(
                f"{path}: expected (N, K) = {self.metadata.dimensions} as in {self.path}, "
                f"found {metadata.dimensions}"
            )
        return token_array(table["tokens"]), table["trial"].to_numpy(), metadata

    def measure_samples(self, path: Path, measure: Measure) -> Measurement:
        """The metric rows of a file of samples, trial by trial."""
        drawn, trials, metadata = self.read_samples(path)
        shared = {"samples": metadata.parameters["samples"]}
        rows = [
            {**row, "trial": int(trial), **shared}
            for trial in np.unique(trials)
            for row in measure(drawn[trials == trial])
        ]
        inputs = {"samples": digest(path), **self.inputs}
        return Measurement(rows, metadata.vocabulary, inputs, metadata.parameters)

    def measure_floor(self, settings: RealDraws, **measures: Measure) -> Measurement:
        """The metric rows of draws of real rows, `train` and `test` by their own measures."""
        parts = {"train": self.train, "test": self.held_out}
        rows = [
            {**row, "method": "data", "trial": trial, "samples": len(drawn)}
            for split, measure in measures.items()
            for trial, drawn in draw_trials(settings, split, np.arange(len(parts[split])))
            for row in measure(parts[split][drawn])
        ]
        return Measurement(rows, self.metadata.vocabulary, self.inputs)
