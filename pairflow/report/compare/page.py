"""Makes the page of a comparison: one HTML file that opens offline."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from pairflow.report.compare import figures, sheets
from pairflow.report.compare.inputs import differing_settings
from pairflow.report.compare.sections import ComparedGrid, DataSection
from pairflow.report.compare.verdict import write_verdict
from pairflow.report.costs import TrainingCost
from pairflow.report.differences import count_verdicts
from pairflow.report.drawing import legend
from pairflow.report.grid import list_metrics
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import LEVEL, REPETITIONS, SIGNIFICANCE
from pairflow.report.templates import make_environment


def render(sections: Sequence[DataSection], numbers: str) -> str:
    """Write the page as HTML. `numbers` is the name of the file of numbers next to it."""
    runs = [run for section in sections for run in section.runs]
    metrics = {name: about for run in runs for name, about in list_metrics(run.experiment).items()}
    template = make_environment(metrics=metrics).get_template("compare/compare.html")
    return template.render(
        sections=sections,
        blocks=[_make_blocks(section, f"section{number}") for number, section in enumerate(sections, 1)],
        verdict=write_verdict(sections),
        runs=runs,
        single=len(runs) == 1,
        compares=any(section.leading for section in sections),
        numbers=numbers,
        level=f"{100 * LEVEL:.0f} %",
        significance=SIGNIFICANCE,
        repetitions=REPETITIONS,
        differing=differing_settings(runs),
        costs=_costs(runs),
    )


def _make_blocks(section: DataSection, prefix: str) -> dict[str, list[dict[str, object]]]:
    """Return {evaluation: list of blocks}, one block for each of its metrics."""
    return {
        evaluation: [
            _make_block(section, grid, f"{prefix}-{evaluation}-{index}") for index, grid in enumerate(grids)
        ]
        for evaluation, grids in section.evaluations.items()
    }


def _make_block(section: DataSection, grid: ComparedGrid, name: str) -> dict[str, object]:
    """Prepare a metric for the template: its table, its verdicts in words, its files, and figures.

    Only metrics with differences and with `chart` have figures. The leading block is open on the page."""
    title = f"{grid.full_label}, evaluation {grid.evaluation}, {grid.samples}"
    files, drawings = sheets.list_sheets(grid, title, section.baseline), {}
    if grid.contrasts and grid.about.chart:
        looks = figures.choose_looks(grid, [run.name for run in section.runs])
        drawings = {
            "legend": legend(looks, name, looks.__getitem__),
            "curves": figures.curves(grid, looks, name),
            "forest": figures.forest(grid, looks, section.baseline, f"{name}-differences"),
        }
    counts, leading = count_verdicts(grid.verdicts), grid is section.leading
    shared = {"grid": grid, "title": title, "counts": counts, "leading": leading, "sheets": files}
    return {"curves": None, **shared, **drawings}


def _costs(runs: Sequence[FinishedExperiment]) -> Mapping[tuple[str, str], list[TrainingCost | None]]:
    """Return {(method, work): its cost in each experiment}, with None if an experiment did no such work."""
    by_run = []
    for run in runs:
        costs = chain.from_iterable(run.training_costs.values())
        by_run.append({(cost.method, cost.work): cost for cost in costs if np.isfinite(cost.seconds)})
    keys = dict.fromkeys(chain.from_iterable(by_run))
    return {key: [costs.get(key) for costs in by_run] for key in keys}
