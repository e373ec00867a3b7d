"""Metrics, which each kind of data lists: what they mean, how pages show them, and which model is best."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")  # a method, or a method of one of several experiments
CLOSE = 0.01  # means count as equal up to this relative difference from the best mean


@dataclass(frozen=True)
class Metric:
    """What a metric means, how a page names, orders and draws it, and which of two values is better.

    docs/metrics.md and the "?" of a page explain it if it has a `description`. These texts are Markdown.

    Attributes:
        label: its name on pages.
        best: "highest", "lowest" or "".
        leads_as: its name in sentences, if it may decide which model of an experiment is best: the first such
            metric with values does.
        against: words for its reference (training or test rows), if it has one.
        real: words for the real rows on which it is also measured, for comparison.
        log: whether charts have a logarithmic axis.
        chart: whether it has a chart.
        counted: whether it is a number of samples, printed with one decimal.
        group: the group of tables that shows it (see `DataSettings.groups`); empty for the main metrics.
        features: whether it depends on the feature extractor of its rows.
        digits: the least number of decimals.
        compared: whether the reference or the extractor of its rows matters.
        description: what it is, in whole sentences; metrics with the same one are explained together.
        formula, unit, pitfalls, source: what is to be known of it; empty where there is nothing to say.
        better: which values are better, if `best` does not say it all.
    """

    label: str
    best: str = ""
    leads_as: str = ""
    against: str = ""
    real: str = "real rows"
    log: bool = False
    chart: bool = True
    counted: bool = False
    group: str = ""
    features: bool = True
    digits: int = 1
    compared: bool = True
    description: str = ""
    formula: str = ""
    unit: str = ""
    better: str = ""
    pitfalls: str = ""
    source: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """A dict from the name of each fact to its text, without empty ones."""
        better = self.better or {"highest": "higher", "lowest": "lower"}.get(self.best, "neither")
        facts = {"Formula": self.formula, "Unit": self.unit, "Better": better}
        facts |= {"Pitfalls": self.pitfalls, "Source": self.source}
        return {name: text for name, text in facts.items() if text}

    @property
    def leading_share(self) -> bool:
        """Whether the metric may decide which model is best, and is a share of the samples."""
        return self.counted and bool(self.leads_as)


HELD_OUT = "held_out"  # the metric row of real data with the number of rows that were measured


def list_entries(metrics: Mapping[str, Metric]) -> list[tuple[list[str], Metric]]:
    """List the metrics with a description: for each description, their names, and the first of them."""
    names: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        names.setdefault(metric.description, []).append(name)
    return [(group, metrics[group[0]]) for text, group in names.items() if text]


def leading_evaluation(names: Iterable[str]) -> str:
    """Return the evaluation that decides between models: `main`, or else the first in alphabetical order."""
    return min(names, key=lambda name: (name != "main", name))


def mean_values(rows: "pd.DataFrame") -> dict[tuple[str, int], float]:
    """Return a dict from (method, number of steps) to a metric's mean over seeds of means over trials.

    `rows` are metric rows of one metric, with the columns `method`, `nfe`, `seed` and `value`.
    """
    of_seeds = rows.groupby(["method", "nfe", "seed"]).value.mean().dropna()
    means = of_seeds.groupby(["method", "nfe"]).mean()
    return {(str(method), int(nfe)): float(mean) for (method, nfe), mean in means.items()}


def best_run(means: Mapping[tuple[Row, int], float], lowest: bool = False) -> tuple[Row, int]:
    """Return the (method, number of steps) with the fewest steps among means within 1 % of the best.

    `means` is a dict from these to a metric's means. `lowest` says that low means are good. Of several with
    the fewest steps, the one whose mean is nearest to the best counts.
    """
    best = (min if lowest else max)(means.values())
    close = [run for run, mean in means.items() if abs(mean - best) <= CLOSE * abs(best)]
    return min(close, key=lambda run: (run[1], abs(means[run] - best)))
