"""Makes a table of each metric, by method and number of sampling steps, with means and tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Generic

import numpy as np
import pandas as pd

from pairflow.config import Experiment
from pairflow.limits import FEW_REAL
from pairflow.metrics.metric import HELD_OUT, Metric, Row, best_run
from pairflow.report.stats import (
    REPETITIONS,
    Difference,
    Estimate,
    Values,
    adjust,
    difference,
    estimate,
    group_by_seed,
)
from pairflow.report.words import REFERENCES, count_samples, format_number, join_words, pluralise

REAL = "data"  # the method of metric rows that measure real data as if they were samples
_SAME_ENTROPY = 0.02  # largest relative difference of entropies that count as equal
_KEYS = ["metric", "reference", "extractor"]


# best value of a metric -> the words for a lower mean and for a higher one
_VERDICTS = {"highest": ("worse", "better"), "lowest": ("better", "worse"), "": ("lower", "higher")}


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the mean and sample standard deviation of `count` values; NaN if it is empty.

    With several seeds, `mean` and `std` are of the means of the `seeds` seeds, and `trials` is the deviation
    between trials of one seed. With a single seed, `std` is between its trials. Cells with `best` are in
    bold, and `digits` is the number of decimals.
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
        """The deviation between the trials of one seed, if `spread` is between seeds."""
        return self._deviation(self.trials)

    def _deviation(self, value: float) -> str:
        return f"± {value:,.{self.digits}f}" if np.isfinite(value) else ""


@dataclass(frozen=True, eq=False)
class Grid(Generic[Row]):
    """A table: one metric in one evaluation, by method and number of sampling steps (NFE).

    `frame` has the metric rows of samples, and `real` the metric rows of real data; all values of a table are
    comparable. The reference (the rows that samples are compared with) and the extractor (of features) are
    empty for metrics that compare nothing. The column `method` identifies a row of the table: a method, or a
    method of one of several experiments. `unit` is what the column `nfe` counts.

    A page shows the `methods` in this order, and of each its network `calls` per sample, one number for each
    column. `rival` completes the label if another table has the same metric. `all_seeds` is the number of
    training seeds of the evaluation (0: the number of seeds of this metric).
    """

    evaluation: str
    metric: str
    about: Metric
    frame: pd.DataFrame
    reference: str = ""
    extractor: str = ""
    real: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"value": []}))
    methods: Sequence[Row] = ()
    calls: Mapping[Row, Sequence[int]] = field(default_factory=dict)
    rival: str = ""
    all_seeds: int = 0
    unit: str = "sampling step"

    @property
    def qualifier(self) -> str:
        """The end of the metric's label, such as `to the test images`."""
        against = self.about.against.format(REFERENCES[self.reference]) if self.reference else ""
        return f"{against} {self.rival}".strip()

    @property
    def label(self) -> str:
        return f"{self.about.label} {self.qualifier}".strip()

    @property
    def samples(self) -> str:
        """The numbers of samples behind the values, in words."""
        return count_samples(self.frame.samples)

    @cached_property
    def values(self) -> dict[tuple[Row, int], Values]:
        """A dict from each (method, NFE) that has values to its values by seed and trial."""
        groups = self.frame.groupby(["method", "nfe"], sort=False)
        values = {(method, int(nfe)): group_by_seed(rows) for (method, nfe), rows in groups}
        return {key: by_seed for key, by_seed in values.items() if by_seed}

    @cached_property
    def estimates(self) -> dict[tuple[Row, int], Estimate]:
        return {key: estimate(values) for key, values in self.values.items()}

    @cached_property
    def means(self) -> dict[tuple[Row, int], float]:
        return {key: estimate.mean for key, estimate in self.estimates.items()}

    @cached_property
    def columns(self) -> list[int]:
        return sorted(int(nfe) for nfe in self.frame.nfe.unique())

    @property
    def seeds(self) -> int:
        return self.all_seeds or max(self.frame.dropna(subset="value").seed.nunique(), 1)

    @cached_property
    def digits(self) -> int:
        """The number of decimals of all cells, chosen so that even small means show two digits."""
        means = [*self.means.values(), *([] if self.real.empty else [self.real.value.mean()])]
        return 1 if self.about.counted else max(self.about.digits, choose_digits(means))

    @cached_property
    def floor(self) -> Cell | None:
        """The metric of real data, measured as if they were samples; None if it was not measured."""
        values = self.real.value
        return None if values.empty else Cell(values.mean(), values.std(), len(values), digits=self.digits)

    @cached_property
    def rows(self) -> dict[Row, list[Cell]]:
        """A dict from method to its cells, one per column; methods that were not measured are left out.

        In each column the best mean is marked, and also every mean that is not found different from it. The
        test is `stats.difference`, with Holm's correction over the column; from the first different mean on,
        none is marked. Means that print alike are marked together. Fewer than three seeds, or trials of one
        seed, are not tested.
        """
        measured = set(self.frame.method)
        rows = {
            method: [self._make_cell(method, nfe) for nfe in self.columns]
            for method in self.methods
            if method in measured
        }
        for index, nfe in enumerate(self.columns):
            column = {method: row[index] for method, row in rows.items() if row[index].count}
            for method in self._find_best(column, nfe):
                rows[method][index] = replace(column[method], best=True)
        return rows

    def _make_cell(self, method: Row, nfe: int) -> Cell:
        """Make a method's cell; all deviations of a table are between seeds, or all are between trials."""
        estimate = self.estimates.get((method, nfe))
        if estimate is None:
            return Cell(digits=self.digits)
        std, trials = (estimate.between, estimate.within) if self.seeds > 1 else (estimate.within, np.nan)
        return Cell(
            estimate.mean, std, estimate.trials, digits=self.digits, seeds=estimate.seeds, trials=trials
        )

    def _find_best(self, column: Mapping[Row, Cell], nfe: int) -> list[Row]:
        """Return the methods to mark in `column`, the cells at one NFE; none if there is nothing to choose.
        Without tests, only methods whose means print alike are marked together."""
        if not self.about.best or len(column) < 2:
            return []
        highest = self.about.best == "highest"
        first, *others = sorted(column, key=lambda method: column[method].mean, reverse=highest)
        tests = adjust(difference(self.values[first, nfe], self.values[method, nfe]) for method in others)
        following = takewhile(
            lambda item: column[item[0]].text == column[first].text or item[1].undecided,
            zip(others, tests, strict=True),
        )
        return [first, *(method for method, _ in following)]

    @property
    def count(self) -> int:
        """The number of values behind a complete cell."""
        return max((cell.count for cells in self.rows.values() for cell in cells), default=0)

    @property
    def tested(self) -> bool:
        """Whether tests decide what is marked besides the best mean."""
        return (self.seeds if self.seeds > 1 else self.count) >= REPETITIONS

    def missing(self, cell: Cell) -> str:
        """Return `3 of 5 seeds` or, if no seed is missing, `n = 4` for a cell with fewer values than a
        complete cell. For a complete cell, and for one without values, the text is empty."""
        if not cell.count:
            return ""
        if cell.seeds < self.seeds:
            return f"{cell.seeds} of {self.seeds} seeds"
        return f"n = {cell.count}" if cell.count < self.count else ""

    @property
    def call_rows(self) -> dict[str, Sequence[int]]:
        """The network calls per sample in each column, by method. Methods with the same calls share an entry,
        under their joined names; the largest group is called `other methods` if it has more than two. If all
        methods have the same calls, the name is empty."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for method in self.rows:
            if method in self.calls:
                groups.setdefault(tuple(self.calls[method]), []).append(str(method))
        most = max(groups.values(), key=len, default=[])
        names = [
            "other methods" if methods is most and len(methods) > 2 else join_words(methods)
            for methods in groups.values()
        ]
        return dict(zip(names if len(groups) > 1 else [""], groups, strict=False))

    def by_calls(self, count: Callable[[Row, int, str], int]) -> "Grid[Row]":
        """Return the table with a column per number of network calls in place of sampling steps. `count`
        computes the calls from method, NFE and evaluation."""
        runs = zip(self.frame.method, self.frame.nfe, strict=True)
        calls = [count(method, int(nfe), self.evaluation) for method, nfe in runs]
        return replace(self, frame=self.frame.assign(nfe=calls), unit="network call")

    def best(self, method: Row | None = None) -> tuple[Row, int]:
        """Return the (method, NFE) with the fewest steps among those whose mean is within 1 % of the best: of
        all methods, or only of `method`."""
        means = {run: mean for run, mean in self.means.items() if method in (None, run[0])}
        return best_run(means, self.about.best == "lowest")

    def compare(self, baselines: Mapping[Row, Row]) -> dict[Row, dict[int, Difference]]:
        """Test all methods against their `baselines`, with Holm's correction over all these tests.

        Returns a dict from method to {NFE: difference}, for each NFE at which both the method and its
        baseline have values.
        """
        keys = [
            (method, nfe)
            for method, baseline in baselines.items()
            for nfe in self.columns
            if (method, nfe) in self.values and (baseline, nfe) in self.values
        ]
        cells = adjust(self.test((method, nfe), (baselines[method], nfe)) for method, nfe in keys)
        tests: dict[Row, dict[int, Difference]] = {}
        for (method, nfe), cell in zip(keys, cells, strict=True):
            tests.setdefault(method, {})[nfe] = cell
        return tests

    def test(self, ours: tuple[Row, int], baseline: tuple[Row, int]) -> Difference:
        """Test the values in one cell of the table, a (method, NFE), against another cell's."""
        return difference(self.values[ours], self.values[baseline])

    def could_show(self, cell: Difference) -> bool:
        """Return whether an improvement by `cell.visible`, about the smallest that its test could decide, is
        possible.

        If lower is better, no improvement is larger than the baseline's value.
        """
        return self.about.best != "lowest" or cell.visible <= cell.base

    def verdict(self, cell: Difference) -> str:
        """Return `better`, `worse` (`higher`, `lower` for a metric without a best value) or `undecided`; an
        empty text without a test."""
        if not cell.test:
            return ""
        if not cell.decided:
            return "undecided"
        return _VERDICTS[self.about.best][cell.value > 0]

    def number(self, value: float, sign: str = "") -> str:
        """Write a value with the decimals that the means need; `sign` is as in Python's format."""
        digits = 1 if self.about.counted else choose_digits([*self.means.values()])
        return format_number(value, digits, sign)


def list_grids(metrics: pd.DataFrame, experiment: Experiment, evaluation: str) -> list[Grid]:
    """Make a table of each metric that has values in an evaluation, in the order of the page. `metrics` has
    all metric rows of the experiment."""
    known = experiment.data.list_metrics()  # in the order of the page
    uncompared = metrics.metric.isin([name for name, about in known.items() if not about.compared])
    rows = metrics.astype(dict.fromkeys(_KEYS, "object")).fillna(dict.fromkeys(_KEYS, ""))
    rows = rows.assign(**{name: rows[name].mask(uncompared, "") for name in ("reference", "extractor")})
    is_real, here = rows.method == REAL, (rows.evaluation == evaluation) & rows.nfe.notna()
    is_real &= not few_held_out(rows, evaluation)
    floors = dict(iter(rows[is_real].dropna(subset="value").groupby(_KEYS)))
    order = [(name, reference) for name in known for reference in (*REFERENCES, "")]
    measured: list[Grid] = []
    for key, group in rows[here].groupby(_KEYS, sort=False):  # in the order of the extractors
        metric, reference, extractor = map(str, key)
        if (metric, reference) in order and group.value.notna().any():
            floor = floors.get(key, rows.iloc[:0])
            own_floor = floor[floor.evaluation == evaluation]
            real = floor if own_floor.empty else own_floor  # an evaluation without a floor uses all others
            measured.append(Grid(evaluation, metric, known[metric], group, reference, extractor, real))
    return sorted(measured, key=lambda grid: order.index((grid.metric, grid.reference)))


def few_held_out(metrics: pd.DataFrame, evaluation: str) -> int:
    """Return the number of held-out rows that an evaluation measured, if they are too few to compare samples
    with; 0 if they are enough, or if their number is unknown."""
    counts = metrics.value[(metrics.metric == HELD_OUT) & (metrics.evaluation == evaluation)]
    few = counts[counts < FEW_REAL]
    return 0 if few.empty else int(few.iloc[0])


def choose_digits(values: Sequence[float]) -> int:
    """Return the number of decimals, 1 to 4, that shows two digits of the smallest value that is not 0."""
    sizes = [abs(value) for value in values if np.isfinite(value) and value]
    return int(np.clip(1 - np.floor(np.log10(min(sizes))), 1, 4)) if sizes else 1


def describe_scope(rows: pd.DataFrame) -> str:
    """Name the samples behind the metric rows of an evaluation: `1,024 samples × 10 trials × 3 seeds`."""
    counts = {"trial": rows.trial.nunique(), "seed": rows.seed.nunique()}
    parts = [pluralise(count, name) for name, count in counts.items() if count]
    return " × ".join([count_samples(rows.samples), *parts])


def differ_in_entropy(one: float, other: float) -> bool:
    """Return whether texts with these mean entropies are too different for a comparison of perplexities."""
    return abs(one - other) > _SAME_ENTROPY * max(one, other)
