"""Which evaluation leads, and which model is the best by a metric."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import pandas as pd

Row = TypeVar("Row")  # a method, or a method of one of several experiments
CLOSE = 0.01  # means count as equal up to this relative difference from the best mean


def leading_evaluation(names: Iterable[str]) -> str:
    """The evaluation that decides between models: `main`, or else the first in alphabetical order."""
    return min(names, key=lambda name: (name != "main", name))


def mean_values(rows: pd.DataFrame) -> dict[tuple[str, int], float]:
    """A dict from (method, number of steps) to a metric's mean over seeds of means over trials."""
    of_seeds = rows.groupby(["method", "nfe", "seed"]).value.mean().dropna()
    means = of_seeds.groupby(["method", "nfe"]).mean()
    return {(str(method), int(nfe)): float(mean) for (method, nfe), mean in means.items()}


def best_run(means: Mapping[tuple[Row, int], float], lowest: bool = False) -> tuple[Row, int]:
    """The (method, number of steps) with the fewest steps among the means within 1 % of the best."""
    best = (min if lowest else max)(means.values())
    close = [run for run, mean in means.items() if abs(mean - best) <= CLOSE * abs(best)]
    return min(close, key=lambda run: (run[1], abs(means[run] - best)))
