"""The tables of a comparison as sheets to download."""

import numpy as np

from pairflow.report.compare.sections import ComparedGrid
from pairflow.report.compare.table import tabulate
from pairflow.report.downloads import Entry, Part, Sheet
from pairflow.report.stats import Difference, Estimate


def mean_sheet(grid: ComparedGrid, title: str) -> Sheet:
    """Means with their deviations."""
    rows: list[list[Entry | str]] = [
        [method, run, *(_mean(grid, row.cells.get(nfe)) for nfe in grid.columns)]
        for (method, run), row in grid.table.items()
    ]
    return _sheet(grid, "mean", f"{title}: means", rows)


def difference_sheet(grid: ComparedGrid, title: str, baseline: str) -> Sheet:
    """Differences from the baseline with their intervals; in bold what is decided."""
    rows: list[list[Entry | str]] = [
        [*contrast.key, *(_difference(grid, contrast.cells.get(nfe)) for nfe in grid.columns)]
        for contrast in grid.contrasts
    ]
    return _sheet(grid, "difference", f"{title}: differences from {baseline}, those decided in bold", rows)


def _sheet(grid: ComparedGrid, kind: str, title: str, rows: list[list[Entry | str]]) -> Sheet:
    frame = tabulate([grid])
    own = frame[frame.row == kind].dropna(axis="columns", how="all")
    head = ["Method", "Experiment", *map(str, grid.columns)]
    part = Part(title, head, rows, "ll" + "r" * len(grid.columns))
    name = "-".join(
        filter(None, ["comparison", grid.evaluation, grid.metric, grid.reference, grid.extractor, kind])
    )
    return Sheet(name, title, [part], [*own.to_dict("records")])


def _mean(grid: ComparedGrid, cell: Estimate | None) -> Entry:
    if cell is None:
        return Entry("")
    return Entry(grid.number(cell.mean), "" if np.isnan(cell.std) else grid.number(cell.std))


def _difference(grid: ComparedGrid, cell: Difference | None) -> Entry:
    if cell is None or np.isnan(cell.value):
        return Entry("")
    interval = f"{grid.number(cell.low, '+')} to {grid.number(cell.high, '+')}" if cell.test else ""
    return Entry(grid.number(cell.value, "+"), best=cell.decided, note=interval.replace("−", "-"))
