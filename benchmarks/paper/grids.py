"""The paper's tables as grids of cells: printed values beside measured ones, and the effects of pairing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.paper import verdicts
from benchmarks.paper.measured import Measured, Measurements
from benchmarks.paper.printed import (
    FIGURES,
    METRICS,
    NOTES,
    NUMBERS,
    TITLES,
    Printed,
    best,
    parse_name,
    tables,
)
from benchmarks.paper.verdicts import JUDGED, Comparison, Effect, Status
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import BASELINE, OURS, format_number

_CONTINUOUS = "condot"  # the baseline in a continuous flow


@dataclass(frozen=True)
class PaperCell:
    """A printed value and what one experiment measured for it, shown with `digits` decimals."""

    printed: Printed
    measured: Measured | None
    digits: int

    @property
    def status(self) -> Status:
        if self.measured is None:
            return Status.NOT_RUN if self.printed.measurable else Status.OUTSIDE
        if self.measured.apart:
            return Status.EFFECT
        if self.measured.reason:
            return Status.UNJUDGED
        return verdicts.judge(self.measured.estimate, self.printed.value, self.printed.std)

    @property
    def judged(self) -> bool:
        return self.status in JUDGED

    @property
    def unjudged(self) -> str:
        """Why it is not judged though it is measured at the paper's scale, in short; else empty."""
        if self.measured is None or self.status != Status.UNJUDGED:
            return ""
        return self.measured.reason.partition(":")[0]

    @property
    def value(self) -> float:
        """The measured mean; NaN where there is none."""
        return self.measured.estimate.mean if self.measured else np.nan

    @property
    def text(self) -> str:
        return format_number(self.value, self.digits) if self.measured else ""

    @property
    def spread(self) -> str:
        """The deviation between the observations; empty for a single one."""
        if self.measured is None or self.measured.estimate.count < 2:
            return ""
        return format_number(self.measured.estimate.std, self.digits)

    @property
    def difference(self) -> str:
        """Measured less printed, with its sign; empty where the two are not of one kind."""
        if self.measured is None or self.measured.apart:
            return ""
        difference = self.value - self.printed.value
        text = format_number(difference, self.digits)
        return text if text.startswith("−") or not float(text.replace(",", "")) else f"+{text}"

    @property
    def margin(self) -> str:
        """How far off the printed value could be and still agree; empty where it is not judged."""
        if self.measured is None or not self.judged:
            return ""
        return format_number(verdicts.margin(self.measured.estimate, self.printed.std), self.digits)


@dataclass(frozen=True)
class PrintedRow:
    """A row of a grid: what is printed in its columns, and the cells of each experiment."""

    label: str
    printed: list[Printed | None]
    runs: dict[str, list[PaperCell | None]]

    @property
    def marked(self) -> bool:
        """Whether a note on its method stands below, which ‡ points to."""
        return any(text.startswith("‡") for value in self.printed if value for text in value.remaining)

    def unjudged(self, run: str) -> str:
        """Why an experiment's cells of this row are not judged at the paper's scale, if one reason holds."""
        reasons = {cell.unjudged for cell in self.runs[run] if cell and cell.measured}
        return reasons.pop() if len(reasons) == 1 else ""


@dataclass(frozen=True)
class EffectCell:
    """One effect: the paper's and an experiment's; None where there is none."""

    paper: Effect | None
    here: Effect | None = None
    confounded: bool = False

    @property
    def comparison(self) -> Comparison | None:
        """Whether the two agree; None where one is missing or the printed values do not compare."""
        if self.paper is None or self.here is None or self.confounded:
            return None
        return verdicts.compare_effects(self.here, self.paper)


@dataclass(frozen=True)
class EffectRow:
    """A method against the baseline with the same distillations."""

    method: str
    baseline: str
    paper: list[EffectCell]
    runs: dict[str, list[EffectCell]]


@dataclass(frozen=True)
class PaperGrid:
    """One metric of one data set, or one table that has a row for each data set."""

    label: str
    better: str
    sampled: bool
    columns: list[str]
    rows: list[PrintedRow]
    effects: list[EffectRow]
    runs: dict[str, FinishedExperiment]
    best: set[Printed]
    notes: list[str]

    @property
    def kinds(self) -> dict[str, str]:
        """Experiment -> what its values are, where they are not what is printed."""
        return {
            name: cell.measured.kind
            for row in self.rows
            for name, cells in row.runs.items()
            for cell in cells
            if cell and cell.measured and cell.measured.kind
        }


@dataclass(frozen=True)
class PaperSection:
    """A table of the paper."""

    table: str
    title: str
    grids: list[PaperGrid]

    @property
    def number(self) -> str:
        """What the paper calls it."""
        return f"Table {NUMBERS[self.table]}"

    @property
    def figures(self) -> str:
        """The figures of the paper that draw its values; empty if there are none."""
        return FIGURES.get(self.table, "")

    @property
    def cells(self) -> Iterator[tuple[Printed, dict[str, PaperCell]]]:
        """Each printed value, and the cells of the experiments that share its row."""
        for row in [row for grid in self.grids for row in grid.rows]:
            for i, value in enumerate(row.printed):
                if value is not None:
                    yield value, {name: cell for name, cells in row.runs.items() if (cell := cells[i])}

    @property
    def values(self) -> list[Printed]:
        return [value for value, _ in self.cells]

    @property
    def runs(self) -> dict[str, FinishedExperiment]:
        return {name: run for grid in self.grids for name, run in grid.runs.items()}


def make_sections(runs: Iterable[FinishedExperiment]) -> list[PaperSection]:
    """Every table of the paper beside the experiments, those at the paper's scale first."""
    measurements = [Measurements(run) for run in sorted(runs, key=lambda run: run.reduced)]
    return [
        PaperSection(name, TITLES[name], _grids(values, measurements)) for name, values in tables().items()
    ]


def statuses(sections: Sequence[PaperSection]) -> dict[Printed, Status]:
    """Each printed value and its most telling status among the experiments."""
    order = list(Status)
    result = {}
    for value, cells in (pair for section in sections for pair in section.cells):
        unmeasured = PaperCell(value, None, value.digits)
        result[value] = min([cell.status for cell in (unmeasured, *cells.values())], key=order.index)
    return result


def _grids(values: list[Printed], measurements: list[Measurements]) -> list[PaperGrid]:
    if values[0].by_dataset:
        return [_grid("", values, measurements)]
    parts: dict[tuple[str, str], list[Printed]] = {}
    for value in values:
        metric = value.metric if value.nfe is not None else values[0].metric  # times stand beside the first
        parts.setdefault((value.dataset, metric), []).append(value)
    several = len({dataset for dataset, _ in parts}) > 1
    return [
        _grid(f"{part[0].data_name}: " * several + METRICS[metric], part, measurements)
        for (dataset, metric), part in parts.items()
    ]


def _grid(label: str, values: list[Printed], measurements: list[Measurements]) -> PaperGrid:
    by_dataset = values[0].by_dataset
    places: dict[str, dict[str, Printed]] = {}
    columns: dict[str, list[Printed]] = {}
    for value in values:
        places.setdefault(value.row, {})[value.column] = value
        columns.setdefault(value.column, []).append(value)
    digits = [max(value.digits for value in column) for column in columns.values()]
    rows = [
        _row(name, [placed.get(column) for column in columns], digits, measurements)
        for name, placed in places.items()
    ]
    metrics = dict.fromkeys(value.metric for value in values)
    remaining = [text for value in values for text in value.remaining]
    return PaperGrid(
        label=label,
        better="" if by_dataset else values[0].better,
        sampled=not by_dataset,
        columns=list(columns),
        rows=rows,
        effects=[] if by_dataset or values[0].unclear else _effects(rows),
        runs={own.run.name: own.run for own in measurements if any(own.run.name in row.runs for row in rows)},
        best=set() if by_dataset else set().union(*map(best, columns.values())),
        notes=list(dict.fromkeys([*(NOTES[metric] for metric in metrics if metric in NOTES), *remaining])),
    )


def _row(
    name: str, printed: list[Printed | None], digits: list[int], measurements: list[Measurements]
) -> PrintedRow:
    runs = {}
    for own in measurements:
        cells = [
            PaperCell(value, own.find(value), places) if value else None
            for value, places in zip(printed, digits, strict=True)
        ]
        if any(cell and cell.measured for cell in cells):
            runs[own.run.name] = cells
    return PrintedRow(name, printed, runs)


def _effects(rows: list[PrintedRow]) -> list[EffectRow]:
    """Methods that are paired by Algorithm 1, each against the baseline with the same distillations."""
    by_method = {parse_name(row.label): row for row in rows}
    effects = []
    for name, row in by_method.items():
        base, plus, rounds = (name or "").partition("+")
        known = (by_method.get(f"{name}{plus}{rounds}") for name in (BASELINE, _CONTINUOUS))
        baseline = next((row for row in known if row), None)
        if not base.startswith(OURS) or baseline is None:
            continue
        printed = [*zip(row.printed, baseline.printed, strict=True)]
        runs = {
            run: [*map(_effect, printed, zip(cells, baseline.runs[run], strict=True))]
            for run, cells in row.runs.items()
            if run in baseline.runs
        }
        effects.append(EffectRow(row.label, baseline.label, [*map(_effect, printed)], runs))
    return effects


def _effect(
    printed: tuple[Printed | None, Printed | None],
    cells: tuple[PaperCell | None, PaperCell | None] = (None, None),
) -> EffectCell:
    """An effect as printed and, if both values of an experiment have one origin, as measured."""
    ours, baseline = printed
    if ours is None or baseline is None or ours.nfe is None:
        return EffectCell(None)
    paper = verdicts.measure_effect(ours.estimate, baseline.estimate, as_printed=True)
    one, other = (cell.measured if cell else None for cell in cells)
    if one is None or other is None or one.origin != other.origin:
        return EffectCell(paper, confounded=bool(ours.confounded))
    return EffectCell(paper, verdicts.measure_effect(one.estimate, other.estimate), bool(ours.confounded))
