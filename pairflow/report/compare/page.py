"""The page of a comparison: one HTML file that opens offline."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pairflow.report.compare.sections import DataSection, describe_observations, describe_test
from pairflow.report.compare.settings import differing_settings
from pairflow.report.costs import TrainingCost, training_costs
from pairflow.report.environment import make_environment
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import LEVEL, SIGNIFICANCE

_UNFOLDED = 12  # settings that differ: more are folded


def render(sections: Sequence[DataSection], numbers: str, equal: Sequence[tuple[str, str]] = ()) -> str:
    """The page as HTML. `numbers` is the name of the file beside it, `equal` pairs runs with equal rows."""
    runs = [run for section in sections for run in section.runs]
    return (
        make_environment()
        .get_template("compare/compare.html")
        .render(
            sections=sections,
            runs=runs,
            single=len(runs) == 1,
            describe_observations=describe_observations,
            describe_test=describe_test,
            numbers=numbers,
            level=f"{100 * LEVEL:.0f} %",
            significance=SIGNIFICANCE,
            notices=_notices(runs, equal),
            differing=differing_settings(runs),
            unfolded=_UNFOLDED,
            costs=_costs(runs),
        )
    )


def _notices(
    runs: Sequence[FinishedExperiment], equal: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """What limits the comparison, as a heading and a sentence each."""
    for one, other in equal:
        yield "The same numbers.", f"{one} and {other} have identical metrics."
    scales = {run.name: run.scale for run in runs}
    if len(set(scales.values())) > 1:
        listed = "; ".join(f"{name}: {scale}" for name, scale in scales.items())
        yield "Different scales.", f"{listed}. A difference between them may come from the scale."
    elif runs[0].reduced:
        yield "Reduced scale.", "None of these numbers is comparable with the paper’s."
    if names := [run.name for run in runs if run.measured.seed.nunique() == 1]:
        text = (
            f"{', '.join(names)}: intervals and tests are over sampling trials of one training, and are "
            "marked so. They say nothing about another training."
        )
        yield "One training seed.", text


def _costs(runs: Sequence[FinishedExperiment]) -> Mapping[tuple[str, str], list[TrainingCost | None]]:
    """(method, work) -> what each experiment spent on it, None where it did no such work."""
    by_run = [
        {
            (cost.method, cost.work): cost
            for costs in training_costs(run.timings, run.experiment).values()
            for cost in costs
            if np.isfinite(cost.seconds)
        }
        for run in runs
    ]
    keys = dict.fromkeys(key for costs in by_run for key in costs)
    return {key: [costs.get(key) for costs in by_run] for key in keys}
