"""What the page is made of: read by the report step, drawn by `page.render`."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

REAL = "data"  # the method of metric rows that no model made


@dataclass(frozen=True)
class Contents:
    """One experiment's results. A part that is empty (`{}` or a frame without rows) is left out of the page.

    experiment     name of the experiment
    settings       `Experiment.model_dump(mode="json")`
    metrics        rows method, nfe, trial, metric, value, seed, evaluation, samples, reference, extractor;
                   those of the method `data` compare real data with real data, their nfe is null
    timings        rows step, method (null where it has none), seconds, peak_memory_mb, device; of samples
                   also seed, evaluation and nfe
    provenance     date, commit (or None), device, machine, versions {package: version}, command (one line)
    data           training_rows, validation_rows, length (N), vocabulary_size (K); of molecules rejected_rows
                   and reference_rows; of images shape (C, H, W) and partial (what of the data set is missing,
                   or None), their validation rows being the test images
    couplings      coupling -> metric -> value, as `metrics.coupling.diagnose` names them; under `forward` the
                   coverage of the forward velocity, where it was measured
    correlations   method -> metric -> value of the first seed, as `metrics.correlation.describe` names them
    training_logs  method -> rows iteration, loss, learning_rate, seconds, validation_nll (NaN: not measured)
    samples        method -> NFE -> decoded SMILES of the first seed's first trial, in the order drawn
    properties     evaluation -> NFE -> method -> rows property, low, high, samples, training: how many
                   molecules' property is in a bin, as `metrics.chemistry.histograms` has them
    modality       molecules or images

    Of images, all uint8 with (H, W, C) last, C = 1 (grey) or 3 (RGB):

    images         method -> NFE -> (B, H, W, C) samples of the first seed's first trial, in the order drawn
    pairs          coupling -> x1 (B, H, W, C), x_t (B, S, H, W, C), x0 (B, H, W, C): some data points, states
                   at t = S/(S+1), ..., 1/(S+1), their sources
    neighbours     method -> samples (B, H, W, C) of its highest NFE, the training image nearest to each
                   (B, H, W, C), and how far apart they are (B,)
    accuracies     extractor -> share of test images that it classifies correctly, where that was measured
    """

    experiment: str
    settings: dict[str, Any]
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: dict[str, Any]
    data: dict[str, Any]
    couplings: dict[str, dict[str, float]]
    correlations: dict[str, dict[str, float]]
    training_logs: dict[str, pd.DataFrame]
    samples: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = field(default_factory=dict)
    modality: Literal["molecules", "images"] = "molecules"
    images: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    pairs: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    neighbours: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    accuracies: dict[str, float] = field(default_factory=dict)

    @property
    def measured(self) -> pd.DataFrame:
        """Metric rows of methods."""
        return self.metrics[self.metrics.method != REAL]

    @property
    def real(self) -> pd.DataFrame:
        """Metric rows of real data compared with real data: the floor of a distance."""
        return self.metrics[self.metrics.method == REAL]

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
        return list(dict.fromkeys([*self.settings["methods"], *self.measured["method"]]))

    @property
    def evaluations(self) -> list[str]:
        """Evaluations that have metrics, in the configuration's order, then any others."""
        found = list(dict.fromkeys(self.measured["evaluation"]))
        known = [name for name in self.settings["evaluations"] if name in found]
        return list(dict.fromkeys([*known, *found]))
