"""Metric rows -> means and standard deviations -> tables with the best of each column marked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pairflow.report.words import format_number, pluralise

REAL = "data"  # the method of metric rows that compare real data with real data


@dataclass(frozen=True)
class Metric:
    """How the page names, orders and draws a metric, and which of two values it calls the better one.

    `best` is `highest`, `lowest` or empty. The summary is about the first metric with rows and a `headline`.
    `against` words the reference, training or test, where a metric has one. `counted` metrics are numbers of
    samples, printed with one decimal. `group` is the group of molecules' tables for a metric without a chart.
    """

    label: str
    modality: str
    best: str = ""
    headline: str = ""
    against: str = "to the {} images"
    log: bool = False
    chart: bool = True
    counted: bool = False
    group: str = ""


def _count(label: str, best: str = "highest", headline: str = "", group: str = "") -> Metric:
    return Metric(label, "molecules", best, headline, chart=not group, counted=True, group=group)


def _likeness(label: str, group: str, best: str = "lowest") -> Metric:
    return Metric(label, "molecules", best, chart=False, group=group)


METRICS = {
    "valid": _count("valid", headline="Valid molecules"),
    "unique": _count("unique"),
    "novel": _count("novel"),
    "unique_strict": _count("unique, strict", group="strict"),
    "novel_strict": _count("novel, strict", group="strict"),
    "invalid_empty": _count("empty", "", group="reasons"),
    "invalid_syntax": _count("syntax", "", group="reasons"),
    "invalid_ring": _count("ring closure", "", group="reasons"),
    "invalid_valence": _count("valence", "", group="reasons"),
    "invalid_kekulize": _count("aromaticity", "", group="reasons"),
    "connected": _count("connected", group="structure"),
    "scaffolds": _count("scaffolds", group="structure"),
    "novel_scaffolds": _count("novel scaffolds", group="structure"),
    "internal_diversity": _likeness("internal diversity", "structure", "highest"),
    "nn_similarity": _likeness("similarity to the nearest training molecule", "structure", ""),
    "qed_wasserstein": _likeness("QED", "properties"),
    "sa_wasserstein": _likeness("SA score", "properties"),
    "logp_wasserstein": _likeness("logP", "properties"),
    "weight_wasserstein": _likeness("molecular weight (g/mol)", "properties"),
    "fcd": _likeness("FCD", "properties"),
    "valid_per_second": _likeness("valid molecules per second", "speed", "highest"),
    "fid": Metric("FID", "images", "lowest", "FID", log=True),
    "fd": Metric("FD", "images", "lowest", "FD", log=True),
    "kid": Metric("KID", "images", "lowest", log=True),
    "kd": Metric("KD", "images", "lowest", log=True),
    "is": Metric("IS", "images", "highest"),
    "nn_l2": Metric("L2", "images", against="to the nearest {} image", log=True),
    "nn_cosine": Metric("cosine", "images", against="to the nearest {} image"),
    "nn_copies": Metric("share of copies", "images", against="of {} images", chart=False),
}


def list_metrics(modality: str, group: str | None = None) -> list[str]:
    """Names of a modality's metrics, or of one group among them, in the page's order."""
    chosen = {name: metric for name, metric in METRICS.items() if metric.modality == modality}
    return [name for name, metric in chosen.items() if group in (None, metric.group)]


@dataclass(frozen=True)
class Cell:
    """Mean of `count` values and a sample standard deviation; NaN where there is none.

    Over several seeds the mean is that of the `seeds` means, `std` is between these, and `trials` is the
    deviation between the trials of one seed. With a single seed `std` is between its trials.
    """

    mean: float = np.nan
    std: float = np.nan
    count: int = 0
    best: bool = False
    digits: int = 1
    seeds: int = 1
    trials: float = np.nan

    @property
    def text(self) -> str:
        return format_number(self.mean, self.digits) if self.count else "–"

    @property
    def spread(self) -> str:
        return self._deviation(self.std)

    @property
    def trial_spread(self) -> str:
        """The deviation between the trials of one seed, where `spread` is between seeds."""
        return self._deviation(self.trials)

    def _deviation(self, value: float) -> str:
        return f"± {value:,.{self.digits}f}" if np.isfinite(value) else ""


@dataclass(frozen=True)
class Table:
    """One metric: rows are methods, columns are numbers of sampling steps.

    `beside` completes the metric's label; `floor` is the same metric for real data, if it is known; `seeds`
    counts the training seeds of the evaluation. Evaluation, reference and extractor are those of the metric
    rows; molecules have only the first.
    """

    metric: str
    columns: list[int]
    rows: dict[str, list[Cell]]
    beside: str = ""
    floor: Cell | None = None
    evaluation: str = ""
    reference: str = ""
    extractor: str = ""
    seeds: int = 1

    @property
    def label(self) -> str:
        return f"{METRICS[self.metric].label} {self.beside}".strip()

    @property
    def count(self) -> int:
        """Values behind a complete cell."""
        return max((cell.count for cells in self.rows.values() for cell in cells), default=0)

    def lack(self, cell: Cell) -> str:
        """How many seeds or values a cell has, if it has fewer than a complete one."""
        if not cell.count:
            return ""
        if cell.seeds < self.seeds:
            return f"{cell.seeds} of {self.seeds} seeds"
        return f"n = {cell.count}" if cell.count < self.count else ""


def summarise(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluation, metric, method, nfe, mean, between, within, seeds, count, all_seeds.

    `mean` and `between` are mean and standard deviation (n - 1; NaN for one) of the means of the `seeds`
    seeds that have values. `within` is the deviation between the trials of one seed (variances pooled over
    seeds), `count` the number of values, `all_seeds` the number of seeds with any value in the evaluation.
    Values that are NaN do not count.
    """
    keys = ["evaluation", "metric", "method", "nfe"]
    seeds = metrics.groupby([*keys, "seed"], sort=True)["value"].agg(["mean", "var", "count"])
    freedom = seeds["count"] - 1
    seeds = seeds.assign(squares=seeds["var"] * freedom, freedom=freedom.clip(lower=0))
    summary = seeds.groupby(keys, sort=True).agg(
        **{"mean": ("mean", "mean"), "between": ("mean", "std"), "seeds": ("mean", "count")},
        **{name: (name, "sum") for name in ("count", "squares", "freedom")},
    )
    summary["within"] = np.sqrt(summary.pop("squares") / summary.pop("freedom"))
    summary = summary.reset_index()
    all_seeds = metrics.dropna(subset="value").groupby("evaluation")["seed"].nunique()
    return summary.assign(all_seeds=summary.evaluation.map(all_seeds).fillna(0).astype(int))


def make_table(
    summary: pd.DataFrame,
    evaluation: str,
    metric: str,
    methods: list[str],
    beside: str = "",
    floor: Cell | None = None,
    reference: str = "",
    extractor: str = "",
) -> Table:
    """The table of one metric with its best means marked; methods without any value are left out.

    Means that print alike are tied. A column with a single value has no best one.
    """
    part = summary[(summary.evaluation == evaluation) & (summary.metric == metric)]
    columns = sorted(int(nfe) for nfe in part.nfe.unique())
    means = [*part["mean"], *([floor.mean] if floor else [])]
    digits = 1 if METRICS[metric].counted else choose_digits(means)
    cells = {(row.method, row.nfe): _cell(row, digits) for row in part.itertuples(index=False)}
    rows = {
        method: [cells.get((method, nfe), Cell()) for nfe in columns]
        for method in methods
        if method in set(part.method)
    }
    marked = _mark_best(rows, METRICS[metric].best)
    floor = replace(floor, digits=digits) if floor else None
    seeds = max(part["all_seeds"].max(), 1) if len(part) else 1
    return Table(metric, columns, marked, beside, floor, evaluation, reference, extractor, seeds)


def _cell(row: Any, digits: int) -> Cell:
    """A row of `summarise`: a deviation between trials never stands where others are between seeds."""
    several = row.all_seeds > 1
    std, trials = (row.between, row.within) if several else (row.within, np.nan)
    return Cell(row.mean, std, row.count, digits=digits, seeds=row.seeds, trials=trials)


def choose_digits(values: Sequence[float]) -> int:
    """Number of decimals, 1 to 4, that shows two digits of the smallest value."""
    sizes = [abs(value) for value in values if np.isfinite(value) and value]
    return int(np.clip(1 - np.floor(np.log10(min(sizes))), 1, 4)) if sizes else 1


def _mark_best(rows: dict[str, list[Cell]], best: str) -> dict[str, list[Cell]]:
    texts = [_best(column, best) for column in zip(*rows.values(), strict=True)]
    return {
        method: [
            replace(cell, best=bool(cell.count) and cell.text == text)
            for cell, text in zip(cells, texts, strict=True)
        ]
        for method, cells in rows.items()
    }


def _best(cells: Sequence[Cell], best: str) -> str | None:
    """The text of the best cell; None where there is no choice."""
    means = sorted((cell for cell in cells if cell.count), key=lambda cell: cell.mean)
    if not best or len(means) < 2:
        return None
    return means[-1 if best == "highest" else 0].text


def describe_scope(metrics: pd.DataFrame, evaluation: str) -> str:
    """What an evaluation's numbers are counted from: `1,024 samples × 10 trials × 3 seeds`."""
    part = metrics[metrics.evaluation == evaluation]
    counts = {"trial": part.trial.nunique(), "seed": part.seed.nunique()}
    parts = [pluralise(count, name) for name, count in counts.items() if count]
    return " × ".join([f"{list_counts(part.samples)} samples", *parts])


def list_counts(counts: pd.Series) -> str:
    """The distinct counts in words: `1,000 or 5,000`."""
    return " or ".join(f"{value:,}" for value in sorted(counts.unique()))
