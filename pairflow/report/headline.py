"""How good each method is, measured against real data: the head of the page, and the last lines of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pairflow.limits import HOPELESS
from pairflow.report.contents import Contents
from pairflow.report.costs import training_costs
from pairflow.report.flaws import (
    Flaw,
    collect_evidence,
    find_flaws,
    find_overfitted,
    find_partial,
    find_unfinished,
)
from pairflow.report.grid import Grid, leading_grid
from pairflow.report.pages import page_of
from pairflow.report.results import FinishedExperiment, read_finished, read_logs
from pairflow.report.words import format_number, format_percent, is_paired, join_steps, join_words

_NAMED = 4  # methods, at most, that a box names

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

    The keys of the measures are those that the kind's page gives them (`KindPage.measure`).
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

    def name_values(self, values: Mapping[MethodLine, float], text: Callable[[float], str]) -> str:
        """The methods with their values; of many only their number, as the table has the values."""
        if len(values) > _NAMED:
            ends = f"{text(min(values.values()))} to {text(max(values.values()))}"
            return f"{len(values)} of {len(self.lines)} methods ({ends})"
        return join_words([f"{line.method} ({text(value)})" for line, value in values.items()])

    def name_shares(self, flawed: Mapping[MethodLine, Sequence[Flaw]]) -> str:
        """The methods with the share that is their first flaw."""
        return self.name_values({line: flaws[0].value for line, flaws in flawed.items()}, format_percent)


class Quality(NamedTuple):
    """How good the best run is, in words that follow its name: `75.0 % of its samples are valid molecules`.

    `share` is that of good samples, 1 where none are counted; `flaws` are those that the words have already.
    """

    text: str
    share: float = 1.0
    flaws: Sequence[Flaw] = ()


class Box(NamedTuple):
    """A box under the headline: what is wrong, and what to do.

    `severe`: the best method is not usable. `late`: it stands after what is wrong with the trainings.
    """

    title: str
    text: str
    severe: bool = False
    late: bool = False


def make_headline(contents: Contents) -> Headline | None:
    """The head of an experiment's page; None without any value of a leading metric."""
    leading = leading_grid(contents.metrics, contents.experiment)
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
    page = page_of(contents.experiment)
    measures = page.headline_columns(contents, leading)
    sentence = page.write_headline(leading, lines[winner], measures, contents)
    samples = int(leading.frame.samples.max())
    return Headline(leading.evaluation, [*lines.values()], lines[winner], measures, samples, sentence)


def measure_grid(grid: Grid, heading: str) -> Measure:
    """A metric with that of real data, and the decimals that show both."""
    return Measure(heading, grid.metric, grid.means, grid.floor.text if grid.floor else "–", grid.digits)


def measure_bound(contents: Contents | FinishedExperiment, leading: Grid) -> dict[str, Measure]:
    """The bound on the NLL of held-out rows; empty where no rows are held out."""
    if not (bounds := contents.bounds.get("nll_bound")):
        return {}
    values = {run: bounds.get(run[0], np.nan) for run in leading.means}
    return {"bound": Measure("NLL bound", "nll_bound", values, digits=3)}


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


def closing_lines(root: Path) -> list[str]:
    """What `pairflow run` says at the end: the best method, the page, and the command for new samples."""
    finished = read_finished(root)
    finished = replace(finished, logs=read_logs(root, finished.experiment))
    lines = [f"report: {root / 'report.html'}"]
    headline, share = _describe_best(finished)
    if not headline:
        return lines
    page = page_of(finished.experiment)
    if share < HOPELESS:
        lines.append("not usable yet: the report says why, and what to do")
    elif command := page.sample_command(root, finished.experiment):
        lines.append(f"{page.things}: {command}")
    return [headline, *lines]


def _describe_best(finished: FinishedExperiment) -> tuple[str, float]:
    """How good the best method is, by the metric that pages begin with, and its share of good samples.

    What is wrong with its samples stands in the same line. Empty without any value of that metric.
    """
    experiment = finished.experiment
    leading = leading_grid(finished.measured, experiment)
    if leading is None:
        return "", 1.0
    run = leading.best()
    contest = f"best of {len(experiment.methods)} methods: " if len(experiment.methods) > 1 else ""
    flaws = find_flaws(collect_evidence(finished), leading.evaluation)[run]
    quality: Quality = page_of(experiment).rate(leading, finished, flaws)
    warnings = ", ".join(flaw.text for flaw in flaws if flaw not in quality.flaws)
    start, end = f"{contest}{run[0]} with {join_steps([run[1]])}", f"; warning: {warnings}" * bool(warnings)
    return f"{start}, {quality.text}{end}", quality.share


def find_cautions(headline: Headline, contents: Contents) -> list[Box]:
    """What is wrong with the models of an experiment, the severe ones first."""
    by_run = find_flaws(contents.evidence, headline.evaluation)
    flawed: dict[str, dict[MethodLine, list[Flaw]]] = {}
    for line in headline.lines:
        for flaw in by_run[line.method, line.nfe]:
            flawed.setdefault(flaw.kind, {}).setdefault(line, []).append(flaw)
    samples = page_of(contents.experiment).write_boxes(flawed, headline, contents)
    boxes = [*samples, *_warn_of_trainings(contents), *_warn_of_couplings(contents)]
    return sorted(boxes, key=lambda box: (not box.severe, box.late))


def _warn_of_couplings(contents: Contents) -> Iterator[Box]:
    """Couplings of a user's own that leave out much of the training data."""
    shares = find_partial(contents.evidence.unpaired)
    partial = [f"{name} ({format_percent(share)})" for name, share in shares.items()]
    if partial:
        yield Box(
            "Trained on other data.",
            f"More than a tenth of the training rows have no pair: {join_words(partial)}. Models that are "
            "trained on these pairs see less data than the others, so that they compare only in part. Add "
            "the missing pairs.",
        )


def _warn_of_trainings(contents: Contents) -> Iterator[Box]:
    """Trainings that stopped too early or too late."""
    logs = contents.training_logs
    early = find_unfinished(logs)
    if early:
        named = join_words([f"{method} (by {format_percent(fall)})" for method, fall in early.items()])
        validated = {method for method, log in logs.items() if "validation_nll" in log}
        paired = any(is_paired(method) for method in validated - set(early))
        unknown = " This loss cannot tell whether a model of paired sources is trained to the end." * paired
        yield Box(
            "Not trained to the end.",
            f"The validation loss still fell over the last quarter of the training: {named}. Raise "
            f"training.iterations.{unknown}",
        )
    late = find_overfitted(contents.experiment, logs)
    if late:
        named = join_words([f"{name} ({loss:.2f} against {nll:.2f})" for name, (loss, nll) in late.items()])
        yield Box(
            "Over-fitted.",
            f"The training loss is far below the validation loss, which no longer falls: {named}. Use more "
            "data, fewer iterations, a smaller network or dropout.",
        )
