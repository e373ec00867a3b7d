"""From finished experiments to tables: a table holds values that compare, and their differences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.metrics.metric import Metric
from pairflow.metrics.ranking import leading_evaluation
from pairflow.report.compare.inputs import explain_difference, group_by_data
from pairflow.report.flaws import Flaws, collect_evidence, find_flaws
from pairflow.report.grid import Grid, list_metrics
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import Difference, Estimate, Over
from pairflow.report.words import BASELINE, REFERENCES, pluralise

# best value of a metric -> the words for a lower mean and for a higher one
_VERDICTS = {"highest": ("worse", "better"), "lowest": ("better", "worse"), "": ("lower", "higher")}


class RowKey(NamedTuple):
    """The method and the experiment whose values a row has."""

    method: str
    run: str


class MetricKind(NamedTuple):
    """What values must share to stand in one table; `counts` are the samples that they come from."""

    metric: str
    reference: str
    extractor: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class MethodRow:
    """A method of an experiment: NFE -> its mean, and its calls of the network for a sample."""

    key: RowKey
    cells: dict[int, Estimate]
    calls: dict[int, int]

    @property
    def note(self) -> str:
        """What most of the row's means, deviations and intervals are over."""
        return _most_common(map(describe_observations, self.cells.values()))


@dataclass(frozen=True)
class Contrast:
    """A row less its baseline: NFE -> the difference, and what is wrong with the samples of each side."""

    key: RowKey
    baseline: RowKey
    cells: dict[int, Difference]
    warnings: dict[int, dict[RowKey, list[str]]]

    @property
    def subject(self) -> str:
        """What is compared with the baseline: the experiment, or within one experiment the method."""
        return self.key.method if self.key.run == self.baseline.run else self.key.run

    @property
    def tested(self) -> dict[int, Difference]:
        return {nfe: cell for nfe, cell in self.cells.items() if cell.test}

    @property
    def note(self) -> str:
        """How most of the differences were tested."""
        return _most_common(filter(None, map(describe_test, self.cells.values())))


@dataclass(frozen=True, eq=False)
class ComparedGrid(Grid):
    """One table: rows of values that compare, by `RowKey`, and their differences from the baseline's rows.

    `counts` are the numbers of samples that the values come from. `elsewhere` says which experiments have
    this metric as another kind, so that they are missing here.
    """

    counts: tuple[int, ...] = ()
    table: Mapping[RowKey, MethodRow] = field(default_factory=dict)
    contrasts: Sequence[Contrast] = ()
    elsewhere: Sequence[str] = ()

    @property
    def full_label(self) -> str:
        """The label, and whose features images are compared by, or who judges text."""
        return f"{self.label}, by {self.extractor}" if self.extractor else self.label

    @property
    def samples(self) -> str:
        return describe_samples(self.counts)

    @cached_property
    def cell_counts(self) -> dict[tuple[RowKey, int], tuple[int, ...]]:
        """The numbers of samples that each cell comes from."""
        groups = self.frame.groupby(["method", "nfe"], sort=False)
        return {(key, int(nfe)): _count(rows.samples) for (key, nfe), rows in groups}

    def test(self, ours: tuple[RowKey, int], baseline: tuple[RowKey, int]) -> Difference:
        counts = self.cell_counts[ours], self.cell_counts[baseline]
        if counts[0] != counts[1]:
            reason = f"does not compare: {describe_samples(counts[0])} against {describe_samples(counts[1])}"
            return Difference(np.nan, reason=reason)
        return super().test(ours, baseline)

    @property
    def family(self) -> int:
        """How many tests Holm's correction is over."""
        return max((cell.family for row in self.contrasts for cell in row.cells.values()), default=0)

    def shows_limit(self, cell: Difference) -> bool:
        """Whether the smallest difference that would have been decided is worth saying."""
        return cell.undecided and self.could_show(cell)

    def verdict(self, cell: Difference) -> str:
        """`better` or `worse`, for a metric without a better side `higher` or `lower`; or `undecided`."""
        if not cell.test:
            return ""
        if not cell.decided:
            return "undecided"
        return _VERDICTS[self.about.best][cell.value > 0]

    @cached_property
    def verdicts(self) -> Counter[str]:
        """Verdict -> how many of the tested differences have it."""
        return Counter(self.verdict(cell) for row in self.contrasts for cell in row.tested.values())


@dataclass(frozen=True)
class DataSection:
    """Experiments on the same data, and their tables.

    `baseline` is the name of an experiment, or of a method where there is a single experiment; `apart` says
    how these data differ from the first section's.
    """

    runs: list[FinishedExperiment]
    grids: list[ComparedGrid]
    baseline: str
    apart: str = ""

    @property
    def evaluations(self) -> dict[str, list[ComparedGrid]]:
        return {
            name: [grid for grid in self.grids if grid.evaluation == name]
            for name in dict.fromkeys(grid.evaluation for grid in self.grids)
        }

    @property
    def leading(self) -> ComparedGrid | None:
        """The table that a verdict is about: of the leading evaluation, with a headline if one has it."""
        grids = [grid for grid in self.grids if grid.contrasts]
        if not grids:
            return None
        name = leading_evaluation(grid.evaluation for grid in grids)
        return min(grids, key=lambda grid: (grid.evaluation != name, not grid.about.leads_as))


def make_sections(runs: Sequence[FinishedExperiment], method: str | None = None) -> list[DataSection]:
    """A section per data set, whose first experiment is the baseline.

    The methods of a single experiment are compared with `method`, by default UDLM or else the first.
    """
    groups = group_by_data(runs)
    if len(runs) == 1:
        methods = runs[0].experiment.methods
        method = method or (BASELINE if BASELINE in methods else methods[0])
    return [
        DataSection(
            runs=group,
            grids=_grids(group, method),
            baseline=method or group[0].name,
            apart="" if group is groups[0] else explain_difference(groups[0][0], group[0]),
        )
        for group in groups
    ]


def describe_observations(cell: Estimate) -> str:
    """What an estimate is over, in words."""
    if cell.over == Over.SEEDS:
        return f"over {cell.seeds} seeds"
    return f"over {cell.trials} trials of one seed" if cell.trials > 1 else "a single value"


def describe_test(cell: Difference) -> str:
    """How a difference was tested, in words; empty where it was not."""
    if not cell.test:
        return ""
    paired = cell.test == "paired t"
    counts = f"{cell.n}" if paired else f"{cell.n} against {cell.n_baseline}"
    one_seed = " of one seed" if paired and cell.over == Over.TRIALS else ""
    return f"{cell.test}, {counts} {cell.over}{one_seed}"


def describe_samples(counts: Sequence[int]) -> str:
    """`1,024 samples`, `300 to 1,024 samples`."""
    low, high = min(counts), max(counts)
    return f"{'' if low == high else f'{low:,} to '}{pluralise(high, 'sample')}"


def _grids(runs: list[FinishedExperiment], method: str | None) -> list[ComparedGrid]:
    """Tables of experiments on the same data; the first is the baseline, or `method` of a single one."""
    known, grids = list_metrics(runs[0].experiment), []
    places, references = [*known], [*REFERENCES, ""]
    for evaluation in dict.fromkeys(name for run in runs for name in run.experiment.evaluations):
        flaws = {run.name: find_flaws(collect_evidence(run), evaluation) for run in runs}
        frame = pd.concat([_rows(run, evaluation, known) for run in runs], ignore_index=True)
        kinds = {MetricKind(*key): rows for key, rows in frame.groupby([*MetricKind._fields], sort=False)}
        for kind in sorted(
            kinds, key=lambda kind: (places.index(kind.metric), references.index(kind.reference), kind)
        ):
            metric, reference, extractor, counts = kind
            elsewhere = [text for run in runs for text in _find_elsewhere(kind, run.name, kinds)]
            grid = ComparedGrid(
                evaluation,
                *(metric, known[metric], kinds[kind], reference, extractor),
                counts=counts,
                elsewhere=elsewhere,
            )
            table = _make_rows(grid, runs)
            grid = replace(grid, table=table)
            grids.append(replace(grid, contrasts=_contrasts(grid, runs[0].name, method, flaws)))
    return grids


def _rows(run: FinishedExperiment, evaluation: str, known: Mapping[str, Metric]) -> pd.DataFrame:
    """Rows of the metrics that the page has a name for, with the `counts` of samples of their kind.

    Metrics of pixels do not depend on an extractor. Their methods are `RowKey`.
    """
    rows = run.measured
    rows = rows[(rows.evaluation == evaluation) & rows.metric.isin([*known])]
    pixels = rows.metric.isin([name for name, about in known.items() if not about.features])
    rows = rows.assign(extractor=rows.extractor.mask(pixels, ""))
    keys = [*MetricKind._fields[:3]]
    counts = {key: _count(own.samples) for key, own in rows.groupby(keys)}
    of_rows = [counts[key] for key in zip(*(rows[name] for name in keys), strict=True)]
    methods = [RowKey(str(method), run.name) for method in rows.method]
    index = rows.index
    return rows.assign(
        method=pd.Series(methods, index, dtype=object), counts=pd.Series(of_rows, index, dtype=object)
    )


def _count(samples: pd.Series) -> tuple[int, ...]:
    return tuple(sorted(int(count) for count in samples.unique()))


def _make_rows(grid: ComparedGrid, runs: Sequence[FinishedExperiment]) -> dict[RowKey, MethodRow]:
    """The rows of a table: the rows of one method stand together, in the order of the experiments."""
    names = [name for run in runs for name in [*run.experiment.methods, *run.measured.method]]
    table = {}
    for method in dict.fromkeys(names):
        for run in runs:
            key = RowKey(str(method), run.name)
            steps = [nfe for nfe in grid.columns if (key, nfe) in grid.values]
            cells = {nfe: grid.estimates[key, nfe] for nfe in steps}
            calls = {nfe: run.experiment.count_calls(key.method, nfe, grid.evaluation) for nfe in steps}
            if cells:
                table[key] = MethodRow(key, cells, calls)
    return table


def _contrasts(
    grid: ComparedGrid, run: str, method: str | None, flaws: Mapping[str, Flaws]
) -> list[Contrast]:
    """The rows less their baselines: the same method of the experiment `run`, or `method` of each."""
    baselines = {key: RowKey(method, key.run) if method else RowKey(key.method, run) for key in grid.table}
    tests = grid.compare({key: base for key, base in baselines.items() if key != base})
    return [
        Contrast(
            key,
            baselines[key],
            cells,
            {nfe: _warnings((key, baselines[key]), nfe, flaws) for nfe in cells},
        )
        for key, cells in tests.items()
    ]


def _warnings(sides: Iterable[RowKey], nfe: int, flaws: Mapping[str, Flaws]) -> dict[RowKey, list[str]]:
    texts = {side: [flaw.text for flaw in flaws[side.run].get((side.method, nfe), ())] for side in sides}
    return {side: own for side, own in texts.items() if own}


def _find_elsewhere(kind: MetricKind, run: str, kinds: Mapping[MetricKind, pd.DataFrame]) -> Iterable[str]:
    """As what other kind an experiment without the kind has the same metric."""
    own = [other for other, rows in kinds.items() if any(key.run == run for key in rows.method)]
    for other in own if kind not in own else ():
        if other[:2] == kind[:2]:
            extractor = f" by {other.extractor}" if other.extractor != kind.extractor else ""
            yield f"{run} has it{extractor} from {describe_samples(other.counts)}"


def _most_common(texts: Iterable[str]) -> str:
    return next((text for text, _ in Counter(texts).most_common(1)), "")
