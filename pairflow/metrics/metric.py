"""How pages name, order and draw a metric, which evaluation leads, and which model is the best by one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd


@dataclass(frozen=True)
class Metric:
    """How a page names, orders and draws a metric, and which of two values it calls the better one.

    `best` is `highest`, `lowest` or empty. An experiment is judged by the first metric with values and a
    `leads_as`, which names it in a sentence. `against` words the reference, training or test, where a metric
    has one, and `real` is what a floor is measured on. `counted` metrics are numbers of samples, printed with
    one decimal. `group` is a group of tables of the kind, empty for the main metrics. `digits` is the least
    number of decimals. `features`: the metric depends on the extractor of its rows. `compared`: its rows have
    a reference or an extractor that matters. `signed`: a distance that may be negative.
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


# Of the paths that samples of a continuous flow take from their sources.
_path = partial(Metric, real="held-out data", digits=3, group="paths")
PATHS = {"path_energy": _path("path energy"), "straightness": _path("deviation from straight paths")}
PATH_GROUP = {"paths": "Paths from source to sample"}


CLOSE = 0.01  # means that differ by no more, relative to the best, count as equal


def leading_evaluation(names: Iterable[str]) -> str:
    """The evaluation that models are judged by first: `main`, or else the first in alphabetical order."""
    return min(names, key=lambda name: (name != "main", name))


def mean_values(rows: pd.DataFrame) -> dict[tuple[str, int], float]:
    """(method, NFE) -> the mean over seeds of the mean over trials, from rows of one metric."""
    of_seeds = rows.groupby(["method", "nfe", "seed"]).value.mean().dropna()
    means = of_seeds.groupby(["method", "nfe"]).mean()
    return {(str(method), int(nfe)): float(mean) for (method, nfe), mean in means.items()}


def best_run(means: Mapping[tuple[str, int], float], lowest: bool = False) -> tuple[str, int]:
    """The (method, NFE) of the best mean; of means within one per cent of it, that of the fewest steps."""
    best = (min if lowest else max)(means.values())
    close = [run for run, mean in means.items() if abs(mean - best) <= CLOSE * abs(best)]
    return min(close, key=lambda run: (run[1], abs(means[run] - best)))
