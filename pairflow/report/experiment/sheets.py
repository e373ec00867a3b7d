"""Turns the tables of an experiment's page into sheets to download."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from pairflow.report.contents import Contents
from pairflow.report.downloads import Entry, Part, Sheet
from pairflow.report.experiment.quality import EvaluationBlock
from pairflow.report.findings import Headline
from pairflow.report.grid import REAL, Cell, Grid
from pairflow.report.stats import REPETITIONS
from pairflow.report.words import format_duration


class CorrelationPart(TypedDict):
    """The total correlation of each method and its standard error (`rows`), and the ceiling that methods
    share. `bits` is log2 of the number of samples of a source, and `sources` the number of sources."""

    rows: dict[str, tuple[float, float]]
    ceiling: float
    bits: float
    sources: int


def list_sheets(
    contents: Contents,
    headline: Headline | None,
    blocks: Sequence[EvaluationBlock],
    correlation: CorrelationPart | None,
    costs: Sequence[Mapping[str, Any]],
) -> list[Sheet]:
    """Make a sheet to download of each table of a page, in the order of the page. The last four arguments are
    parts of the page."""
    sheets = [headline_sheet(contents, headline)] if headline else []
    for block in blocks:
        tables = {group.title or "Quality by sampling steps": group.tables for group in block.all_groups}
        sheets += [
            metric_sheet(contents, table, block.scope, f"{title}, evaluation {block.name}")
            for title, table in tables.items()
            if table
        ]
        sheets += block.details.sheets
    if correlation:
        sheets.append(correlation_sheet(contents, correlation))
    trainings = [asdict(cost) for base in contents.training_costs.values() for cost in base]
    title = "Training cost of bases, pairing and distillation"
    times = [
        Sheet(f"{contents.name}-training-cost", title, [], trainings),
        Sheet(f"{contents.name}-cost", "Time and memory per step", [], costs),
    ]
    return [*sheets, *(sheet for sheet in times if sheet.records)]


def metric_sheet(contents: Contents, tables: Sequence[Grid], scope: str, title: str) -> Sheet:
    """Join tables of one evaluation in a sheet; `scope` says in captions from which samples they are
    computed."""
    [evaluation] = {table.evaluation for table in tables}
    group = tables[0].about.group or "quality"
    origin = contents.name_origin(f"evaluation {evaluation}")
    return Sheet(
        name=f"{contents.name}-{evaluation}-{group}",
        title=title,
        parts=[_part(table, f"{table.label}; {origin}; {scope}") for table in tables],
        records=[record for table in tables for record in _records(table)],
    )


def headline_sheet(contents: Contents, headline: Headline) -> Sheet:
    """Make a sheet of every method at its best number of steps, and of real data; records have shares, not
    percent."""
    title = "Every method at its best number of sampling steps"
    columns = {
        "Method": [*(line.method for line in headline.lines), "real data"],
        "Steps": [*(str(line.nfe) for line in headline.lines), "–"],
        **{
            measure.heading: [*(measure.text(line) for line in headline.lines), measure.real]
            for measure in headline.measures.values()
        },
        "Calls": [*(str(line.calls) for line in headline.lines), "–"],
        "Training": [*(format_duration(line.seconds) for line in headline.lines), "–"],
    }
    records = [
        {**asdict(line), **{key: headline.value(key, line) for key in headline.measures}}
        for line in headline.lines
    ]
    caption = f"{title}; {contents.name_origin(f'evaluation {headline.evaluation}')}"
    part = Part(caption, list(columns), list(zip(*columns.values(), strict=True)))
    return Sheet(f"{contents.name}-headline", title, [part], records)


def correlation_sheet(contents: Contents, correlation: CorrelationPart) -> Sheet:
    """Make a sheet of the total correlation per method, and its ceiling; `correlation` is that part of the
    page."""
    rows = {**correlation["rows"], REAL: (correlation["ceiling"], None)}
    records = [
        {"method": method, "total_correlation": mean, "total_correlation_se": error}
        for method, (mean, error) in rows.items()
    ]
    return Sheet(f"{contents.name}-correlation", "Total correlation per method", [], records)


def _part(table: Grid, caption: str) -> Part:
    rows: list[list[Entry | str]] = [
        [f"calls{name and f', {name}'}", *map(str, calls)] for name, calls in table.call_rows.items()
    ]
    for method, cells in table.rows.items():
        rows.append([method, *(_entry(cell, table.missing(cell)) for cell in cells)])
    if table.floor:
        rows.append([table.about.real, *[_entry(table.floor)] * len(table.columns)])
    spread = "; ± is between seeds" if table.seeds > 1 else ""
    return Part(f"{caption}{spread}{_explain_bold(table)}", ["Steps", *map(str, table.columns)], rows)


def _explain_bold(table: Grid) -> str:
    """Say which numbers of a table are in bold, as the page does; empty if none is."""
    if not any(cell.best for cells in table.rows.values() for cell in cells):
        return ""
    best = f"{table.about.best} mean"
    if table.tested:
        return f"; in bold the {best} and the next ones, down to the first that is significantly worse"
    if table.count == 1:
        return f"; {best} in bold"
    repeated = "seeds" if table.seeds > 1 else "trials"
    return f"; {best} in bold, without a test, which needs {REPETITIONS} {repeated}"


def _entry(cell: Cell, note: str = "") -> Entry:
    return Entry(cell.text if cell.count else "", cell.spread.removeprefix("± "), cell.best, note)


def _records(table: Grid) -> Iterable[dict[str, object]]:
    """Yield a record for the sheet's CSV per method and NFE, and a last one for real data."""
    shared = {"evaluation": table.evaluation, "metric": table.metric}
    if table.about.compared:
        shared |= {"reference": table.reference, "extractor": table.extractor}
    for method, cells in table.rows.items():
        calls = table.calls.get(method, [None] * len(cells))
        for nfe, call, cell in zip(table.columns, calls, cells, strict=True):
            yield shared | {"method": method, "nfe": nfe, "calls": call, **_numbers(cell, table.seeds)}
    if table.floor:
        yield shared | {"method": REAL, "nfe": None, "calls": None, **_numbers(table.floor, table.seeds)}


def _numbers(cell: Cell, seeds: int) -> dict[str, float | int]:
    """Return a cell's numbers. With several seeds `std` is between seeds, and `trial_std` between trials."""
    trials = {"seeds": cell.seeds, "trial_std": cell.trials} if seeds > 1 else {}
    return {"mean": cell.mean, "std": cell.std, "count": cell.count, **trials}
