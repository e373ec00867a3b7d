"""Joins the numbers of a comparison in a table."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pandas as pd

from pairflow.report.compare.sections import ComparedGrid, ComparedRow

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
    """Return the means in `grids`, and their differences from the baselines, as a frame with 95 % intervals.

    The column `row` is `mean` or `difference`. `over` says what the `n` observations are: `seeds`, or
    `trials` of one seed. `samples` is null if a cell's values come from unequal numbers of samples. `reason`
    says why a difference was not tested, and `visible` is about the smallest difference that its
    test could have found. Values that a row cannot have are null.
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
