"""The paper's tables as grids of cells, printed beside measured, with the effects that they show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from pairflow.report.paper import verdicts
from pairflow.report.paper.measured import MINUTES, Measured, Run
from pairflow.report.paper.names import BY_DATASET, METRICS, NOTES, TITLES, dataset_name, number
from pairflow.report.paper.printed import DATASETS, TRIALS, Printed, best, method, tables
from pairflow.report.paper.verdicts import Comparison, Effect, Estimate, Verdict

BASELINE = "udlm"


class Status(StrEnum):
    """What became of a printed value, the most telling first."""

    AGREES = Verdict.AGREES
    HIGHER = Verdict.HIGHER
    LOWER = Verdict.LOWER
    UNJUDGED = "not judged"
    EFFECT = "effect only"
    NOT_RUN = "not run"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class Cell:
    """A printed value and what one run has of it; `digits` are the decimals that the measured ones show."""

    printed: Printed
    measured: Measured | None
    digits: int

    @property
    def status(self) -> Status:
        if self.measured is None:
            return Status.NOT_RUN if within(self.printed) else Status.OUTSIDE
        if self.measured.apart:
            return Status.EFFECT
        if self.measured.reason:
            return Status.UNJUDGED
        found = self.printed
        return Status(verdicts.judge(self.measured.estimate, found.value, found.std, TRIALS))

    @property
    def judged(self) -> bool:
        return self.status in (Status.AGREES, Status.HIGHER, Status.LOWER)

    @property
    def text(self) -> str:
        return number(self.measured.estimate.mean, self.digits) if self.measured else "–"

    @property
    def spread(self) -> str:
        """The deviation between the observations; empty where there is a single one."""
        if self.measured is None or self.measured.estimate.count < 2:
            return ""
        return number(self.measured.estimate.std, self.digits)

    @property
    def difference(self) -> str:
        """Measured less printed, with its sign; empty where the two are not of one kind."""
        if self.measured is None or self.measured.apart:
            return ""
        difference = self.measured.estimate.mean - self.printed.value
        text = number(difference, self.digits)
        return text if text.startswith("−") or not float(text.replace(",", "")) else f"+{text}"

    @property
    def margin(self) -> str:
        """How far the printed value might have been off to agree; empty where it is not judged."""
        if not self.judged:
            return ""
        return number(verdicts.margin(self.measured.estimate, self.printed.std, TRIALS), self.digits)


@dataclass(frozen=True)
class Row:
    """A row of a grid: what is printed in its columns, and the cells of each run."""

    label: str
    printed: list[Printed | None]
    runs: dict[str, list[Cell | None]]

    @property
    def confounded(self) -> str:
        return next((value.confounded for value in self.printed if value and value.confounded), "")


@dataclass(frozen=True)
class EffectCell:
    """One effect: the paper's, a run's, and whether they have one sign; None where there is none."""

    paper: Effect | None
    here: Effect | None = None
    confounded: bool = False

    @property
    def comparison(self) -> Comparison | None:
        """None where one of them is missing or the printed values do not compare."""
        if self.paper is None or self.here is None or self.confounded:
            return None
        return verdicts.compare(self.here, self.paper)


@dataclass(frozen=True)
class EffectRow:
    """A method against the baseline that has its distillations."""

    method: str
    baseline: str
    paper: list[EffectCell]
    runs: dict[str, list[EffectCell]]


@dataclass(frozen=True)
class Grid:
    """One metric of one data set, or one table that has a row for each data set."""

    table: str
    label: str
    better: str
    columns: list[str]
    rows: list[Row]
    effects: list[EffectRow]
    runs: dict[str, Run]
    best: set[Printed] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> dict[str, str]:
        """Run -> what its values are, where they are not what is printed."""
        cells = [
            (name, cell)
            for row in self.rows
            for name, cells in row.runs.items()
            for cell in cells
            if cell and cell.measured
        ]
        return {name: cell.measured.kind for name, cell in cells if cell.measured.kind}

    @property
    def sampled(self) -> bool:
        return self.table not in BY_DATASET


@dataclass(frozen=True)
class Section:
    """A table of the paper."""

    table: str
    title: str
    grids: list[Grid]

    @property
    def values(self) -> list[Printed]:
        return [value for grid in self.grids for row in grid.rows for value in row.printed if value]

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(value.dataset for value in self.values))

    @property
    def measured(self) -> bool:
        return any(row.runs for grid in self.grids for row in grid.rows)


def sections(runs: Iterable[Run]) -> list[Section]:
    """Every table of the paper beside the runs, those at the paper's scale first."""
    runs = sorted(runs, key=lambda run: run.reduced)
    return [Section(name, TITLES[name], _grids(name, values, runs)) for name, values in tables().items()]


def statuses(found: Sequence[Section]) -> dict[Printed, Status]:
    """Each printed value and the most telling of what the runs have of it."""
    order = list(Status)
    result: dict[Printed, Status] = {}
    for section in found:
        for grid in section.grids:
            for row in grid.rows:
                for i, value in enumerate(row.printed):
                    if value is None:
                        continue
                    cells = [cells[i].status for cells in row.runs.values() if cells[i]]
                    without = Status.NOT_RUN if within(value) else Status.OUTSIDE
                    result[value] = min([*cells, without], key=order.index)
    return result


def within(printed: Printed) -> bool:
    """Whether an experiment of this workflow could have measured the value; not so properties of data."""
    return (
        printed.dataset in DATASETS
        and (printed.method is not None or printed.metric in MINUTES)
        and (printed.metric != "dataset_size")
    )


def _grids(table: str, values: list[Printed], runs: list[Run]) -> list[Grid]:
    if table in BY_DATASET:
        return [_grid(table, "", values, runs)]
    parts: dict[tuple[str, str], list[Printed]] = {}
    for value in values:
        metric = value.metric if value.nfe is not None else values[0].metric  # times stand beside the first
        parts.setdefault((value.dataset, metric), []).append(value)
    several = len({dataset for dataset, _ in parts}) > 1
    return [
        _grid(table, f"{dataset_name(dataset)}: " * several + METRICS[metric], part, runs)
        for (dataset, metric), part in parts.items()
    ]


def _grid(table: str, label: str, values: list[Printed], runs: list[Run]) -> Grid:
    by_dataset = table in BY_DATASET
    places: dict[str, dict[str, Printed]] = {}
    columns: dict[str, list[Printed]] = {}
    for value in values:
        name, column = dataset_name(value.dataset) if by_dataset else value.name, _column(value, by_dataset)
        places.setdefault(name, {})[column] = value
        columns.setdefault(column, []).append(value)
    digits = [max(value.digits for value in column) for column in columns.values()]
    rows = [
        _row(name, [placed.get(column) for column in columns], digits, runs)
        for name, placed in places.items()
    ]
    metrics = dict.fromkeys(value.metric for value in values)
    return Grid(
        table=table,
        label=label,
        better="" if by_dataset else values[0].better,
        columns=list(columns),
        rows=rows,
        effects=[] if by_dataset else _effects(rows),
        runs={run.name: run for run in runs if any(run.name in row.runs for row in rows)},
        best=set() if by_dataset else set().union(*map(best, columns.values())),
        notes=[NOTES[metric] for metric in metrics if metric in NOTES],
    )


def _column(value: Printed, by_dataset: bool) -> str:
    if value.nfe is not None:
        return f"{value.nfe:,}"
    label = METRICS.get(value.metric, value.metric)
    if not by_dataset or value.metric != "runtime_minutes":
        return label
    return f"{value.name} ({label})"


def _row(name: str, printed: list[Printed | None], digits: list[int], runs: list[Run]) -> Row:
    found = {}
    for run in runs:
        cells = [
            Cell(value, run.measured(value), places) if value else None
            for value, places in zip(printed, digits, strict=True)
        ]
        if any(cell and cell.measured for cell in cells):
            found[run.name] = cells
    return Row(name, printed, found)


def _effects(rows: list[Row]) -> list[EffectRow]:
    """Methods that are paired by Algorithm 1, each against the baseline with the same distillations."""
    by_method = {method(row.label): row for row in rows}
    found = []
    for name, row in by_method.items():
        base, plus, rounds = (name or "").partition("+")
        baseline = by_method.get(f"{BASELINE}{plus}{rounds}")
        if not base.startswith("pairflow") or baseline is None:
            continue
        paper = [_of_paper(*pair) for pair in zip(row.printed, baseline.printed, strict=True)]
        runs = {
            run: [
                _of_run(own, *pair)
                for own, *pair in zip(paper, row.runs[run], baseline.runs[run], strict=True)
            ]
            for run in row.runs
            if run in baseline.runs
        }
        found.append(EffectRow(row.label, baseline.label, paper, runs))
    return found


def _of_paper(ours: Printed | None, baseline: Printed | None) -> EffectCell:
    if ours is None or baseline is None or ours.nfe is None:
        return EffectCell(None)
    pair = [_as_estimate(value) for value in (ours, baseline)]
    return EffectCell(verdicts.effect(*pair, as_printed=True), confounded=bool(ours.confounded))


def _as_estimate(value: Printed) -> Estimate:
    return Estimate(value.value, value.std**2, 1 if np.isnan(value.std) else TRIALS)


def _of_run(paper: EffectCell, ours: Cell | None, baseline: Cell | None) -> EffectCell:
    """The run's effect beside the paper's, of values that were made alike."""
    if paper.paper is None or ours is None or baseline is None:
        return EffectCell(paper.paper)
    one, other = ours.measured, baseline.measured
    if one is None or other is None or one.of != other.of:
        return EffectCell(paper.paper)
    return replace(paper, here=verdicts.effect(one.estimate, other.estimate))
