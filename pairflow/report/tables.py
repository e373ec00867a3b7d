"""Metric rows -> means and standard deviations -> tables that mark what is not worse than a column's best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
import pandas as pd

from pairflow.config import Experiment
from pairflow.kinds import kind_of
from pairflow.metrics.metric import Metric
from pairflow.report.stats import REPETITIONS, Difference, Values, adjust, difference, estimate, group_by_seed
from pairflow.report.words import format_number, join_words, pluralise

_SAME_ENTROPY = 0.02  # entropies that differ by more, as a share, are not equal
REAL = "data"  # the method of metric rows that compare real data with real data


def list_metrics(experiment: Experiment) -> Mapping[str, Metric]:
    """The metrics of an experiment's kind of data, in the page's order."""
    return kind_of(experiment.data).list_metrics(experiment.data)


def could_show(metric: Metric, cell: Difference) -> bool:
    """Whether a gain as large as `visible` is possible.

    Where lower is better no gain exceeds the baseline, but of distances that may be negative.
    """
    return metric.best != "lowest" or metric.signed or cell.visible <= cell.base


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
    rows; metrics that are not compared have only the first. `calls` are the methods' calls of the network for
    a sample, column by column.
    """

    metric: str
    about: Metric
    columns: list[int]
    rows: dict[str, list[Cell]]
    beside: str = ""
    floor: Cell | None = None
    evaluation: str = ""
    reference: str = ""
    extractor: str = ""
    seeds: int = 1
    calls: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.about.label} {self.beside}".strip()

    @property
    def count(self) -> int:
        """Values behind a complete cell."""
        return max((cell.count for cells in self.rows.values() for cell in cells), default=0)

    @property
    def call_rows(self) -> dict[str, Sequence[int]]:
        """Methods with the same calls -> these calls. All methods have no name, and unknown calls no row."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for method in self.rows:
            if method in self.calls:
                groups.setdefault(tuple(self.calls[method]), []).append(method)
        names = [join_words(methods) if len(methods) < 3 else "other methods" for methods in groups.values()]
        return dict(zip(names if len(groups) > 1 else [""], groups, strict=False))

    @property
    def tested(self) -> bool:
        """Whether a test says what is marked beside the best mean."""
        return (self.seeds if self.seeds > 1 else self.count) >= REPETITIONS

    def lack(self, cell: Cell) -> str:
        """How many seeds or values a cell has, if it has fewer than a complete one."""
        if not cell.count:
            return ""
        if cell.seeds < self.seeds:
            return f"{cell.seeds} of {self.seeds} seeds"
        return f"n = {cell.count}" if cell.count < self.count else ""


def summarise(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluation, metric, method, nfe, values, all_seeds.

    `values` are `stats.Values`, without those that are NaN; `all_seeds` is the number of seeds with any value
    in the evaluation.
    """
    keys = ["evaluation", "metric", "method", "nfe"]
    rows = [(*key, group_by_seed(group)) for key, group in metrics.groupby(keys, sort=True)]
    summary = pd.DataFrame(rows, columns=[*keys, "values"])
    all_seeds = metrics.dropna(subset="value").groupby("evaluation")["seed"].nunique()
    return summary.assign(all_seeds=summary.evaluation.map(all_seeds).fillna(0).astype(int))


def make_table(
    summary: pd.DataFrame,
    evaluation: str,
    metric: str,
    about: Metric,
    methods: list[str],
    beside: str = "",
    floor: Cell | None = None,
    reference: str = "",
    extractor: str = "",
) -> Table:
    """The table of one metric; methods without any row are left out.

    Marked in each column are the best mean and those after it, down to the first that the test of
    `stats.difference`, with Holm's correction over the column, does not leave open. Those that print alike
    are marked together. Fewer than three seeds, or trials of one, are not tested.
    """
    part = summary[(summary.evaluation == evaluation) & (summary.metric == metric)]
    columns = sorted(int(nfe) for nfe in part.nfe.unique())
    seeds = max(int(part["all_seeds"].max()), 1) if len(part) else 1
    values = dict(zip(zip(part.method, part.nfe, strict=True), part["values"], strict=True))
    cells = {key: _cell(own, seeds > 1) for key, own in values.items()}
    means = [*(cell.mean for cell in cells.values()), *([floor.mean] if floor else [])]
    digits = 1 if about.counted else max(about.digits, choose_digits(means))
    rows = {
        method: [replace(cells.get((method, nfe), Cell()), digits=digits) for nfe in columns]
        for method in methods
        if method in set(part.method)
    }
    marked = {method: [*row] for method, row in rows.items()}
    for place, nfe in enumerate(columns):
        column = {method: row[place] for method, row in rows.items() if row[place].count}
        own = {method: values[method, nfe] for method in column}
        for method in _best(column, own, about.best):
            marked[method][place] = replace(column[method], best=True)
    floor = replace(floor, digits=digits) if floor else None
    return Table(metric, about, columns, marked, beside, floor, evaluation, reference, extractor, seeds)


def _cell(values: Values, several: bool) -> Cell:
    """A deviation between trials never stands where others are between seeds."""
    if not values:
        return Cell()
    own = estimate(values)
    std, trials = (own.between, own.within) if several else (own.within, np.nan)
    return Cell(own.mean, std, own.trials, seeds=own.seeds, trials=trials)


def choose_digits(values: Sequence[float]) -> int:
    """Number of decimals, 1 to 4, that shows two digits of the smallest value."""
    sizes = [abs(value) for value in values if np.isfinite(value) and value]
    return int(np.clip(1 - np.floor(np.log10(min(sizes))), 1, 4)) if sizes else 1


def _best(cells: Mapping[str, Cell], values: Mapping[str, Values], best: str) -> list[str]:
    """The marked methods of a column; none where there is no choice. Without a test those that tie."""
    if not best or len(cells) < 2:
        return []
    first, *others = sorted(cells, key=lambda method: cells[method].mean, reverse=best == "highest")
    tests = adjust(difference(values[first], values[method]) for method in others)
    following = takewhile(
        lambda item: cells[item[0]].text == cells[first].text or item[1].undecided,
        zip(others, tests, strict=True),
    )
    return [first, *(method for method, _ in following)]


def describe_scope(metrics: pd.DataFrame, evaluation: str) -> str:
    """What an evaluation's numbers are counted from: `1,024 samples × 10 trials × 3 seeds`."""
    part = metrics[metrics.evaluation == evaluation]
    counts = {"trial": part.trial.nunique(), "seed": part.seed.nunique()}
    parts = [pluralise(count, name) for name, count in counts.items() if count]
    return " × ".join([f"{list_counts(part.samples)} samples", *parts])


def differ_in_entropy(one: float, other: float) -> bool:
    """Whether samples of text with these mean entropies are too unlike for a comparison of perplexities."""
    return abs(one - other) > _SAME_ENTROPY * max(one, other)


def list_counts(counts: Iterable[int]) -> str:
    """The distinct counts in words: `1,000 or 5,000`."""
    return " or ".join(f"{value:,}" for value in sorted({*counts}))
