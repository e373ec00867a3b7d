"""The tables as files: LaTeX in the paper's layout, CSV with the digits of the page, and all in a frame."""

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from pairflow.report.downloads import Entry, Part, as_csv, as_latex
from pairflow.report.paper.grids import PaperCell, PaperGrid, PaperSection
from pairflow.report.paper.printed import Printed
from pairflow.report.results import FinishedExperiment

_TEXTS = ("table", "dataset", "metric", "paper_method", "method", "experiment", "scale", "status", "reason")
_NUMBERS = ("printed", "printed_std", "measured", "measured_std", "difference", "margin")
_COLUMNS = (
    *("table", "dataset", "metric", "paper_method", "method", "nfe", "printed", "printed_std"),
    *("experiment", "scale", "measured", "measured_std", "difference", "margin", "status", "reason"),
)

_AnyCell = Printed | PaperCell


def export_files(section: PaperSection) -> dict[str, str]:
    """Name -> text of a table's files: LaTeX of the printed values and of each experiment's, CSV of all."""
    runs = {name: run for grid in section.grids for name, run in grid.runs.items()}
    texts = {f"{section.table}.tex": _document(section, None)}
    texts |= {f"{section.table}-{name}.tex": _document(section, run) for name, run in runs.items()}
    return {**texts, f"{section.table}.csv": as_csv(_COLUMNS, _rows(section))}


def _document(section: PaperSection, run: FinishedExperiment | None) -> str:
    grids = [grid for grid in section.grids if run is None or run.name in grid.runs]
    return as_latex([_part(section, grid, run) for grid in grids])


def _part(section: PaperSection, grid: PaperGrid, run: FinishedExperiment | None) -> Part:
    origin = "as printed in the paper" if run is None else f"measured: {run.name}, {run.scale}"
    caption = [section.title, *([grid.label] if grid.label else []), origin]
    rows: list[tuple[str, Sequence[_AnyCell | None]]] = [
        (row.label, row.printed if run is None else row.runs[run.name])
        for row in grid.rows
        if run is None or run.name in row.runs
    ]
    best = [_best([cells[i] for _, cells in rows], grid) for i in range(len(grid.columns))]
    lines: list[list[Entry | str]] = [
        [label, *(_entry(cell, top) for cell, top in zip(cells, best, strict=True))] for label, cells in rows
    ]
    return Part("; ".join(caption), ["NFE" if grid.sampled else "", *grid.columns], lines)


def _best(cells: Sequence[_AnyCell | None], grid: PaperGrid) -> str | None:
    """The text of the best value in a column; None where there is no choice."""
    values = [(cell.value, _texts(cell)[0]) for cell in cells if cell and _texts(cell)[0]]
    if len(values) < 2 or not grid.better:
        return None
    return (max if grid.better == "higher" else min)(values, key=lambda value: value[0])[1]


def _texts(cell: _AnyCell | None) -> tuple[str, str]:
    """A value and its deviation; empty where there is none."""
    if isinstance(cell, Printed):
        return cell.text, cell.spread
    return (cell.text, cell.spread) if cell and cell.measured else ("", "")


def _entry(cell: _AnyCell | None, best: str | None) -> Entry:
    text, spread = _texts(cell)
    return Entry(text, spread, text == best)


def tabulate(sections: Iterable[PaperSection]) -> pd.DataFrame:
    """The rows of all CSV files together: numbers with the digits of the page, null where it has none."""
    rows = [row for section in sections for row in _rows(section)]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS)).replace("", None)
    kinds = dict.fromkeys(_TEXTS, "string") | dict.fromkeys(_NUMBERS, "float64") | {"nfe": "Int32"}
    return frame.astype(kinds)


def _rows(section: PaperSection) -> Iterator[dict[str, str | int | None]]:
    """A row for each printed value and experiment; a single one where there is no experiment."""
    for grid in section.grids:
        for row in grid.rows:
            for i, value in enumerate(row.printed):
                if value is not None:
                    cells = [(grid.runs[name], cells[i]) for name, cells in row.runs.items()]
                    measured = [_measured(cell, run) for run, cell in cells if cell]
                    yield from (_printed(value) | columns for columns in measured or [{}])


def _printed(value: Printed) -> dict[str, str | int | None]:
    columns = {name: getattr(value, name) for name in ("table", "dataset", "metric", "method", "nfe")}
    return {**columns, "paper_method": value.name, "printed": value.text, "printed_std": value.spread}


def _measured(cell: PaperCell, run: FinishedExperiment) -> dict[str, str | int | None]:
    measured, spread = _texts(cell)
    texts = {"measured": measured, "measured_std": spread}
    texts |= {"difference": cell.difference, "margin": cell.margin}
    return {
        "experiment": run.name,
        "scale": run.scale,
        **{name: text.replace(",", "").replace("−", "-") for name, text in texts.items()},
        "status": cell.status,
        "reason": cell.measured.reason if cell.measured else "",
    }
