"""Says how good each method is, and what is wrong with it: the head of a page, the last lines of a run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.config import BASES
from pairflow.kinds import page_of
from pairflow.report.findings import NAMED, Box, Flaw, Flaws, Headline, MethodLine, Run
from pairflow.report.grid import Grid
from pairflow.report.results import FinishedExperiment, read_finished, read_logs
from pairflow.report.stats import adjust
from pairflow.report.words import join_steps, join_words

_FAR_BELOW = 0.7  # training loss over validation loss: below it, a model is over-fitted
_FALL = 0.01  # relative fall of the validation loss over the last quarter of an unfinished training
_UNPAIRED = 0.1  # share of training rows without a pair above which models do not compare
_TRAININGS = {  # flaws of trainings -> the box about them
    "unfinished": (
        "Not trained to the end.",
        "In the last quarter of the training the validation loss still fell: {}. Train longer "
        "(training.iterations). For models of pairs this loss is only a hint.",
    ),
    "overfitted": (
        "Over-fitted.",
        "The validation loss no longer falls, and the training loss is far below it: {} of the validation "
        "loss. Use more data, fewer iterations, a smaller network or dropout.",
    ),
    "unpaired": (
        "Trained on other data.",
        "More than a tenth of the training rows have no pair: {}. Models of these pairs see less data than "
        "other models, so the comparison is not quite fair. Add the missing pairs.",
    ),
}


def make_headline(results: FinishedExperiment) -> Headline | None:
    """Make the head of an experiment's page, which says how good its methods are; None if no metric that
    ranks methods has a value."""
    leading = results.leading
    if leading is None:
        return None
    seconds = _training_seconds(results)
    measured = {method for method, _ in leading.means}
    lines = {}
    for method in results.experiment.methods:
        if method in measured:
            _, nfe = leading.best(method)
            calls = results.experiment.count_calls(method, nfe, leading.evaluation)
            lines[method] = MethodLine(method, nfe, calls, seconds[method])
    best = lines[leading.best()[0]]
    page = page_of(results.experiment)
    measures = page.headline_columns(results, leading)
    others = [line for line in lines.values() if line is not best]
    sentence = page.write_headline(leading, best, measures, results) + _name_equals(leading, best, others)
    samples = int(leading.frame.samples.max())
    return Headline(leading.evaluation, [*lines.values()], best, measures, samples, sentence)


def _name_equals(leading: Grid, best: MethodLine, others: Sequence[MethodLine]) -> str:
    """Write sentences that name which of `others` may be as good as the best method, by tests of the metric
    in `leading` at the best number of steps of each, and which were not tested; empty if there are none."""
    run = best.method, best.nfe
    tests = adjust(leading.test(run, (line.method, line.nfe)) for line in others)
    lines = [*zip(others, tests, strict=True)]
    open_ones = {
        "The tests find no difference between the best method and {}.": [
            line for line, test in lines if test.undecided
        ],
        "The difference between the best method and {} was not tested.": [
            line for line, test in lines if not test.test
        ],
    }
    text = ""
    for sentence, equal in open_ones.items():
        named = [f"{line.method} at {join_steps([line.nfe])}" for line in equal]
        if len(named) > NAMED:
            named = [f"{len(named)} of the {len(others)} other methods"]
        text += f" {sentence.format(join_words(named))}" if named else ""
    return text


def _training_seconds(results: FinishedExperiment) -> dict[str, float]:
    """Return {method: seconds of its base training, pairing and distillations}; NaN if a part is unknown."""
    totals = {}
    for method in results.experiment.methods:
        base, *rounds = method.split("+")
        lineage = {"+".join([base, *rounds[:number]]) for number in range(len(rounds) + 1)}
        pieces = [cost for cost in results.training_costs.get(base, []) if cost.method in lineage]
        complete = {cost.method for cost in pieces} == lineage
        totals[method] = sum(cost.seconds for cost in pieces) if complete else np.nan
    return totals


def closing_lines(root: Path) -> list[str]:
    """Write the last lines of `pairflow run`: the best method, the page, the command for new samples."""
    finished = read_finished(root)
    finished = replace(finished, logs=read_logs(root, finished.experiment))
    report, headline = f"report: {root / 'report.html'}", make_headline(finished)
    if headline is None:
        return [report]
    flaws = find_flaws(finished, headline.evaluation)[headline.best.method, headline.best.nfe]
    warnings = f" Warning: {', '.join(flaw.text for flaw in flaws)}." * bool(flaws)
    page = page_of(finished.experiment)
    command = page.sample_command(root, finished.experiment)
    last = f"new {page.things}: {command}" if command else ""
    if headline.hopeless:
        last = f"these {page.things} are not usable yet: the report says why, and what to do"
    return [headline.sentence + warnings, report, *filter(None, [last])]


def find_cautions(headline: Headline, results: FinishedExperiment) -> list[Box]:
    """Make the boxes about what is wrong with the models of an experiment, severe ones first."""
    by_run = find_flaws(results, headline.evaluation)
    flawed: dict[str, dict[MethodLine, list[Flaw]]] = {}
    for line in headline.lines:
        for flaw in by_run[line.method, line.nfe]:
            flawed.setdefault(flaw.kind, {}).setdefault(line, []).append(flaw)
    boxes = [*page_of(results.experiment).write_boxes(flawed, headline, results)]
    for kind, (title, text) in _TRAININGS.items():
        if kind in flawed:
            boxes.append(Box(title, text.format(headline.name_shares(flawed[kind]))))
    return sorted(boxes, key=lambda box: (not box.severe, box.late))


def find_flaws(results: FinishedExperiment, evaluation: str) -> Flaws:
    """Find what is wrong with each method's samples at each number of steps, and with its training. Returns
    {(method, NFE): its flaws}, with an empty list if there are none."""
    measured = results.grids[evaluation]
    flaws: dict[Run, list[Flaw]] = {run: [] for grid in measured for run in grid.means}
    for run, flaw in page_of(results.experiment).find_flaws(results, measured, evaluation):
        flaws.setdefault(run, []).append(flaw)
    methods = {method for method, _ in flaws}
    of_trainings = {method: [*_find_training_flaws(results, method)] for method in methods}
    return {run: [*flaws_of_run, *of_trainings[run[0]]] for run, flaws_of_run in flaws.items()}


def _find_training_flaws(results: FinishedExperiment, method: str) -> Iterator[Flaw]:
    """Yield the flaws of a method's training.

    Training and validation loss compare only if they are the same bound on the NLL, which needs new
    independent sources in every batch, and if the validation loss no longer falls.
    """
    log = results.logs.get(method)
    if log is not None and "validation_nll" in log and log.validation_nll.notna().any():
        fall, (loss, nll) = _measure_fall(log), end_losses(log)
        independent = method in BASES and BASES[method].independent
        if fall > _FALL:
            yield Flaw("unfinished", "not trained to the end", fall)
        elif independent and results.experiment.training.loss == "nelbo" and loss < _FAR_BELOW * nll:
            yield Flaw("overfitted", "over-fitted", loss / nll)
    unpaired = results.unpaired.get(method.partition("+")[0], 0.0)
    if unpaired > _UNPAIRED:
        yield Flaw("unpaired", "trained on a part of the data", unpaired)


def _measure_fall(log: pd.DataFrame) -> float:
    """Return the relative fall of the validation loss over the last quarter of a training; NaN if it was not
    measured."""
    measured = log.dropna(subset="validation_nll")
    before = measured[measured.iteration <= 0.75 * log.iteration.max()]
    if before.empty:
        return np.nan
    first = before.validation_nll.iloc[-1]
    return float((first - measured.validation_nll.iloc[-1]) / abs(first)) if first else np.nan


def end_losses(log: pd.DataFrame) -> tuple[float, float]:
    """Return the mean training loss over the last tenth of the iterations, and the last validation loss; NaN
    if missing."""
    late = log[log.iteration >= 0.9 * log.iteration.max()]
    return float(late.loss.mean()), float(log.validation_nll.dropna().iloc[-1:].mean())
