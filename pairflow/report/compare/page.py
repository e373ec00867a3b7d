"""The page of a comparison: one HTML file that opens offline."""

from collections.abc import Mapping, Sequence

import numpy as np

from pairflow.report.compare import sections as words
from pairflow.report.compare.inference import LEVEL
from pairflow.report.compare.runs import Run, differing
from pairflow.report.compare.sections import SIGNIFICANCE, Section
from pairflow.report.experiment.cost import TrainingCost, training_costs
from pairflow.report.experiment.page import environment

_UNFOLDED = 12  # settings that differ: more are folded


def render(sections: Sequence[Section], numbers: str, same: Sequence[tuple[str, str]] = ()) -> str:
    """The page as HTML. `numbers` is the name of the file beside it, `same` pairs of runs with equal rows."""
    templates = environment()
    templates.filters |= {"p_value": p_value}
    runs = [run for section in sections for run in section.runs]
    return templates.get_template("compare/compare.html").render(
        sections=sections,
        runs=runs,
        single=len(runs) == 1,
        words=words,
        numbers=numbers,
        level=f"{100 * LEVEL:.0f} %",
        significance=SIGNIFICANCE,
        notices=[*_same(same), *_scales(runs), *_one_seed(runs)],
        differing=differing(runs),
        unfolded=_UNFOLDED,
        costs=_costs(runs),
    )


def p_value(p: float) -> str:
    """`p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def _same(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("The same numbers.", f"{other} has the very metric rows of {one}.") for one, other in pairs]


def _scales(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What the runs' scales leave open, as a heading and a sentence."""
    scales = {run.name: run.scale for run in runs}
    if len(set(scales.values())) > 1:
        which = "; ".join(f"{name}: {scale}" for name, scale in scales.items())
        return [("Different scales.", f"{which}. A difference between them is one of scale, too.")]
    if runs[0].settings["scale"] == "reduced":
        return [("Reduced scale.", "None of these numbers is comparable with the paper’s.")]
    return []


def _one_seed(runs: Sequence[Run]) -> list[tuple[str, str]]:
    names = [run.name for run in runs if run.seeds == 1]
    if not names:
        return []
    return [
        (
            "One training seed.",
            f"{', '.join(names)}: intervals and tests over sampling trials of one training, marked as such, "
            "say nothing of another training.",
        )
    ]


def _costs(runs: Sequence[Run]) -> Mapping[tuple[str, str], list[TrainingCost | None]]:
    """(method, work) -> what each run spent on it, None where it did no such work."""
    found = [
        {
            (cost.method, cost.work): cost
            for costs in training_costs(run.timings, run.settings).values()
            for cost in costs
        }
        for run in runs
    ]
    keys = dict.fromkeys(key for each in found for key in each)
    return {key: [_timed(each.get(key)) for each in found] for key in keys}


def _timed(cost: TrainingCost | None) -> TrainingCost | None:
    return cost if cost and np.isfinite(cost.seconds) else None
