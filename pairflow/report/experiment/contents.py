"""What an experiment's page shows: read by `gather`, drawn by `page.render`."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import as_metrics
from pairflow.config import Experiment
from pairflow.report.flaws import Evidence
from pairflow.report.results import is_complete, is_reduced
from pairflow.report.tables import REAL, Table
from pairflow.report.trajectory import Trajectory

_NO_NEARER = 0.99  # of the distance to independent sources: a coupling is then nearly independent, too


@dataclass(frozen=True)
class Contents:
    """One experiment's results. A part that is empty (`{}` or a frame without rows) is left out of the page.

    name           name of the experiment
    experiment     its settings
    metrics        rows method, nfe, trial, metric, value, seed, evaluation, samples, reference, extractor;
                   those of the method `data` compare real data with real data, and their nfe is null
    timings        rows step, method (null where it has none), seconds, peak_memory_mb, device; those of
                   samples have seed, evaluation and nfe, too
    provenance     date, commit (or None), device, machine, versions {package: version}, command (one line)
    data           training_rows, validation_rows, length (N), vocabulary_size (K); for molecules
                   rejected_rows and reference_rows; for images shape (C, H, W) and partial (what of the data
                   set is missing, or None). Validation rows of images are the test images.
    couplings      coupling -> metric -> value, as `metrics.coupling.diagnose` names them; under `forward` the
                   coverage of the forward velocity, where it was measured
    correlations   method -> metric -> value of the first seed, as `metrics.correlation.describe` names them
    training_logs  method -> rows iteration, loss, learning_rate, seconds, validation_nll (NaN: not measured)
    trajectory     a training row on its way to noise, where PairFlow has pairs of all the data, else None
    symbols        the names of tokens, for molecules
    sample_command the command that draws molecules from the best model; empty for other data
    samples        method -> NFE -> decoded SMILES of the first seed's first trial, in the order drawn
    examples       some training molecules as SMILES
    properties     evaluation -> NFE -> method -> rows property, low, high, samples, training: how many
                   molecules have the property in a bin, as `metrics.chemistry.histograms` counts them

    For images, all uint8 with (H, W, C) last, C = 1 (grey) or 3 (RGB):

    images         method -> NFE -> (B, H, W, C) samples of the first seed's first trial, in the order drawn
    training_images  some training images (B, H, W, C)
    pairs          coupling -> x1 (B, H, W, C), x_t (B, S, H, W, C), x0 (B, H, W, C): some data points, states
                   at t = S/(S+1), ..., 1/(S+1), their sources
    neighbours     method -> samples (B, H, W, C) of its highest NFE, the training image nearest to each
                   (B, H, W, C), and how far apart they are (B,)
    accuracies     extractor -> share of test images that it classifies correctly; None without test images

    For token rows:

    controls       for text: metric rows of the controls, as `metrics` has those of real text
    bounds         method -> `nll_bound` on the held-out rows, mean over seeds
    bits           method -> `bpc_bound` likewise, for text
    rows           what they are -> some rows as text: training rows, samples of each method

    For text also:

    text_pairs     coupling -> some pairs, each as lines of text from t = 1 (x1) to t = 0 (x0)

    For vectors, in the first two coordinates:

    training_points  some training vectors (B, 2)
    points         method -> NFE -> samples (B, 2)
    point_pairs    coupling -> sources x0 and data points x1 (B, 2)
    """

    name: str
    experiment: Experiment
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: dict[str, Any]
    data: dict[str, Any]
    couplings: dict[str, dict[str, float]]
    correlations: dict[str, dict[str, float]]
    training_logs: dict[str, pd.DataFrame]
    controls: pd.DataFrame = field(default_factory=lambda: as_metrics(pd.DataFrame()))
    sample_command: str = ""
    trajectory: Trajectory | None = None
    symbols: dict[int, str] = field(default_factory=dict)
    samples: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    properties: dict[str, dict[int, dict[str, pd.DataFrame]]] = field(default_factory=dict)
    images: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    training_images: np.ndarray | None = None
    pairs: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    neighbours: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    accuracies: dict[str, float | None] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)
    bits: dict[str, float] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)
    text_pairs: dict[str, list[list[str]]] = field(default_factory=dict)
    training_points: np.ndarray | None = None
    points: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    point_pairs: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def modality(self) -> str:
        return self.experiment.modality

    @property
    def evidence(self) -> Evidence:
        """What the flaws of the methods are found in."""
        unpaired = {
            name: values["unpaired_rows"] / self.data["training_rows"]
            for name, values in self.adopted.items()
        }
        metrics = pd.concat([self.metrics, self.controls], ignore_index=True)
        return Evidence(self.experiment, metrics, self.training_logs, unpaired)

    @property
    def reduced(self) -> bool:
        """Whether the numbers do not compare with the paper's, by scale or by a missing part of the data."""
        return is_reduced(self.experiment) or bool(self.data.get("partial"))

    @property
    def complete(self) -> bool:
        """Whether a molecule that is not in the data breaks their rules."""
        return is_complete(self.experiment)

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
    def adopted(self) -> dict[str, dict[str, float]]:
        """Coupling of a user's own -> its metrics, with the training rows that have no pair."""
        return {name: values for name, values in self.couplings.items() if "unpaired_rows" in values}

    @property
    def jumps(self) -> dict[str, np.ndarray]:
        """Coupling -> (T,) mean number of positions that jump in a backward step, entry s - 1 at t = s/T."""
        steps = range(1, self.experiment.pairing.steps + 1)
        return {
            name: np.array([values[f"jumps_{step}"] for step in steps])
            for name, values in self.couplings.items()
            if "jumps_1" in values
        }

    @property
    def independent(self) -> list[str]:
        """The couplings of Algorithm 1 whose sources are nearly as far from their data as independent ones.

        In their steps hardly any weight counts but a row's own (docs/method.md, "Backward pairing (Algorithm
        1)").
        """
        length, size = self.data["length"], self.data["vocabulary_size"]
        enough = _NO_NEARER * length * (size - 1) / size
        return [name for name in self.jumps if self.couplings[name]["hamming_mean"] >= enough]

    @property
    def methods(self) -> list[str]:
        """Methods in the configuration's order, then any others that have metrics."""
        return list(dict.fromkeys([*self.experiment.methods, *self.measured["method"]]))

    @property
    def evaluations(self) -> list[str]:
        """Evaluations that have metrics, in the configuration's order, then any others."""
        measured = list(dict.fromkeys(self.measured["evaluation"]))
        configured = [name for name in self.experiment.evaluations if name in measured]
        return list(dict.fromkeys([*configured, *measured]))

    def add_calls(self, table: Table) -> Table:
        """The table with the calls of the network that can change a sample."""
        count = self.experiment.count_calls
        calls = {name: [count(name, nfe, table.evaluation) for nfe in table.columns] for name in table.rows}
        return replace(table, calls=calls)

    @property
    def own_evaluations(self) -> list[str]:
        """The same without those that repeat another one at a further temperature or guidance."""
        evaluations = self.experiment.evaluations.items()
        repeats = {repeat for name, evaluation in evaluations for repeat in evaluation.repeated(name)}
        return [name for name in self.evaluations if name not in repeats]
