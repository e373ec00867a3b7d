"""The head of the page: how good each method is, measured against real data, before any contest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pairflow.limits import USABLE
from pairflow.report.costs import sampling_yields, training_costs
from pairflow.report.experiment.contents import Contents
from pairflow.report.panels import Panel, leading_panel, panels
from pairflow.report.tables import choose_digits, differ_in_entropy
from pairflow.report.words import format_number, format_percent, join_steps

_DISTANCES = {"fcd": "FCD", "logp_wasserstein": "logP distance"}  # of molecules; the first one measured

Values = Mapping[tuple[str, int], float]  # (method, NFE) -> a mean


@dataclass(frozen=True)
class MethodLine:
    """A row of the table: a method at its best number of sampling steps.

    `calls` of the network can change a sample. `seconds` is the time of pairing, base training
    and distillations, a mean over seeds; NaN where it is not known.
    """

    method: str
    nfe: int
    calls: int
    seconds: float


@dataclass(frozen=True)
class Measure:
    """A column of the table: its heading, its values, their text for real data; a share or a number.

    `metric` is the one that it is made from, and `sign` stands before every value.
    """

    heading: str
    metric: str
    values: Values
    real: str = "–"
    digits: int | None = None
    sign: str = ""

    def value(self, line: MethodLine) -> float:
        """NaN where it was not measured."""
        return self.values.get((line.method, line.nfe), np.nan)

    def text(self, line: MethodLine) -> str:
        value = self.value(line)
        text = format_percent(value) if self.digits is None else format_number(value, self.digits)
        return text if np.isnan(value) else f"{self.sign}{text}"


@dataclass(frozen=True)
class Headline:
    """The table and the sentence. `best` has the best value of `measures[0]`; `samples` are those of a trial.

    Measures of molecules have the keys valid, unique and, where they were measured, novel, useful and bound;
    those of images have the keys distance and, where it was measured, copies; those of token rows also have
    the key bound. Those of text have the names of metrics.
    """

    evaluation: str
    lines: list[MethodLine]
    best: MethodLine
    measures: dict[str, Measure]
    samples: int
    sentence: str

    @property
    def metrics(self) -> dict[str, str]:
        """Heading of a column -> its metric."""
        return {measure.heading: measure.metric for measure in self.measures.values()}

    def values(self, line: MethodLine) -> list[float]:
        """A line's values, as they stand in the table."""
        return [self.value(key, line) for key in self.measures]

    def value(self, key: str, line: MethodLine) -> float:
        """NaN where it was not measured."""
        measure = self.measures.get(key)
        return measure.value(line) if measure else np.nan


def make_headline(contents: Contents) -> Headline | None:
    """The head of an experiment's page; None without any value of a leading metric."""
    leading = leading_panel(contents.metrics, contents.modality)
    if leading is None:
        return None
    seconds = _training_seconds(contents)
    measured = {method for method, _ in leading.means}
    lines = {}
    for method in contents.methods:
        if method in measured:
            _, nfe = leading.best(method)
            calls = contents.experiment.count_calls(method, nfe, leading.evaluation)
            lines[method] = MethodLine(method, nfe, calls, seconds.get(method, np.nan))
    winner, _ = leading.best()
    measure, describe = {
        "molecules": (_measure_molecules, _describe_molecules),
        "images": (_measure_images, _describe_images),
        "text": (_measure_text, _describe_text),
        "tokens": (_measure_tokens, _describe_tokens),
        "vectors": (_measure_vectors, _describe_vectors),
    }[contents.modality]
    measures = measure(contents, leading)
    sentence = describe(leading, lines[winner], measures, contents)
    samples = int(leading.rows.samples.max())
    return Headline(leading.evaluation, [*lines.values()], lines[winner], measures, samples, sentence)


def _divide(counts: Values, whole: Values) -> Values:
    return {key: count / whole[key] for key, count in counts.items() if whole.get(key)}


def _measure_molecules(contents: Contents, leading: Panel) -> dict[str, Measure]:
    """Shares of the samples, of the valid ones and of the distinct ones, all by canonical SMILES."""
    measured = panels(contents.metrics, contents.modality, leading.evaluation)
    means = {panel.metric: panel.means for panel in measured}
    samples = dict.fromkeys(means["valid"], float(leading.rows.samples.max()))
    valid = _divide(means["valid"], samples)
    measures = {"valid": Measure("valid", "valid", valid, format_percent(1.0)), **_at_fewest_steps(valid)}
    if useful := means.get("useful_strict"):
        measures = {"useful": Measure("useful", "useful_strict", _divide(useful, samples)), **measures}
    if unique := means.get("unique_strict"):
        measures["unique"] = Measure("unique", "unique_strict", _divide(unique, means["valid"]))
        if novel := means.get("novel_strict"):
            heading = "off the rules" if contents.complete else "novel"
            real = format_percent(0.0) if contents.complete else "–"
            measures["novel"] = Measure(heading, "novel_strict", _divide(novel, unique), real)
    for metric, heading in _DISTANCES.items():
        if values := means.get(metric):
            digits = choose_digits([*values.values()])
            measures[metric] = Measure(heading, metric, values, digits=digits)
            break
    return measures | _measure_bound(contents, leading)


def _measure_bound(contents: Contents, leading: Panel) -> dict[str, Measure]:
    """The bound on the NLL of held-out rows; none where no rows are held out."""
    bounds = {run: contents.bounds.get(run[0], np.nan) for run in leading.means}
    return {"bound": Measure("NLL bound", "nll_bound", bounds, digits=3)} if contents.bounds else {}


def _at_fewest_steps(valid: Values) -> dict[str, Measure]:
    """The share of valid samples at the lowest NFE, for every run of a method; none if there is one NFE."""
    fewest, most = (choose(nfe for _, nfe in valid) for choose in (min, max))
    if fewest == most:
        return {}
    values = {(method, nfe): valid.get((method, fewest), np.nan) for method, nfe in valid}
    return {"few": Measure(f"valid at NFE {fewest}", "valid", values, format_percent(1.0))}


def _measure_images(contents: Contents, leading: Panel) -> dict[str, Measure]:
    values, floor = leading.means, leading.floor
    digits = choose_digits([*values.values(), *([floor.mean] if floor else [])])
    real = format_number(floor.mean, digits) if floor else "–"
    heading = f"{leading.about.label} {leading.beside}".strip()
    measures = {"distance": Measure(heading, leading.metric, values, real, digits)}
    for panel in panels(contents.metrics, contents.modality, leading.evaluation):
        if panel.metric == "nn_copies":
            measures["copies"] = Measure("copies", panel.metric, panel.means)
    return measures


def _measure_tokens(contents: Contents, leading: Panel) -> dict[str, Measure]:
    """The n-gram distance, the share of copies of training rows, and the bound on the NLL."""
    measures = _measure_images(contents, leading)
    for panel in panels(contents.metrics, contents.modality, leading.evaluation):
        if panel.metric == "copies":
            real = format_percent(panel.floor.mean) if panel.floor else "–"
            measures["copies"] = Measure("copies", panel.metric, panel.means, real)
    return measures | _measure_bound(contents, leading)


def _measure_vectors(contents: Contents, leading: Panel) -> dict[str, Measure]:
    """The main distances, each beside that of held-out data."""
    measures = {}
    for panel in panels(contents.metrics, contents.modality, leading.evaluation):
        if not panel.about.group:
            floor = panel.floor.mean if panel.floor else np.nan
            digits = max(panel.about.digits, choose_digits([*panel.means.values(), floor]))
            spread = replace(panel.floor, digits=digits).spread if panel.floor else ""
            text = f"{format_number(floor, digits)} {spread}".rstrip()
            measures[panel.metric] = Measure(panel.about.label, panel.metric, panel.means, text, digits)
    return measures


def _describe_vectors(leading: Panel, best: MethodLine, measures: Mapping[str, Measure], _: Contents) -> str:
    distance = measures[leading.metric]
    return (
        f"The best method, {best.method} at {join_steps([best.nfe])}, has a {distance.heading} of "
        f"{distance.text(best)} to the training data; held-out data have {distance.real}."
    )


def _measure_text(contents: Contents, leading: Panel) -> dict[str, Measure]:
    """The judge's perplexity beside the entropy, known words, and the bounds on the likelihood."""
    measures: dict[str, Measure] = {}
    for panel in panels(contents.metrics, contents.modality, leading.evaluation):
        if not panel.about.group:
            real = panel.floor.mean if panel.floor else np.nan
            digits = max(panel.about.digits, choose_digits([*panel.means.values(), real]))
            text = format_number(real, digits)
            measure = Measure(panel.about.label, panel.metric, panel.means, text, digits)
            measures.setdefault(panel.metric, measure)  # of several judges the first one leads
    bounds = {run: np.exp(contents.bounds.get(run[0], np.nan)) for run in leading.means}
    bits = {run: contents.bits.get(run[0], np.nan) for run in leading.means}
    measures["ppl_bound"] = Measure("perplexity bound", "ppl_bound", bounds, digits=2, sign="≤ ")
    measures["bpc_bound"] = Measure("bits per character", "bpc_bound", bits, digits=3, sign="≤ ")
    return measures


def _describe_text(leading: Panel, best: MethodLine, measures: Mapping[str, Measure], _: Contents) -> str:
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


def _describe_tokens(leading: Panel, best: MethodLine, measures: Mapping[str, Measure], _: Contents) -> str:
    distance = measures["distance"]
    value, steps = distance.text(best), join_steps([best.nfe])
    real = f"training rows have {distance.real}" if leading.floor else "that of real rows was not measured"
    return f"The best method, {best.method} at {steps}, has a {distance.heading} of {value}; {real}."


def _describe_molecules(
    leading: Panel, best: MethodLine, measures: Mapping[str, Measure], contents: Contents
) -> str:
    share = measures["valid"].value(best)
    steps, only = join_steps([best.nfe]), "Only " * (share < USABLE)
    text = (
        f"{only}{format_percent(share)} of the samples of the best method, {best.method} at {steps}, are "
        "valid molecules; all of the data are valid."
    )
    if "useful" in measures:
        text += f" {measures['useful'].text(best)} are useful: different, novel and as drug-like as the data."
    if contents.complete and "novel" in measures:
        off = measures["novel"].text(best)
        text += f" Of its distinct molecules {off} break the rules that all of the data keep."
    return text + _describe_yield(best, leading.evaluation, contents)


def _describe_yield(best: MethodLine, evaluation: str, contents: Contents) -> str:
    """What a second of sampling gives; empty where the times are not known."""
    yields = sampling_yields(contents.measured[contents.measured.evaluation == evaluation], contents.timings)
    own = yields[(yields.method == best.method) & (yields.nfe == best.nfe)]
    means = own.groupby("metric")["value"].mean()
    if "unique_per_second" not in means:
        return ""
    novel = ""
    if "novel_per_second" in means and not contents.complete:
        novel = f", {format_number(means['novel_per_second'], 1)} of them novel"
    return (
        f" A second of sampling gives {format_number(means['unique_per_second'], 1)} valid and different "
        f"molecules{novel}, by {best.calls} calls of the network for each sample."
    )


def _describe_images(leading: Panel, best: MethodLine, measures: Mapping[str, Measure], _: Contents) -> str:
    distance = measures["distance"]
    value, steps = distance.text(best), join_steps([best.nfe])
    real = f"real images have {distance.real}" if leading.floor else "that of real images was not measured"
    return f"The best method, {best.method} at {steps}, has {distance.heading} of {value}; {real}."


def _training_seconds(contents: Contents) -> dict[str, float]:
    """Method -> the time of its base, its pairing and its distillations; those of unknown time are NaN."""
    costs = training_costs(contents.timings, contents.experiment)
    totals = {}
    for method in contents.methods:
        base, *rounds = method.split("+")
        lineage = {"+".join([base, *rounds[:number]]) for number in range(len(rounds) + 1)}
        pieces = [cost for cost in costs.get(base, []) if cost.method in lineage]
        complete = {cost.method for cost in pieces} == lineage
        totals[method] = sum(cost.seconds for cost in pieces) if complete else np.nan
    return totals
