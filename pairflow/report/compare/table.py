"""The page's numbers with all their digits, one row each."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from pairflow.report.compare.sections import Grid, Section

_COLUMNS = {
    "row": "string",
    "experiment": "string",
    "method": "string",
    "baseline_experiment": "string",
    "baseline_method": "string",
    "evaluation": "string",
    "metric": "string",
    "reference": "string",
    "extractor": "string",
    "nfe": "int32",
    "samples": "Int32",
    "value": "float64",
    "low": "float64",
    "high": "float64",
    "over": "string",
    "n": "int32",
    "n_baseline": "Int32",
    "seeds": "Int32",
    "trials": "Int32",
    "std_between_seeds": "float64",
    "std_between_trials": "float64",
    "test": "string",
    "statistic": "float64",
    "freedom": "float64",
    "p": "float64",
    "p_holm": "float64",
    "reason": "string",
}


def frame(sections: Sequence[Section]) -> pd.DataFrame:
    """Rows `mean` and `difference`, with a 95 % interval each; null what one of the two does not have.

    `over` is what the `n` observations are: `seeds`, or `trials` of one seed. `samples` is null where a
    cell's values are from unequal numbers of samples, `reason` says why a difference was not tested.
    """
    grids = [grid for section in sections for grid in section.grids]
    rows = [row for grid in grids for row in (*_means(grid), *_differences(grid))]
    return pd.DataFrame(rows).reindex(columns=list(_COLUMNS)).astype(_COLUMNS)


def _means(grid: Grid) -> Iterator[dict[str, Any]]:
    for row in grid.rows.values():
        for nfe, found in row.cells.items():
            yield {
                **_of(grid, "mean", nfe, row.samples[nfe]),
                "experiment": row.source.run,
                "method": row.source.method,
                "value": found.mean,
                "low": found.low,
                "high": found.high,
                "over": str(found.over),
                "n": found.n,
                "seeds": found.seeds,
                "trials": found.trials,
                "std_between_seeds": found.between,
                "std_between_trials": found.within,
            }


def _differences(grid: Grid) -> Iterator[dict[str, Any]]:
    for contrast in grid.contrasts:
        for nfe, found in contrast.cells.items():
            yield {
                **_of(grid, "difference", nfe, grid.rows[contrast.source].samples[nfe]),
                "experiment": contrast.source.run,
                "method": contrast.source.method,
                "baseline_experiment": contrast.baseline.run,
                "baseline_method": contrast.baseline.method,
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "over": found.over and str(found.over),
                "n": found.n,
                "n_baseline": found.n_baseline,
                "test": found.test or None,
                "statistic": found.statistic,
                "freedom": found.freedom,
                "p": found.p,
                "p_holm": found.adjusted,
                "reason": found.reason or None,
            }


def _of(grid: Grid, row: str, nfe: int, samples: Sequence[int]) -> dict[str, Any]:
    return {
        "row": row,
        "evaluation": grid.evaluation,
        "metric": grid.kind.metric,
        "reference": grid.kind.reference or None,
        "extractor": grid.kind.extractor or None,
        "nfe": nfe,
        "samples": samples[0] if len(samples) == 1 else None,
    }
