"""What an experiment's page shows: read by `gather`, drawn by `page.render`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import as_metrics
from pairflow.config import Experiment
from pairflow.pairing.bound import independent_distance
from pairflow.report.flaws import Evidence
from pairflow.report.grid import REAL, Grid
from pairflow.report.results import is_reduced
from pairflow.report.trajectory import Trajectory

_NO_NEARER = 0.99  # of the distance to independent sources: a coupling is then nearly independent, too


@dataclass(frozen=True)
class PagePart:
    """What only the pages of one kind of data show. Tokens without a name in `symbols` are numbers, and
    `rows` are some rows in words: training rows under `data`, samples of each method. `pictures` are the same
    rows as images (B, H, W, C) uint8, where they have any."""

    symbols: Mapping[int, str] = field(default_factory=dict)
    rows: Mapping[str, list[str]] = field(default_factory=dict)
    pictures: Mapping[str, np.ndarray] = field(default_factory=dict)


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
    data           training_rows, validation_rows, length (N), vocabulary_size (K), and what the kind's page
                   adds (`KindPage.read_data`), such as partial: what of the data set is missing, or None
    couplings      coupling -> metric -> value, as `metrics.coupling.diagnose` names them; under `forward` the
                   coverage of the forward velocity, where it was measured
    correlations   method -> metric -> value of the first seed, as `metrics.correlation.describe` names them
    training_logs  method -> rows iteration, loss, learning_rate, seconds, validation_nll (NaN: not measured)
    trajectory     a training row on its way to noise, where PairFlow has pairs of all the data, else None
    sample_command the command that draws samples from the best model; empty where there is none
    controls       metric rows of the controls, as `metrics` has those of real data
    bounds         name of a bound on the held-out rows -> method -> its mean over seeds
    part           what only pages of this kind of data show (`KindPage.read`)
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
    bounds: dict[str, dict[str, float]] = field(default_factory=dict)
    part: Any = field(default_factory=PagePart)

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
        enough = _NO_NEARER * independent_distance(self.data["length"], self.data["vocabulary_size"])
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

    def add_calls(self, table: Grid) -> Grid:
        """The table of all methods with the calls of the network that can change a sample."""
        count, measured = self.experiment.count_calls, set(table.frame.method)
        methods = [name for name in self.methods if name in measured]
        calls = {name: [count(name, nfe, table.evaluation) for nfe in table.columns] for name in methods}
        return replace(table, methods=methods, calls=calls)

    @property
    def own_evaluations(self) -> list[str]:
        """The same without those that repeat another one at a further temperature or guidance."""
        evaluations = self.experiment.evaluations.items()
        repeats = {repeat for name, evaluation in evaluations for repeat in evaluation.repeated(name)}
        return [name for name in self.evaluations if name not in repeats]
