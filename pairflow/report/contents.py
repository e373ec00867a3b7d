"""The class of all that an experiment's page shows: `gather` reads it, and `page.render` draws it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pairflow.config import BASES
from pairflow.config.training import FREQUENCIES
from pairflow.files import Json
from pairflow.pairing.bound import NEARLY, independent_distance
from pairflow.report.grid import Grid
from pairflow.report.results import CONDITION, FinishedExperiment

Values = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Contents(FinishedExperiment):
    """An experiment's results and everything else that its page shows. Empty parts are left out of the page.

    Attributes:
        provenance: date, commit (or None), device, machine and versions {package: version} of the first
            seed's last model, and the command (one line) that makes the page.
        data: training_rows, validation_rows, length (N), vocabulary_size (K), shape (of pixels), and the
            numbers of rows of the tables in `KindPage.counted`.
        sample_command: the command that draws samples from the best model; empty if the kind has none.
        part: what only pages on this kind of data show (`KindPage.read`).
    """

    data: Json = field(default_factory=dict)
    sample_command: str = ""
    part: Mapping[str, Any] = field(default_factory=dict)

    def _describe(self, *evaluations: str) -> Values:
        """Return {method or coupling: {metric: value}} for the first seed in these evaluations."""
        rows = self.metrics[self.metrics.evaluation.isin(evaluations)]
        rows = rows[rows.seed == self.experiment.seeds[0]]
        return {
            str(method): dict(zip(group.metric, group.value, strict=True))
            for method, group in rows.groupby("method", sort=False)
        }

    @cached_property
    def couplings(self) -> Values:
        """A dict from the name of a coupling to its metrics, named as in `metrics.coupling.diagnose`.

        One more key, `forward`, has the coverage of the forward velocity, if it was measured.
        """
        return self._describe("coupling", "coverage")

    @cached_property
    def correlations(self) -> Values:
        """A dict from method to its total correlation, with the keys of `metrics.correlation.describe`."""
        return self._describe("correlation")

    @cached_property
    def likelier(self) -> dict[str, tuple[float, float, int]]:
        """A dict from method to (share of held-out rows that are likelier under their own class than under
        any other, the share to expect by chance, number of rows); empty without classes."""
        rows = self.metrics[self.metrics.evaluation == CONDITION]
        means = rows.groupby(["method", "metric"], sort=False)["value"].mean().unstack()
        counts = rows.groupby("method", sort=False).samples.max()
        shares = ["likelier_in_class", "likelier_by_chance"]
        return {str(name): (*means.loc[name, shares], int(count)) for name, count in counts.items()}

    @property
    def adopted(self) -> Values:
        """A dict from each coupling of the user's own pairs to its metrics."""
        return {name: values for name, values in self.couplings.items() if "unpaired_rows" in values}

    @property
    def distances(self) -> dict[str, np.ndarray]:
        """A dict from coupling to (N+1,): the share of pairs at each Hamming distance of source and data."""
        numbers = range(self.data["length"] + 1)
        return {
            coupling: np.array([values[f"hamming_share_{number}"] for number in numbers])
            for coupling, values in self.couplings.items()
            if "hamming_mean" in values
        }

    @property
    def independent_distance(self) -> float:
        """The mean Hamming distance of a row and an independent source, in positions."""
        if self.experiment.noise == FREQUENCIES:
            return min(values["hamming_independent"] for values in self.couplings.values())
        return independent_distance(self.data["length"], self.data["vocabulary_size"])

    @property
    def independent(self) -> list[str]:
        """The couplings of Algorithm 1 whose sources are nearly as far from their data as random sources.

        In their backward steps hardly any other row has a weight, so that sources are nearly independent
        (docs/method.md, "Backward pairing (Algorithm 1)").
        """
        bases = {name: BASES.get(name.partition("-")[0]) for name in self.distances}
        computed = [name for name, base in bases.items() if base and base.closed_form]
        enough = NEARLY * self.independent_distance if computed else 0
        return [name for name in computed if self.couplings[name]["hamming_mean"] >= enough]

    @property
    def methods(self) -> list[str]:
        return list(self.experiment.methods)

    def name_origin(self, *details: str) -> str:
        """Say where the numbers of a table come from: the experiment, these details, and the scale."""
        return ", ".join([f"measured: {self.name}", *details, self.scale])

    def add_calls(self, table: Grid) -> Grid:
        """Return the table with its methods in the experiment's order, and their network calls per sample."""
        count, measured = self.experiment.count_calls, set(table.frame.method)
        methods = [name for name in self.methods if name in measured]
        calls = {name: [count(name, nfe, table.evaluation) for nfe in table.columns] for name in methods}
        return replace(table, methods=methods, calls=calls)

    @property
    def evaluations(self) -> list[str]:
        """The evaluations with samples, without repetitions at other temperatures or guidance weights."""
        evaluations, measured = self.experiment.evaluations, set(self.measured.evaluation)
        repeats = {repeat for name, protocol in evaluations.items() for repeat in protocol.repeated(name)}
        return [name for name in evaluations if name in measured - repeats]
