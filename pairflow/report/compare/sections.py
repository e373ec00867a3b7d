"""From finished experiments to tables: a table holds values that compare, and their differences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.metrics.metric import Metric
from pairflow.metrics.ranking import leading_evaluation
from pairflow.report import tables
from pairflow.report.compare.settings import explain_difference, group_by_data
from pairflow.report.flaws import Flaws, collect_evidence, find_flaws
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import (
    Difference,
    Estimate,
    Over,
    Values,
    adjust,
    difference,
    estimate,
    group_by_seed,
)
from pairflow.report.words import BASELINE, REFERENCES, format_number, pluralise

# best value of a metric -> the words for a lower mean and for a higher one
_VERDICTS = {"highest": ("worse", "better"), "lowest": ("better", "worse"), "": ("lower", "higher")}


class RowKey(NamedTuple):
    """The method and the experiment whose values a row has."""

    method: str
    run: str


class MetricKind(NamedTuple):
    """What values must share to stand in one table; `samples` are the counts that they come from."""

    metric: str
    reference: str
    extractor: str
    samples: tuple[int, ...]


@dataclass(frozen=True)
class MethodRow:
    """A method of an experiment: NFE -> its values, the counts of samples that they come from, and its calls
    of the network for a sample."""

    key: RowKey
    values: dict[int, Values]
    samples: dict[int, tuple[int, ...]]
    calls: dict[int, int]

    @cached_property
    def cells(self) -> dict[int, Estimate]:
        return {nfe: estimate(values) for nfe, values in self.values.items()}

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


@dataclass(frozen=True)
class MetricGrid:
    """One table: rows of values that compare, and their differences from the baseline's rows.

    `elsewhere` says which experiments have this metric as another kind, so that they are missing here.
    """

    evaluation: str
    kind: MetricKind
    rows: dict[RowKey, MethodRow]
    contrasts: list[Contrast]
    elsewhere: list[str]
    about: Metric

    @property
    def name(self) -> str:
        """The metric and what its samples are compared with."""
        about, reference = self.about, self.kind.reference
        beside = about.against.format(REFERENCES[reference]) if reference else ""
        return f"{about.label} {beside}".strip()

    @property
    def label(self) -> str:
        """The name, and whose features images are compared by, or who judges text."""
        return f"{self.name}, by {self.kind.extractor}" if self.kind.extractor else self.name

    @property
    def samples(self) -> str:
        return describe_samples(self.kind.samples)

    @cached_property
    def columns(self) -> list[int]:
        return sorted({nfe for row in self.rows.values() for nfe in row.values})

    @cached_property
    def digits(self) -> int:
        """Number of decimals to show."""
        means = [cell.mean for row in self.rows.values() for cell in row.cells.values()]
        return 1 if self.about.counted else tables.choose_digits(means)

    def number(self, value: float, sign: str = "") -> str:
        """A value as the table shows it; `sign` is that of `format`."""
        return format_number(value, self.digits, sign)

    @property
    def family(self) -> int:
        """How many tests Holm's correction is over."""
        return max((cell.family for row in self.contrasts for cell in row.cells.values()), default=0)

    def shows_limit(self, cell: Difference) -> bool:
        """Whether the smallest difference that would have been decided is worth saying."""
        return cell.undecided and tables.could_show(self.about, cell)

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
    grids: list[MetricGrid]
    baseline: str
    apart: str = ""

    @property
    def evaluations(self) -> dict[str, list[MetricGrid]]:
        return {
            name: [grid for grid in self.grids if grid.evaluation == name]
            for name in dict.fromkeys(grid.evaluation for grid in self.grids)
        }

    @property
    def leading(self) -> MetricGrid | None:
        """The table that a verdict is about: of the leading evaluation, with a headline if one has it."""
        grids = [grid for grid in self.grids if grid.contrasts]
        if not grids:
            return None
        name = leading_evaluation(grid.evaluation for grid in grids)
        return min(grids, key=lambda grid: (grid.evaluation != name, not grid.about.headline))


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


def _grids(runs: list[FinishedExperiment], method: str | None) -> list[MetricGrid]:
    """Tables of experiments on the same data; the first is the baseline, or `method` of a single one."""
    names = [name for run in runs for name in [*run.experiment.methods, *run.measured.method]]
    methods = [*dict.fromkeys(names)]
    known, grids = tables.list_metrics(runs[0].experiment), []
    places = {name: place for place, name in enumerate(known)}
    for evaluation in dict.fromkeys(name for run in runs for name in run.experiment.evaluations):
        flaws = {run.name: find_flaws(collect_evidence(run), evaluation) for run in runs}
        kinds = {run.name: _rows(run, evaluation) for run in runs}
        for kind in sorted(
            {kind for rows in kinds.values() for kind in rows},
            key=lambda kind: (places[kind.metric], [*REFERENCES, ""].index(kind.reference), kind),
        ):
            rows = [row for by_kind in kinds.values() for row in by_kind.get(kind, [])]
            by_key = {row.key: row for row in sorted(rows, key=lambda row: methods.index(row.key.method))}
            contrasts = _adjust(_contrasts(by_key, runs[0].name, method, flaws))
            elsewhere, about = _elsewhere(kind, kinds), known[kind.metric]
            grids.append(MetricGrid(evaluation, kind, by_key, contrasts, elsewhere, about))
    return grids


def _rows(run: FinishedExperiment, evaluation: str) -> dict[MetricKind, list[MethodRow]]:
    """Rows of the metrics that the page has a name for; those of pixels do not depend on an extractor."""
    rows, known = run.measured, tables.list_metrics(run.experiment)
    rows = rows[(rows.evaluation == evaluation) & rows.metric.isin(list(known))]
    pixels = rows.metric.isin([name for name, about in known.items() if not about.features])
    rows = rows.assign(extractor=rows.extractor.mask(pixels, ""))
    by_kind: dict[MetricKind, list[MethodRow]] = {}
    for (metric, reference, extractor), group in rows.groupby(
        ["metric", "reference", "extractor"], sort=True
    ):
        kind = MetricKind(str(metric), str(reference), str(extractor), _counts(group))
        for method, own in group.groupby("method", sort=True):
            cells = {nfe: own[own.nfe == nfe] for nfe in sorted(own.nfe.unique().tolist())}
            values: dict[int, Values] = {nfe: group_by_seed(cell) for nfe, cell in cells.items()}
            counts = {nfe: _counts(cell) for nfe, cell in cells.items()}
            calls = {nfe: run.experiment.count_calls(str(method), int(nfe), evaluation) for nfe in cells}
            by_kind.setdefault(kind, []).append(
                MethodRow(RowKey(str(method), run.name), values, counts, calls)
            )
    return by_kind


def _counts(rows: pd.DataFrame) -> tuple[int, ...]:
    return tuple(sorted(int(count) for count in rows.samples.unique()))


def _contrasts(
    rows: Mapping[RowKey, MethodRow], run: str, method: str | None, flaws: Mapping[str, Flaws]
) -> list[Contrast]:
    contrasts = []
    for key, row in rows.items():
        base = RowKey(method, key.run) if method else RowKey(key.method, run)
        if key != base and base in rows:
            shared = [nfe for nfe in row.values if nfe in rows[base].values]
            cells = {nfe: _difference(row, rows[base], nfe) for nfe in shared}
            warnings = {nfe: _warnings((key, base), nfe, flaws) for nfe in shared}
            contrasts.append(Contrast(key, base, cells, warnings))
    return [contrast for contrast in contrasts if contrast.cells]


def _warnings(sides: Iterable[RowKey], nfe: int, flaws: Mapping[str, Flaws]) -> dict[RowKey, list[str]]:
    texts = {side: [flaw.text for flaw in flaws[side.run].get((side.method, nfe), ())] for side in sides}
    return {side: own for side, own in texts.items() if own}


def _difference(ours: MethodRow, baseline: MethodRow, nfe: int) -> Difference:
    if ours.samples[nfe] != baseline.samples[nfe]:
        counts = f"{describe_samples(ours.samples[nfe])} against {describe_samples(baseline.samples[nfe])}"
        return Difference(np.nan, reason=f"does not compare: {counts}")
    return difference(ours.values[nfe], baseline.values[nfe])


def _adjust(contrasts: list[Contrast]) -> list[Contrast]:
    """Holm's correction over all differences of a table."""
    cells = iter(adjust(cell for contrast in contrasts for cell in contrast.cells.values()))
    return [replace(row, cells={nfe: next(cells) for nfe in row.cells}) for row in contrasts]


def _elsewhere(kind: MetricKind, kinds: Mapping[str, Mapping[MetricKind, list[MethodRow]]]) -> list[str]:
    """For each experiment without the kind: as what other kind it has the same metric."""
    texts = []
    for run, by_kind in kinds.items():
        for other in by_kind if kind not in by_kind else ():
            if (other.metric, other.reference) == (kind.metric, kind.reference):
                extractor = f" by {other.extractor}" if other.extractor != kind.extractor else ""
                texts.append(f"{run} has it{extractor} from {describe_samples(other.samples)}")
    return texts


def _most_common(texts: Iterable[str]) -> str:
    return next((text for text, _ in Counter(texts).most_common(1)), "")
