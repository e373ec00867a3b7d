"""What a kind of data hands back when it has measured samples or real data, and how that is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, atomic, write_table
from pairflow.config import Settings


class Machine(NamedTuple):
    """Where and how a step computes: its options, and the record of its costs."""

    device: str
    threads: int | None
    progress: bool
    provenance: Provenance


@dataclass(frozen=True)
class Measurement:
    """Metric rows, and what they were measured on.

    `parameters` and `inputs` (the hashes of files) are for the metadata, where the settings follow the
    parameters of `sampling`; there are none of a floor. `histograms` are of properties, for kinds with any.
    """

    rows: Iterable[Mapping[str, Any]]
    vocabulary: str | None
    inputs: Mapping[str, str]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    histograms: pd.DataFrame | None = None

    def write(
        self, files: Mapping[str, Path], settings: Settings, evaluation: str, provenance: Provenance
    ) -> None:
        """Write the metric rows, and the histograms beside them, whole or not at all."""
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
