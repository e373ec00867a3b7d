"""Metric rows that compare with one another, and the ones that an experiment is judged by first."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from pairflow.config import Experiment
from pairflow.metrics.metric import Metric
from pairflow.metrics.ranking import best_run, leading_evaluation
from pairflow.report import tables
from pairflow.report.stats import Values, estimate, group_by_seed
from pairflow.report.tables import REAL, Cell
from pairflow.report.words import REFERENCES

_KEYS = ["metric", "reference", "extractor"]


@dataclass(frozen=True, eq=False)
class Panel:
    """The rows of one evaluation, metric, reference and extractor.

    `real` are the matching rows of real data against real data. Reference and extractor may be empty; those
    of metrics that are not compared are. `unit` is what the rows' `nfe` counts.
    """

    evaluation: str
    metric: str
    about: Metric
    reference: str
    extractor: str
    rows: pd.DataFrame
    real: pd.DataFrame
    unit: str = "sampling step"

    @property
    def beside(self) -> str:
        return self.about.against.format(REFERENCES[self.reference]) if self.reference else ""

    @property
    def floor(self) -> Cell | None:
        values = self.real.value
        return None if values.empty else Cell(values.mean(), values.std(), len(values))

    @property
    def samples(self) -> str:
        return tables.list_counts(self.rows.samples)

    @cached_property
    def values(self) -> dict[tuple[str, int], Values]:
        """(method, NFE) -> its values, where it has any."""
        groups = self.rows.groupby(["method", "nfe"], sort=False)
        values = {(str(method), int(nfe)): group_by_seed(rows) for (method, nfe), rows in groups}
        return {key: own for key, own in values.items() if own}

    @cached_property
    def means(self) -> dict[tuple[str, int], float]:
        return {key: estimate(values).mean for key, values in self.values.items()}

    def by_calls(self, count: Callable[[str, int, str], int]) -> "Panel":
        """The panel by calls of the network, which `count` tells of a method, an NFE and an evaluation."""
        runs = zip(self.rows.method, self.rows.nfe, strict=True)
        calls = [count(method, int(nfe), self.evaluation) for method, nfe in runs]
        return replace(self, rows=self.rows.assign(nfe=calls), unit="network call")

    def best(self, method: str | None = None) -> tuple[str, int]:
        """The (method, NFE) with the best mean, among all or among those of one method."""
        means = {run: mean for run, mean in self.means.items() if method in (None, run[0])}
        return best_run(means, self.about.best == "lowest")


def panels(metrics: pd.DataFrame, experiment: Experiment, evaluation: str) -> list[Panel]:
    """The panels of an evaluation that have values, in the order of the page."""
    known = tables.list_metrics(experiment)
    alone = metrics.metric.isin([name for name, about in known.items() if not about.compared])
    rows = metrics.astype(dict.fromkeys(_KEYS, "object")).fillna(dict.fromkeys(_KEYS, ""))
    rows = rows.assign(**{name: rows[name].mask(alone, "") for name in ("reference", "extractor")})
    is_real, here = rows.method == REAL, rows.evaluation == evaluation
    floors = dict(iter(rows[is_real].dropna(subset="value").groupby(_KEYS)))
    order = [(name, reference) for name in known for reference in (*REFERENCES, "")]
    measured = []
    for key, group in rows[~is_real & here].groupby(_KEYS, sort=False):  # the first extractor's come first
        metric, reference, extractor = map(str, key)
        if (metric, reference) in order and group.value.notna().any():
            floor = floors.get(key, rows.iloc[:0])
            own = floor[floor.evaluation == evaluation]
            own = floor if own.empty else own  # those of any evaluation serve where it has none
            measured.append(Panel(evaluation, metric, known[metric], reference, extractor, group, own))
    return sorted(measured, key=lambda panel: order.index((panel.metric, panel.reference)))


def leading_panel(metrics: pd.DataFrame, experiment: Experiment) -> Panel | None:
    """The first metric with a headline, in the leading one of the evaluations that have values of one."""
    leading: dict[str, Panel] = {}
    for name in metrics.evaluation.unique():
        for panel in panels(metrics, experiment, name):
            if panel.about.headline:
                leading.setdefault(name, panel)
    return leading[leading_evaluation(leading)] if leading else None
