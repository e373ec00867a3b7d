"""The tables as files: LaTeX in the paper's layout, CSV with the digits of the page, and all in a frame."""

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from benchmarks.paper.grids import PaperCell, PaperGrid, PaperSection
from benchmarks.paper.printed import Printed
from benchmarks.paper.protocol import describe_scale
from pairflow.report.downloads import Entry, Part, as_csv, as_latex
from pairflow.report.results import FinishedExperiment

_COLUMNS = {
    **dict.fromkeys(("table", "dataset", "metric", "paper_method", "method"), "string"),
    **{"nfe": "Int32", "printed": "float64", "printed_std": "float64"},
    **{"experiment": "string", "scale": "string"},
    **dict.fromkeys(("measured", "measured_std", "difference", "margin"), "float64"),
    **{"status": "string", "reason": "string"},
}

_AnyCell = Printed | PaperCell


def export_files(section: PaperSection) -> dict[str, str]:
    """Name -> text of a table's files: LaTeX of the printed values and of each experiment's, CSV of all."""
    texts = {f"{section.table}.tex": _document(section, None)}
    texts |= {f"{section.table}-{name}.tex": _document(section, run) for name, run in section.runs.items()}
    return {**texts, f"{section.table}.csv": as_csv([*_COLUMNS], _rows(section))}


def _document(section: PaperSection, run: FinishedExperiment | None) -> str:
    grids = [grid for grid in section.grids if run is None or run.name in grid.runs]
    return as_latex([_part(section, grid, run) for grid in grids])


def _part(section: PaperSection, grid: PaperGrid, run: FinishedExperiment | None) -> Part:
    origin = "as printed in the paper" if run is None else f"measured: {run.name}, {describe_scale(run)}"
    caption = [section.title, *([grid.label] if grid.label else []), origin]
    rows: list[tuple[str, Sequence[_AnyCell | None]]] = [
        (row.label, row.printed if run is None else row.runs[run.name])
        for row in grid.rows
        if run is None or run.name in row.runs
    ]
    sampled = [
        any(value and value.nfe for value in column)  # else of times, whose best is not marked
        for column in zip(*(row.printed for row in grid.rows), strict=True)
    ]
    columns = zip(*(cells for _, cells in rows), strict=True)
    best = [_best(column, grid.better * own) for column, own in zip(columns, sampled, strict=True)]
    lines: list[list[Entry | str]] = [
        [label, *(_entry(cell, top) for cell, top in zip(cells, best, strict=True))] for label, cells in rows
    ]
    return Part("; ".join(caption), ["NFE" if grid.sampled else "", *grid.columns], lines)


def _best(cells: Sequence[_AnyCell | None], better: str) -> str | None:
    """The text of the best value in a column; None where there is no choice."""
    shown = [cell for cell in cells if cell and cell.text]
    if len(shown) < 2 or not better:
        return None
    return (max if better == "higher" else min)(shown, key=lambda cell: cell.value).text


def _entry(cell: _AnyCell | None, best: str | None) -> Entry:
    return Entry(cell.text, cell.spread, cell.text == best) if cell else Entry("")


def tabulate(sections: Iterable[PaperSection]) -> pd.DataFrame:
    """The rows of all CSV files together: numbers with the digits of the page, null where it has none."""
    rows = [row for section in sections for row in _rows(section)]
    return pd.DataFrame(rows, columns=[*_COLUMNS]).replace("", None).astype(_COLUMNS)


def _rows(section: PaperSection) -> Iterator[dict[str, str | int | None]]:
    """A row for each printed value and experiment; a single one where there is no experiment."""
    for value, cells in section.cells:
        columns = {name: getattr(value, name) for name in ("table", "dataset", "metric", "method", "nfe")}
        columns |= {"paper_method": value.name, "printed": value.text, "printed_std": value.spread}
        measured = [_measured(cell, section.runs[name]) for name, cell in cells.items()]
        yield from (columns | others for others in measured or [{}])


def _measured(cell: PaperCell, run: FinishedExperiment) -> dict[str, str | int | None]:
    texts = {"measured": cell.text, "measured_std": cell.spread}
    texts |= {"difference": cell.difference, "margin": cell.margin}
    return {
        "experiment": run.name,
        "scale": describe_scale(run),
        **{name: text.replace(",", "").replace("−", "-") for name, text in texts.items()},
        "status": cell.status,
        "reason": cell.measured.reason if cell.measured else "",
    }
