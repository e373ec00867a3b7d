"""Turns finished experiments into tables, each with comparable values and their differences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pairflow.metrics.metric import leading_evaluation
from pairflow.report.findings import Flaws
from pairflow.report.grid import Grid
from pairflow.report.headline import find_flaws
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import Difference
from pairflow.report.words import BASELINE, REFERENCES, count_samples


class RowKey(NamedTuple):
    """A row of a table: its method, and the name of the experiment (`run`) that its values come from."""

    method: str
    run: str


class MetricKind(NamedTuple):
    """What values must share to stand in one table: the metric, its reference (the rows compared with), the
    extractor of features, empty if there is none, and the numbers of samples behind the values (`counts`)."""

    metric: str
    reference: str
    extractor: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class ComparedRow:
    """A row of a table, for a method of an experiment (`key`): by number of steps (NFE), its cells (estimates
    or differences) and network calls per sample."""

    key: RowKey
    cells: Mapping[int, Any]
    calls: Mapping[int, int]

    @property
    def note(self) -> str:
        """What was averaged for most of the cells, or how most of them were tested, in words."""
        notes = Counter(cell.note for cell in self.cells.values() if cell.note)
        return next((text for text, _ in notes.most_common(1)), "")


@dataclass(frozen=True)
class Contrast(ComparedRow):
    """The differences between a row and the row of its `baseline`. `warnings` says for each NFE what is wrong
    with the samples of each of the two."""

    baseline: RowKey
    warnings: Mapping[int, Mapping[RowKey, list[str]]]

    @property
    def subject(self) -> str:
        """What is compared with the baseline: an experiment, or within one experiment a method."""
        return self.key.method if self.key.run == self.baseline.run else self.key.run


@dataclass(frozen=True, eq=False)
class ComparedGrid(Grid):
    """A table of a comparison: rows of comparable values, by `RowKey` (method and experiment), and their
    differences from baselines.

    The baseline of a row is the method `baseline` of the same experiment, or if that is None the same method
    in the first of the experiments `runs`. `flaws` has what is wrong with the samples of each experiment.
    """

    runs: Sequence[FinishedExperiment] = ()
    baseline: str | None = None
    flaws: Mapping[str, Flaws] = field(default_factory=dict)

    @property
    def full_label(self) -> str:
        """The label, with the extractor of image features or the model that judges text."""
        return f"{self.label}, by {self.extractor}" if self.extractor else self.label

    @cached_property
    def cell_counts(self) -> dict[tuple[RowKey, int], tuple[int, ...]]:
        """The numbers of samples behind each cell, a (row, NFE)."""
        groups = self.frame.groupby(["method", "nfe"], sort=False)
        return {(key, int(nfe)): _count(rows.samples) for (key, nfe), rows in groups}

    def test(self, ours: tuple[RowKey, int], baseline: tuple[RowKey, int]) -> Difference:
        counts = self.cell_counts[ours], self.cell_counts[baseline]
        if counts[0] != counts[1]:
            ours_of, baseline_of = map(count_samples, counts)
            return Difference(np.nan, reason=f"cannot be compared: {ours_of} against {baseline_of}")
        return super().test(ours, baseline)

    @cached_property
    def table(self) -> dict[RowKey, ComparedRow]:
        """The rows of means, method by method, in the order of the experiments."""
        table = {}
        for method in dict.fromkeys(method for run in self.runs for method in run.experiment.methods):
            for run in self.runs:
                key = RowKey(method, run.name)
                cells = {nfe: self.estimates[key, nfe] for nfe in self.columns if (key, nfe) in self.values}
                calls = {nfe: run.experiment.count_calls(method, nfe, self.evaluation) for nfe in cells}
                if cells:
                    table[key] = ComparedRow(key, cells, calls)
        return table

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """The differences between each row and the row of its baseline; rows of baselines have none."""
        method, first = self.baseline, self.runs[0].name
        baselines = {
            key: RowKey(method, key.run) if method else RowKey(key.method, first) for key in self.table
        }
        tests = self.compare({key: base for key, base in baselines.items() if key != base})
        warnings = {key: {nfe: self._warn(nfe, key, baselines[key]) for nfe in tests[key]} for key in tests}
        return [
            Contrast(key, cells, self.table[key].calls, baselines[key], warnings[key])
            for key, cells in tests.items()
        ]

    def _warn(self, nfe: int, *sides: RowKey) -> dict[RowKey, list[str]]:
        flaws = {side: self.flaws[side.run].get((side.method, nfe), ()) for side in sides}
        return {side: [flaw.text for flaw in side_flaws] for side, side_flaws in flaws.items() if side_flaws}

    @property
    def family(self) -> int:
        """The number of tests in Holm's correction."""
        return max((cell.family for row in self.contrasts for cell in row.cells.values()), default=0)

    @cached_property
    def verdicts(self) -> Counter[str]:
        """The number of tested differences with each verdict."""
        return Counter(
            self.verdict(cell) for row in self.contrasts for cell in row.cells.values() if cell.test
        )


@dataclass(frozen=True)
class ComparedRuns:
    """Experiments on the same data, and their tables.

    `baseline` is the name of an experiment, or of a method if there is a single experiment.
    """

    runs: Sequence[FinishedExperiment]
    grids: list[ComparedGrid]
    baseline: str

    @property
    def evaluations(self) -> dict[str, list[ComparedGrid]]:
        return {
            name: [grid for grid in self.grids if grid.evaluation == name]
            for name in dict.fromkeys(grid.evaluation for grid in self.grids)
        }

    @property
    def leading(self) -> ComparedGrid | None:
        """The table on which the verdict is based, or None if nothing is compared.

        It belongs to the leading evaluation, and to the first metric that may rank methods (with `leads_as`),
        or else the first metric.
        """
        grids = [grid for grid in self.grids if grid.contrasts]
        if not grids:
            return None
        name = leading_evaluation(grid.evaluation for grid in grids)
        return min(grids, key=lambda grid: (grid.evaluation != name, not grid.about.leads_as))


def compare_runs(runs: Sequence[FinishedExperiment], method: str | None = None) -> ComparedRuns:
    """Compare experiments on the same data with the first.

    The methods of a single experiment are compared with `method`, by default UDLM or else the first.
    """
    if len(runs) == 1:
        methods = runs[0].experiment.methods
        method = method or (BASELINE if BASELINE in methods else methods[0])
    return ComparedRuns(runs, [*_make_grids(runs, method)], method or runs[0].name)


def _make_grids(runs: Sequence[FinishedExperiment], method: str | None) -> Iterator[ComparedGrid]:
    """Make the tables of experiments on the same data, in the order of the page. `method` is the baseline in
    each experiment; None if the first experiment is the baseline (see `ComparedGrid`)."""
    known = runs[0].experiment.data.list_metrics()
    order, references = [*known], [*REFERENCES, ""]
    for evaluation in dict.fromkeys(name for run in runs for name in run.experiment.evaluations):
        flaws = {run.name: find_flaws(run, evaluation) for run in runs}
        kinds = _group_rows(runs, evaluation)
        for kind in sorted(
            kinds, key=lambda kind: (order.index(kind.metric), references.index(kind.reference), kind)
        ):
            yield ComparedGrid(
                evaluation,
                kind.metric,
                known[kind.metric],
                pd.concat(kinds[kind], ignore_index=True),
                kind.reference,
                kind.extractor,
                runs=runs,
                baseline=method,
                flaws=flaws,
            )


def _group_rows(runs: Sequence[FinishedExperiment], evaluation: str) -> dict[MetricKind, list[pd.DataFrame]]:
    """Group the metric rows of an evaluation into tables of comparable values.

    Returns a dict from what the values of a table share to the rows of each experiment, in whose column
    `method` a name has become a `RowKey`. The extractor is ignored for metrics without features, such as
    distances of pixels.
    """
    known = runs[0].experiment.data.list_metrics()
    kinds: dict[MetricKind, list[pd.DataFrame]] = {}
    for run in runs:
        rows = run.measured
        rows = rows[(rows.evaluation == evaluation) & rows.metric.isin([*known])]
        pixels = rows.metric.isin([name for name, about in known.items() if not about.features])
        keys = pd.Series([RowKey(str(name), run.name) for name in rows.method], rows.index, dtype=object)
        rows = rows.assign(extractor=rows.extractor.mask(pixels, ""), method=keys)
        for (metric, reference, extractor), part in rows.groupby([*MetricKind._fields[:3]], sort=False):
            kind = MetricKind(str(metric), str(reference), str(extractor), _count(part.samples))
            kinds.setdefault(kind, []).append(part)
    return kinds


def _count(samples: pd.Series) -> tuple[int, ...]:
    return tuple(sorted(int(count) for count in samples.unique()))
