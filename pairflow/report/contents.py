"""What the page is made of: read by the report step, drawn by `page.render`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Contents:
    """One experiment's results. A part that is empty (`{}` or a frame without rows) is left out of the page.

    experiment     name of the experiment
    settings       `Experiment.model_dump(mode="json")`
    metrics        rows method, nfe, trial, metric, value, seed, evaluation, samples, reference, extractor
    timings        rows step, method (null where it has none), seconds, peak_memory_mb, device
    provenance     date, commit (or None), device, machine, versions {package: version}, command (one line)
    data           training_rows, validation_rows, rejected_rows, reference_rows,
                   length (N), vocabulary_size (K)
    couplings      coupling -> metric -> value, as `metrics.coupling.diagnose` names them; under `forward` the
                   coverage of the forward velocity, where it was measured
    correlations   method -> metric -> value of the first seed, as `metrics.correlation.describe` names them
    training_logs  method -> rows iteration, loss, learning_rate, seconds, validation_nll (NaN: not measured)
    samples        method -> NFE -> decoded SMILES of the first seed's first trial, in the order drawn
    """

    experiment: str
    settings: dict[str, Any]
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: dict[str, Any]
    data: dict[str, int]
    couplings: dict[str, dict[str, float]]
    correlations: dict[str, dict[str, float]]
    training_logs: dict[str, pd.DataFrame]
    samples: dict[str, dict[int, list[str]]]

    @property
    def distances(self) -> dict[str, np.ndarray]:
        """Coupling -> (N+1,) share of its pairs at each Hamming distance of x0 and x1."""
        return {
            name: np.array([values[f"hamming_share_{d}"] for d in range(self.data["length"] + 1)])
            for name, values in self.couplings.items()
            if "hamming_mean" in values
        }

    @property
    def jumps(self) -> dict[str, np.ndarray]:
        """Coupling -> (T,) mean number of positions that jump in a backward step, entry s - 1 at t = s/T."""
        steps = range(1, self.settings["pairing"]["steps"] + 1)
        return {
            name: np.array([values[f"jumps_{step}"] for step in steps])
            for name, values in self.couplings.items()
            if "jumps_1" in values
        }

    @property
    def methods(self) -> list[str]:
        """Methods in the configuration's order, then any others that have metrics."""
        return list(dict.fromkeys([*self.settings["methods"], *self.metrics["method"]]))

    @property
    def evaluations(self) -> list[str]:
        """Evaluations that have metrics, in the configuration's order, then any others."""
        found = list(dict.fromkeys(self.metrics["evaluation"]))
        known = [name for name in self.settings["evaluations"] if name in found]
        return list(dict.fromkeys([*known, *found]))
