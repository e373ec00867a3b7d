"""The head of the page of molecules: shares of the samples, and what a second of sampling gives."""

from collections.abc import Mapping

import numpy as np

from pairflow.kinds.molecules.page.speed import sampling_yields
from pairflow.limits import USABLE
from pairflow.report.contents import Contents
from pairflow.report.grid import Grid, choose_digits, list_grids
from pairflow.report.headline import Measure, MethodLine, Values, measure_bound
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_number, format_percent, join_steps

_DISTANCES = {"fcd": "FCD", "logp_wasserstein": "logP distance"}  # the first one measured


def measure(contents: Contents | FinishedExperiment, leading: Grid, complete: bool) -> dict[str, Measure]:
    """Shares of the samples, of the valid ones and of the distinct ones, all by canonical SMILES."""
    measured = list_grids(contents.metrics, contents.experiment, leading.evaluation)
    means = {grid.metric: grid.means for grid in measured}
    samples = dict.fromkeys(means["valid"], float(leading.frame.samples.max()))
    valid = _divide(means["valid"], samples)
    measures = {"valid": Measure("valid", "valid", valid, format_percent(1.0)), **_at_fewest_steps(valid)}
    if useful := means.get("useful_strict"):
        measures = {"useful": Measure("useful", "useful_strict", _divide(useful, samples)), **measures}
    if unique := means.get("unique_strict"):
        measures["unique"] = Measure("unique", "unique_strict", _divide(unique, means["valid"]))
        if novel := means.get("novel_strict"):
            heading = "off the rules" if complete else "novel"
            real = format_percent(0.0) if complete else "–"
            measures["novel"] = Measure(heading, "novel_strict", _divide(novel, unique), real)
    for metric, heading in _DISTANCES.items():
        if values := means.get(metric):
            digits = choose_digits([*values.values()])
            measures[metric] = Measure(heading, metric, values, digits=digits)
            break
    return measures | measure_bound(contents, leading)


def _divide(counts: Values, whole: Values) -> Values:
    return {key: count / whole[key] for key, count in counts.items() if whole.get(key)}


def _at_fewest_steps(valid: Values) -> dict[str, Measure]:
    """The share of valid samples at the lowest NFE, for every run of a method; none if there is one NFE."""
    fewest, most = (choose(nfe for _, nfe in valid) for choose in (min, max))
    if fewest == most:
        return {}
    values = {(method, nfe): valid.get((method, fewest), np.nan) for method, nfe in valid}
    return {"few": Measure(f"valid at NFE {fewest}", "valid", values, format_percent(1.0))}


def describe(
    leading: Grid, best: MethodLine, measures: Mapping[str, Measure], contents: Contents, complete: bool
) -> str:
    """The sentence of the head."""
    share = measures["valid"].value(best)
    steps, only = join_steps([best.nfe]), "Only " * (share < USABLE)
    text = (
        f"{only}{format_percent(share)} of the samples of the best method, {best.method} at {steps}, are "
        "valid molecules; all of the data are valid."
    )
    if "useful" in measures:
        text += f" {measures['useful'].text(best)} are useful: different, novel and as drug-like as the data."
    if complete and "novel" in measures:
        off = measures["novel"].text(best)
        text += f" Of its distinct molecules {off} break the rules that all of the data keep."
    return text + _describe_yield(best, leading.evaluation, contents, complete)


def _describe_yield(best: MethodLine, evaluation: str, contents: Contents, complete: bool) -> str:
    """What a second of sampling gives; empty where the times are not known."""
    yields = sampling_yields(contents.measured[contents.measured.evaluation == evaluation], contents.timings)
    own = yields[(yields.method == best.method) & (yields.nfe == best.nfe)]
    means = own.groupby("metric")["value"].mean()
    if "unique_per_second" not in means:
        return ""
    novel = ""
    if "novel_per_second" in means and not complete:
        novel = f", {format_number(means['novel_per_second'], 1)} of them novel"
    return (
        f" A second of sampling gives {format_number(means['unique_per_second'], 1)} valid and different "
        f"molecules{novel}, by {best.calls} calls of the network for each sample."
    )
