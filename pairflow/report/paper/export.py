"""The tables as files: LaTeX in the paper's layout, CSV with the digits of the page, all in a frame."""

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from pairflow.report import latex
from pairflow.report.downloads import as_csv
from pairflow.report.paper.compare import Cell, Grid, Section
from pairflow.report.paper.measured import Run
from pairflow.report.paper.printed import Printed

_TEXTS = ("table", "dataset", "metric", "paper_method", "method", "experiment", "scale", "status", "reason")
_NUMBERS = ("printed", "printed_std", "measured", "measured_std", "difference", "margin")
_COLUMNS = (
    *("table", "dataset", "metric", "paper_method", "method", "nfe", "printed", "printed_std"),
    *("experiment", "scale", "measured", "measured_std", "difference", "margin", "status", "reason"),
)


def files(section: Section) -> dict[str, str]:
    """Name -> text of a table's files: the printed values and each run's in LaTeX, all of it in CSV."""
    runs = {name: run for grid in section.grids for name, run in grid.runs.items()}
    found = {f"{section.table}.tex": _document(section, None)}
    found |= {f"{section.table}-{name}.tex": _document(section, run) for name, run in runs.items()}
    return {**found, f"{section.table}.csv": _csv(section)}


def _document(section: Section, run: Run | None) -> str:
    grids = [grid for grid in section.grids if run is None or run.name in grid.runs]
    return latex.HEAD + "\n".join(_latex(section, grid, run) for grid in grids)


def _latex(section: Section, grid: Grid, run: Run | None) -> str:
    made = "as printed in the paper" if run is None else f"measured: {run.name}, {run.scale}"
    words = [section.title, *([grid.label] if grid.label else []), made]
    rows = [
        (row.label, row.printed if run is None else row.runs[run.name])
        for row in grid.rows
        if run is None or run.name in row.runs
    ]
    best = [_best([cells[i] for _, cells in rows], grid) for i in range(len(grid.columns))]
    lines = [
        [latex.escape(label), *(_value(cell, top) for cell, top in zip(cells, best, strict=True))]
        for label, cells in rows
    ]
    return latex.table("; ".join(words), ["NFE" if grid.sampled else "", *grid.columns], lines)


def _best(cells: Sequence[Printed | Cell | None], grid: Grid) -> str | None:
    """What the best of a column prints; None where there is no choice."""
    values = {_texts(cell)[0]: _number(cell) for cell in cells if _texts(cell)[0]}
    if sum(bool(_texts(cell)[0]) for cell in cells) < 2 or not grid.better:
        return None
    return (max if grid.better == "higher" else min)(values, key=values.get)


def _number(cell: Printed | Cell) -> float:
    return cell.value if isinstance(cell, Printed) else cell.measured.estimate.mean


def _texts(cell: Printed | Cell | None) -> tuple[str, str]:
    """A value and its deviation; empty where there is none."""
    if isinstance(cell, Printed):
        return cell.text, cell.spread
    return (cell.text, cell.spread) if cell and cell.measured else ("", "")


def _value(cell: Printed | Cell | None, best: str | None) -> str:
    text, spread = _texts(cell)
    return latex.value(text, spread, bold=text == best)


def values(sections: Iterable[Section]) -> pd.DataFrame:
    """The rows of all CSV files together: numbers with the digits of the page, null where it has none."""
    rows = [row for section in sections for row in _rows(section)]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS)).replace("", None)
    kinds = dict.fromkeys(_TEXTS, "string") | dict.fromkeys(_NUMBERS, "float64") | {"nfe": "Int32"}
    return frame.astype(kinds)


def _csv(section: Section) -> str:
    return as_csv(_COLUMNS, _rows(section))


def _rows(section: Section) -> Iterator[dict[str, str | int | None]]:
    """A row for each printed value and run; one without a run where there is none."""
    for grid in section.grids:
        for row in grid.rows:
            for i, value in enumerate(row.printed):
                if value is None:
                    continue
                cells = {name: cells[i] for name, cells in row.runs.items()}
                known = _printed(value)
                yield from (known | _measured(cell, grid.runs[name]) for name, cell in cells.items())
                if not cells:
                    yield known


def _printed(value: Printed) -> dict[str, str | int | None]:
    return {
        "table": value.table,
        "dataset": value.dataset,
        "metric": value.metric,
        "paper_method": value.name,
        "method": value.method,
        "nfe": value.nfe,
        "printed": value.text,
        "printed_std": value.spread,
    }


def _measured(cell: Cell, run: Run) -> dict[str, str]:
    texts = {
        "measured": cell.text if cell.measured else "",
        "measured_std": cell.spread,
        "difference": cell.difference,
        "margin": cell.margin,
    }
    return {
        "experiment": run.name,
        "scale": run.scale,
        **{name: text.replace(",", "").replace("−", "-") for name, text in texts.items()},
        "status": cell.status,
        "reason": cell.measured.reason if cell.measured else "",
    }
