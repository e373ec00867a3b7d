"""Metrics, which each kind of data lists: how pages name, order and draw them, and which model is best."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")  # a method, or a method of one of several experiments
CLOSE = 0.01  # means count as equal up to this relative difference from the best mean


@dataclass(frozen=True)
class Metric:
    """How a page names, orders and draws a metric, and which of two values is better.

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
        signed: whether it may be negative.
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
    signed: bool = False

    @property
    def leading_share(self) -> bool:
        """Whether models are chosen by it, and it is a share of the samples, such as that of valid ones."""
        return self.counted and bool(self.leads_as)


HELD_OUT = "held_out"  # the metric row of real data with the number of rows that were measured

# Metrics of the trajectories of a continuous flow.
_path = partial(Metric, real="held-out data", digits=3, group="paths")
PATHS = {"path_energy": _path("path energy"), "straightness": _path("deviation from straight paths")}
PATH_GROUP = {"paths": "Paths from source to sample"}


def leading_evaluation(names: Iterable[str]) -> str:
    """Return the evaluation that decides between models: `main`, or else the first in alphabetical order."""
    return min(names, key=lambda name: (name != "main", name))


def mean_values(rows: "pd.DataFrame") -> dict[tuple[str, int], float]:
    """Return a dict from (method, number of steps) to a metric's mean over seeds of means over trials."""
    of_seeds = rows.groupby(["method", "nfe", "seed"]).value.mean().dropna()
    means = of_seeds.groupby(["method", "nfe"]).mean()
    return {(str(method), int(nfe)): float(mean) for (method, nfe), mean in means.items()}


def best_run(means: Mapping[tuple[Row, int], float], lowest: bool = False) -> tuple[Row, int]:
    """Return the (method, number of steps) with the fewest steps among the means within 1 % of the best."""
    best = (min if lowest else max)(means.values())
    close = [run for run, mean in means.items() if abs(mean - best) <= CLOSE * abs(best)]
    return min(close, key=lambda run: (run[1], abs(means[run] - best)))
