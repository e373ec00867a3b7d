"""Metric rows -> means and standard deviations -> tables with the best of each column marked."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

PAPER = ("valid", "unique", "novel")
STRICT = ("unique_strict", "novel_strict")


@dataclass(frozen=True)
class Cell:
    """Mean and sample standard deviation of `count` values; NaN where there is none."""

    mean: float = np.nan
    std: float = np.nan
    count: int = 0
    best: bool = False

    @property
    def text(self) -> str:
        return f"{self.mean:,.1f}" if self.count else "–"

    @property
    def spread(self) -> str:
        return f"± {self.std:,.1f}" if self.count > 1 else ""


@dataclass(frozen=True)
class Table:
    """One metric: rows are methods, columns are numbers of sampling steps."""

    metric: str
    columns: list[int]
    rows: dict[str, list[Cell]]

    @property
    def count(self) -> int:
        """Values behind a complete cell."""
        return max((cell.count for cells in self.rows.values() for cell in cells), default=0)


def summarise(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluation, metric, method, nfe, mean, std (n - 1; NaN for one value), count.

    They are over seeds and trials together; values that are NaN do not count.
    """
    groups = metrics.groupby(["evaluation", "metric", "method", "nfe"], sort=True)["value"]
    return groups.agg(["mean", "std", "count"]).reset_index()


def table(summary: pd.DataFrame, evaluation: str, metric: str, methods: list[str]) -> Table:
    """The table of one metric, its highest means marked; methods without any value of it are left out.

    Means that print alike are tied. A column with a single value has no best.
    """
    part = summary[(summary.evaluation == evaluation) & (summary.metric == metric)]
    columns = sorted(int(nfe) for nfe in part.nfe.unique())
    found = part[["method", "nfe", "mean", "std", "count"]].itertuples(index=False, name=None)
    cells = {(method, nfe): Cell(mean, std, count) for method, nfe, mean, std, count in found}
    rows = {
        method: [cells.get((method, nfe), Cell()) for nfe in columns]
        for method in methods
        if method in set(part.method)
    }
    return Table(metric, columns, _mark_best(rows, len(columns)))


def _mark_best(rows: dict[str, list[Cell]], width: int) -> dict[str, list[Cell]]:
    marked = {method: [] for method in rows}
    for column in range(width):
        present = [cells[column] for cells in rows.values() if cells[column].count]
        best = max(present, key=lambda cell: cell.mean).text if len(present) > 1 else None
        for method, cells in rows.items():
            cell = cells[column]
            marked[method].append(
                Cell(cell.mean, cell.std, cell.count, bool(cell.count) and cell.text == best)
            )
    return marked


def scope(metrics: pd.DataFrame, evaluation: str) -> str:
    """What the numbers of an evaluation are counted from, in words: `1,024 samples × 10 trials × 3 seeds`."""
    part = metrics[metrics.evaluation == evaluation]
    samples = " or ".join(f"{value:,}" for value in sorted(part.samples.unique()))
    counts = {"trial": part.trial.nunique(), "seed": part.seed.nunique()}
    parts = [f"{number} {name}{'s' if number > 1 else ''}" for name, number in counts.items() if number]
    return " × ".join([f"{samples} samples", *parts])
