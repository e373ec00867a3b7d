"""Writes the numbers of a comparison: all together in a frame, and its tables as sheets to download."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from pairflow.report.compare.sections import ComparedGrid, ComparedRow
from pairflow.report.downloads import Entry, Part, Sheet
from pairflow.report.stats import Difference, Estimate

_COLUMNS = {
    **dict.fromkeys(("row", "experiment", "method", "baseline_experiment", "baseline_method"), "string"),
    **dict.fromkeys(("evaluation", "metric", "reference", "extractor"), "string"),
    **{"nfe": "int32", "calls": "int32", "samples": "Int32"},
    **dict.fromkeys(("value", "low", "high"), "float64"),
    **{"over": "string", "n": "int32", "n_baseline": "Int32", "seeds": "Int32", "trials": "Int32"},
    **{"std_between_seeds": "float64", "std_between_trials": "float64", "test": "string"},
    **dict.fromkeys(("statistic", "freedom", "p", "p_holm", "visible"), "float64"),
    "reason": "string",
}


def tabulate(grids: Iterable[ComparedGrid]) -> pd.DataFrame:
    """Join all means and differences in a frame, with 95 % intervals; its column `row` tells them apart.

    `over` says what the `n` observations are: `seeds`, or `trials` of one seed. `samples` is null if a cell's
    values come from unequal numbers of samples. `reason` says why a difference was not tested, and `visible`
    is about the smallest difference that would have been decided. Values that a row cannot have are null.
    """
    rows = [row for grid in grids for row in _rows(grid)]
    return pd.DataFrame(rows).reindex(columns=list(_COLUMNS)).replace("", None).astype(_COLUMNS)


def _rows(grid: ComparedGrid) -> Iterator[dict[str, object]]:
    for row in grid.table.values():
        for nfe, cell in row.cells.items():
            low, high = cell.interval
            yield {
                **asdict(cell),
                **_shared(grid, "mean", nfe, row),
                **{"value": cell.mean, "low": low, "high": high, "n": cell.count},
                **{"std_between_seeds": cell.between, "std_between_trials": cell.within},
            }
    for contrast in grid.contrasts:
        for nfe, difference in contrast.cells.items():
            yield {
                **asdict(difference),
                **_shared(grid, "difference", nfe, contrast),
                "baseline_experiment": contrast.baseline.run,
                "baseline_method": contrast.baseline.method,
                "p_holm": difference.adjusted,
            }


def _shared(grid: ComparedGrid, name: str, nfe: int, row: ComparedRow) -> dict[str, object]:
    samples = grid.cell_counts[row.key, nfe]
    return {
        **{"row": name, "experiment": row.key.run, "method": row.key.method, "nfe": nfe},
        "calls": row.calls[nfe],
        **{name: getattr(grid, name) for name in ("evaluation", "metric", "reference", "extractor")},
        "samples": samples[0] if len(samples) == 1 else None,
    }


def list_sheets(grid: ComparedGrid, title: str, baseline: str) -> dict[str, Sheet]:
    """Make a sheet of means with deviations, and one of any differences from the baseline with intervals."""
    sheets = {"means": _sheet(grid, "mean", f"{title}: means", grid.table.values(), _mean)}
    if grid.contrasts:
        title = f"{title}: differences from {baseline}, decided ones in bold"
        sheets["differences"] = _sheet(grid, "difference", title, grid.contrasts, _difference)
    return sheets


def _sheet(
    grid: ComparedGrid,
    kind: str,
    title: str,
    rows: Iterable[ComparedRow],
    write: Callable[[ComparedGrid, Any], Entry],
) -> Sheet:
    frame = tabulate([grid])
    records = frame[frame.row == kind].dropna(axis="columns", how="all")
    printed: list[list[Entry | str]] = [
        [*row.key, *(write(grid, row.cells[nfe]) if nfe in row.cells else Entry("") for nfe in grid.columns)]
        for row in rows
    ]
    head = ["Method", "Experiment", *map(str, grid.columns)]
    part = Part(title, head, printed, "ll" + "r" * len(grid.columns))
    names = ["comparison", grid.evaluation, grid.metric, grid.reference, grid.extractor, kind]
    return Sheet("-".join(filter(None, names)), title, [part], records.to_dict("records"))


def _mean(grid: ComparedGrid, cell: Estimate) -> Entry:
    return Entry(grid.number(cell.mean), "" if np.isnan(cell.std) else grid.number(cell.std))


def _difference(grid: ComparedGrid, cell: Difference) -> Entry:
    if np.isnan(cell.value):
        return Entry("")
    interval = f"{grid.number(cell.low, '+')} to {grid.number(cell.high, '+')}" if cell.test else ""
    return Entry(grid.number(cell.value, "+"), best=cell.decided, note=interval.replace("−", "-"))
