"""Measures samples, and random draws of real rows for comparison, trial by trial, and writes the metrics."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from pairflow import rng
from pairflow.artifacts import (
    Metadata,
    Provenance,
    as_metrics,
    atomic,
    digest,
    read_table,
    token_array,
    write_table,
)
from pairflow.config import RealDraws, Settings
from pairflow.errors import InputError
from pairflow.files import Json

Row = Json
Measure = Callable[[np.ndarray], Iterable[Row]]  # rows of one trial -> metric rows


class Machine(NamedTuple):
    """How a measurement runs: its device, threads and progress bar, and the record of its costs."""

    device: str
    threads: int | None
    progress: bool
    provenance: Provenance


@dataclass(frozen=True)
class Measurement:
    """Metric rows and their metadata, to be written.

    Attributes:
        rows: the metric rows, dicts with the keys `metric`, `value` and others.
        vocabulary: the hash of the vocabulary.
        inputs: hashes of the input files.
        sampling: the parameters with which the samples were drawn; empty for real rows.
        parameters: additional parameters for the metadata.
        histograms: histograms of properties, for kinds of data that have them.
    """

    rows: Iterable[Row]
    vocabulary: str | None
    inputs: Mapping[str, str]
    sampling: Json = field(default_factory=dict)
    parameters: Json = field(default_factory=dict)
    histograms: pd.DataFrame | None = None

    def write(
        self, files: Mapping[str, Path], settings: Settings, evaluation: str, provenance: Provenance
    ) -> None:
        """Write the metric rows to files["metrics"] and histograms, if any, to files["properties"].

        Both are written or neither. The measurement's `settings` and the name of the `evaluation` go
        into metadata and columns; `provenance` is written beside the metrics.
        """
        dumped = settings.model_dump(mode="json")
        parameters = {**self.sampling, **dumped, **self.parameters}
        shared = {key: parameters[key] for key in ("method", "nfe", "seed") if key in parameters}
        rows = as_metrics(pd.DataFrame(self.rows), **shared, evaluation=evaluation)
        metadata = Metadata(
            kind="metrics", vocabulary=self.vocabulary, parameters=parameters, inputs=dict(self.inputs)
        )
        with atomic(*files.values()) as temporary:
            paths = dict(zip(files, temporary, strict=True))
            write_table(paths["metrics"], rows, metadata)
            if self.histograms is not None:
                histograms = replace(metadata, kind="property histograms")
                write_table(paths["properties"], self.histograms, histograms)
        provenance.write(files["metrics"])


@dataclass(frozen=True)
class RealRows:
    """The training rows (M, N) and the held-out rows (V, N) with which samples are compared.

    `path` and `metadata` belong to the training rows; `inputs` has the hashes of both files.
    """

    train: np.ndarray
    held_out: np.ndarray
    path: Path
    metadata: Metadata
    inputs: dict[str, str]

    @classmethod
    def read(
        cls, train: Path, validation: Path, kind: str = "tokens", needs_held_out: bool = True
    ) -> "RealRows":
        """Read the training rows in `train` and the held-out rows in `validation`.

        `kind` is what both tables contain, "tokens" or "vectors". Raises InputError unless they are the
        training and validation parts of one data set, or if `needs_held_out` and there are no held-out rows.
        """
        (rows, metadata), (others, held_out) = (read_table(path, kind) for path in (train, validation))
        metadata.require_same_vocabulary(held_out.vocabulary, train, validation)
        metadata.require_same_data(held_out.data, train, validation)
        metadata.require_split("train", train)
        held_out.require_split("validation", validation)
        if needs_held_out and not len(others):
            raise InputError(f"{validation}: holds no rows; samples are compared with held-out rows")
        inputs = {"tokens": digest(train), "validation": digest(validation)}
        column = "values" if kind == "vectors" else "tokens"
        return cls(token_array(rows[column]), token_array(others[column]), train, metadata, inputs)

    def read_samples(self, path: Path, kind: str = "samples") -> tuple[pa.Table, Metadata]:
        """Read a table and its metadata; `kind` is what it contains, "samples" or "vector samples".

        Raises InputError if their model was trained on other data, or if their rows have another size.
        """
        table, metadata = read_table(path, kind)
        metadata.require_same_data(self.metadata.data, path, self.path)
        if self.metadata.vocabulary_size is None and metadata.length != self.metadata.length:
            raise InputError(f"{path}: expected d = {self.metadata.length}, found {metadata.length}")
        if self.metadata.vocabulary_size and metadata.dimensions != self.metadata.dimensions:
            raise InputError(
                f"{path}: expected (N, K) = {self.metadata.dimensions} as in {self.path}, "
                f"found {metadata.dimensions}"
            )
        return table, metadata

    def measure_samples(self, path: Path, measure: Measure) -> Measurement:
        """Measure a file of samples, trial by trial.

        `measure` is called with the tokens (B, N) of one trial, and returns its metric rows.
        """
        table, metadata = self.read_samples(path)
        drawn = token_array(table["tokens"])
        return self.measure_table(path, table, metadata, lambda rows: measure(drawn[rows]))

    def measure_table(self, path: Path, table: pa.Table, metadata: Metadata, measure: Measure) -> Measurement:
        """Measure the `table` of samples that was read from `path`, trial by trial.

        `measure` is called with the row numbers (B,) of one trial in the table, and returns its metric rows.
        """
        trials, samples = table["trial"].to_numpy(), metadata.parameters["samples"]
        rows = [
            {**row, "trial": int(trial), "samples": samples}
            for trial in np.unique(trials)
            for row in measure(np.flatnonzero(trials == trial))
        ]
        inputs = {"samples": digest(path), **self.inputs}
        return Measurement(rows, metadata.vocabulary, inputs, metadata.parameters)

    def measure_floor(self, settings: RealDraws, **measures: Measure) -> Measurement:
        """Measure random draws of real rows, trial by trial.

        `settings` has the number of rows and of trials, and the seed. `measures` has a function for `train`,
        the training rows, or `test`, the held-out rows, or both. It is called with the rows (B, N) of one
        draw, and returns their metric rows.
        """
        parts = {"train": self.train, "test": self.held_out}
        rows = [
            {**row, "method": "data", "trial": trial, "samples": len(drawn)}
            for split, measure in measures.items()
            for trial, drawn in draw_trials(settings, split, np.arange(len(parts[split])))
            for row in measure(parts[split][drawn])
        ]
        return Measurement(rows, self.metadata.vocabulary, self.inputs)


def draw_trials(settings: RealDraws, split: str, rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Draw entries of `rows` without replacement, as a list of (trial number, drawn entries in their order).

    `settings` has the number of entries (`samples`), of trials, and the seed. If there are no more entries
    than `samples`, one trial has all. `split` is part of the name of the random numbers.
    """
    trials = settings.trials if settings.samples < len(rows) else 1
    draws = []
    for trial in range(trials):
        order = rng.random_order(rng.stream_seed(settings.seed, "floor", split, trial), len(rows))
        draws.append((trial, np.sort(rows[order[: settings.samples]])))
    return draws
