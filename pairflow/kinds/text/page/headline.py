"""The head of the page of text: perplexities beside entropies, and bounds on the likelihood."""

from collections.abc import Mapping

import numpy as np

from pairflow.report.contents import Contents
from pairflow.report.grid import Grid, choose_digits, differ_in_entropy, list_grids
from pairflow.report.headline import Measure, MethodLine
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_number, join_steps


def measure(contents: Contents | FinishedExperiment, leading: Grid) -> dict[str, Measure]:
    """The judge's perplexity beside the entropy, known words, and the bounds on the likelihood."""
    measures: dict[str, Measure] = {}
    for grid in list_grids(contents.metrics, contents.experiment, leading.evaluation):
        if not grid.about.group:
            real = grid.floor.mean if grid.floor else np.nan
            digits = max(grid.about.digits, choose_digits([*grid.means.values(), real]))
            text = format_number(real, digits)
            measure = Measure(grid.about.label, grid.metric, grid.means, text, digits)
            measures.setdefault(grid.metric, measure)  # of several judges the first one leads
    nll, density = (contents.bounds.get(name, {}) for name in ("nll_bound", "bpc_bound"))
    bounds = {run: np.exp(nll.get(run[0], np.nan)) for run in leading.means}
    bits = {run: density.get(run[0], np.nan) for run in leading.means}
    measures["ppl_bound"] = Measure("perplexity bound", "ppl_bound", bounds, digits=2, sign="≤ ")
    measures["bpc_bound"] = Measure("bits per character", "bpc_bound", bits, digits=3, sign="≤ ")
    return measures


def describe(leading: Grid, best: MethodLine, measures: Mapping[str, Measure]) -> str:
    """The sentence of the head."""
    perplexity, entropy = (measures[name] for name in ("judge_ppl", "entropy"))
    found = [entropy.values[leading.best(method)] for method in {method for method, _ in leading.means}]
    limit = ""
    if differ_in_entropy(min(found), max(found)):
        limit = (
            f" The methods’ entropies, {min(found):.2f} to {max(found):.2f} nats, are too unlike for their "
            "perplexities to be compared, so that best here only means likeliest."
        )
    return (
        f"The best method, {best.method} at {join_steps([best.nfe])}, writes text of perplexity "
        f"{perplexity.text(best)} under the judge at an entropy of {entropy.text(best)} nats; held-out text "
        f"has {perplexity.real} at {entropy.real}.{limit}"
    )
