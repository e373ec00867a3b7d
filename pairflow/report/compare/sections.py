"""From runs to tables: one per evaluation and metric, of values that compare, with their differences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.report import tables
from pairflow.report.compare.inference import Difference, Estimate, Over, Values, difference, estimate, holm
from pairflow.report.compare.runs import Run, apart, same_data

SIGNIFICANCE = 0.05  # of p after Holm's correction
_BASELINE = "udlm"  # among the methods of one experiment
_REFERENCES = {"train": "training", "test": "test"}
_VERDICTS = {
    ("highest", True): "better",
    ("highest", False): "worse",
    ("lowest", True): "worse",
    ("lowest", False): "better",
    ("", True): "higher",
    ("", False): "lower",
}


class Source(NamedTuple):
    """Whose values a row has."""

    method: str
    run: str


class Kind(NamedTuple):
    """What values must share to stand in one table; `samples` are the counts that they are from."""

    metric: str
    reference: str
    extractor: str
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A method of a run: NFE -> its values, and the counts of samples that they are from."""

    source: Source
    values: dict[int, Values]
    samples: dict[int, tuple[int, ...]]

    @cached_property
    def cells(self) -> dict[int, Estimate]:
        return {nfe: estimate(values) for nfe, values in self.values.items()}

    @property
    def note(self) -> str:
        """What most of the row's means, deviations and intervals are over."""
        return _most(map(over, self.cells.values()))


@dataclass(frozen=True)
class Contrast:
    """A row less its baseline's: NFE -> the difference."""

    source: Source
    baseline: Source
    cells: dict[int, Difference]

    @property
    def note(self) -> str:
        """How most of the differences were tested."""
        return _most(filter(None, map(test, self.cells.values())))


@dataclass(frozen=True)
class Grid:
    """One table: rows of values that compare, and their differences from the baseline's rows.

    `elsewhere` says which runs have this metric as another kind, so that they are missing here.
    """

    evaluation: str
    kind: Kind
    rows: dict[Source, Row]
    contrasts: list[Contrast]
    elsewhere: list[str]

    @property
    def about(self) -> tables.Metric:
        return tables.METRICS[self.kind.metric]

    @property
    def label(self) -> str:
        about, kind = self.about, self.kind
        if about.modality != "images":
            return about.label
        beside = about.against.format(_REFERENCES[kind.reference]) if kind.reference else ""
        return f"{about.label} {beside}".strip() + (f", by {kind.extractor}" if kind.extractor else "")

    @property
    def samples(self) -> str:
        return samples(self.kind.samples)

    @cached_property
    def columns(self) -> list[int]:
        return sorted({nfe for row in self.rows.values() for nfe in row.values})

    @cached_property
    def digits(self) -> int:
        """Decimals to show."""
        means = [cell.mean for row in self.rows.values() for cell in row.cells.values()]
        return 1 if self.about.counted else tables.digits_of(means)

    def number(self, value: float, sign: str = "") -> str:
        """As the table shows it; `sign` is that of `format`."""
        return "–" if np.isnan(value) else f"{value:{sign},.{self.digits}f}".replace("-", "−")

    def verdict(self, found: Difference) -> str:
        """`better` or `worse`, of a metric without a better side `higher` or `lower`; or `undecided`."""
        if not found.test:
            return ""
        if found.adjusted > SIGNIFICANCE:
            return "undecided"
        return _VERDICTS[self.about.best, found.value > 0]


@dataclass(frozen=True)
class Section:
    """Runs on the same data, and their tables.

    `baseline` is the name of a run, or of a single run's method; `apart` says why these data are not the
    first section's.
    """

    runs: list[Run]
    grids: list[Grid]
    baseline: str
    apart: str = ""

    @property
    def evaluations(self) -> dict[str, list[Grid]]:
        return {
            name: [grid for grid in self.grids if grid.evaluation == name]
            for name in dict.fromkeys(grid.evaluation for grid in self.grids)
        }

    @property
    def verdicts(self) -> Counter[str]:
        """How many of the differences that were tested are what."""
        cells = (
            (grid, cell) for grid in self.grids for each in grid.contrasts for cell in each.cells.values()
        )
        return Counter(verdict for grid, cell in cells if (verdict := grid.verdict(cell)))


def sections(runs: Sequence[Run], method: str | None = None) -> list[Section]:
    """One per data set. Its first run is the baseline; of a single run, `method` or the default one."""
    groups = same_data(runs)
    if len(runs) == 1:
        method = method or default_method(runs[0])
    return [
        Section(
            runs=group,
            grids=_grids(group, method),
            baseline=method or group[0].name,
            apart="" if group is groups[0] else apart(groups[0][0], group[0]),
        )
        for group in groups
    ]


def default_method(run: Run) -> str:
    """The method that a single run's others are set against."""
    methods = run.settings["methods"]
    return _BASELINE if _BASELINE in methods else methods[0]


def over(found: Estimate) -> str:
    """What an estimate is over, in words."""
    if found.over == Over.SEEDS:
        return f"over {found.seeds} seeds"
    return f"over {found.trials} trials of one seed" if found.trials > 1 else "a single value"


def test(found: Difference) -> str:
    """How a difference was tested, in words; empty where it was not."""
    if not found.test:
        return ""
    paired = found.test == "paired t"
    counts = f"{found.n}" if paired else f"{found.n} against {found.n_baseline}"
    return (
        f"{found.test}, {counts} {found.over}{' of one seed' if paired and found.over == Over.TRIALS else ''}"
    )


def samples(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,} samples" if low == high else f"{low:,} to {high:,} samples"


def _grids(runs: list[Run], method: str | None) -> list[Grid]:
    """Of runs on the same data; their first run is the baseline, or `method` of a single one."""
    methods = [
        *dict.fromkeys(name for run in runs for name in [*run.settings["methods"], *run.measured.method])
    ]
    found = []
    for evaluation in dict.fromkeys(name for run in runs for name in run.settings["evaluations"]):
        kinds = {run.name: _rows(run, evaluation) for run in runs}
        for kind in sorted({kind for each in kinds.values() for kind in each}, key=_place):
            rows = [row for each in kinds.values() for row in each.get(kind, [])]
            by_source = {
                row.source: row for row in sorted(rows, key=lambda row: methods.index(row.source.method))
            }
            contrasts = _contrasts(by_source, runs[0].name, method)
            found.append(Grid(evaluation, kind, by_source, _adjusted(contrasts), _elsewhere(kind, kinds)))
    return found


def _rows(run: Run, evaluation: str) -> dict[Kind, list[Row]]:
    """Of the metrics that the page knows."""
    rows = run.measured
    rows = rows[(rows.evaluation == evaluation) & rows.metric.isin(list(tables.METRICS))]
    found = {}
    for names, group in rows.groupby(["metric", "reference", "extractor"], sort=True):
        kind = Kind(*names, samples=_counts(group))
        found[kind] = []
        for method, own in group.groupby("method", sort=True):
            cells = list(own.groupby("nfe", sort=True))
            values = {int(nfe): _by_seed(cell) for nfe, cell in cells}
            counts = {int(nfe): _counts(cell) for nfe, cell in cells}
            found[kind].append(Row(Source(method, run.name), values, counts))
    return found


def _by_seed(cell: pd.DataFrame) -> Values:
    values: dict[int, dict[int, float]] = {}
    for seed, trial, value in zip(cell.seed, cell.trial, cell.value, strict=True):
        values.setdefault(seed, {})[trial] = value
    return values


def _counts(rows: pd.DataFrame) -> tuple[int, ...]:
    return tuple(sorted(int(count) for count in rows.samples.unique()))


def _place(kind: Kind) -> tuple:
    return [*tables.METRICS].index(kind.metric), [*_REFERENCES, ""].index(kind.reference), kind


def _contrasts(rows: Mapping[Source, Row], run: str, method: str | None) -> list[Contrast]:
    found = []
    for source, row in rows.items():
        base = Source(method, source.run) if method else Source(source.method, run)
        if source != base and base in rows:
            shared = [nfe for nfe in row.values if nfe in rows[base].values]
            found.append(Contrast(source, base, {nfe: _difference(row, rows[base], nfe) for nfe in shared}))
    return [contrast for contrast in found if contrast.cells]


def _difference(ours: Row, baseline: Row, nfe: int) -> Difference:
    if ours.samples[nfe] != baseline.samples[nfe]:
        counts = f"{samples(ours.samples[nfe])} against {samples(baseline.samples[nfe])}"
        return Difference(np.nan, reason=f"does not compare: {counts}")
    return difference(ours.values[nfe], baseline.values[nfe])


def _adjusted(contrasts: list[Contrast]) -> list[Contrast]:
    """Holm's correction over all differences of a table."""
    p = iter(holm([cell.p for contrast in contrasts for cell in contrast.cells.values()]))
    return [
        replace(each, cells={nfe: replace(cell, adjusted=next(p)) for nfe, cell in each.cells.items()})
        for each in contrasts
    ]


def _elsewhere(kind: Kind, kinds: Mapping[str, Mapping[Kind, list[Row]]]) -> list[str]:
    """Of each run without the kind, as what else it has the same metric."""
    found = []
    for run, each in kinds.items():
        for other in each if kind not in each else ():
            if (other.metric, other.reference) == (kind.metric, kind.reference):
                extractor = f" by {other.extractor}" if other.extractor != kind.extractor else ""
                found.append(f"{run} has it{extractor} from {samples(other.samples)}")
    return found


def _most(texts: Iterable[str]) -> str:
    return next((text for text, _ in Counter(texts).most_common(1)), "")
