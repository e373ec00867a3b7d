"""What is wrong with the samples of a method, as pages, verdicts and the last lines of a run say it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.config import BASES, Experiment
from pairflow.report.grid import list_grids
from pairflow.report.pages import page_of
from pairflow.report.results import FinishedExperiment

_FAR_BELOW = 0.7  # training loss over validation loss
_FALL = 0.01  # of the validation loss over the last quarter of a training
_COPIES = 0.5
_UNPAIRED = 0.1  # of the training rows


@dataclass(frozen=True)
class Evidence:
    """What flaws are found in.

    `metrics` has the rows of samples, of real data and of controls, `logs` has the training log of
    each method, and `unpaired` is the share of the training rows that a user's own coupling leaves out.
    """

    experiment: Experiment
    metrics: pd.DataFrame
    logs: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    unpaired: Mapping[str, float] = field(default_factory=dict)


def collect_evidence(run: FinishedExperiment) -> Evidence:
    """Of a finished experiment; each pair of a user's own is taken for that of another training row."""
    rows = run.metrics[run.metrics.metric == "unpaired_rows"].dropna(subset="samples")
    shares = rows.value / (rows.value + rows.samples.astype(float))
    unpaired = dict(zip(rows.method, shares, strict=True))
    return Evidence(run.experiment, run.metrics, run.logs, unpaired)


class Flaw(NamedTuple):
    """`text` follows the name of a method; `value` is what was measured, NaN where `text` says it all."""

    kind: str
    text: str
    value: float = np.nan


Run = tuple[str, int]  # method and NFE
Flaws = Mapping[Run, list[Flaw]]


def find_flaws(evidence: Evidence, evaluation: str) -> Flaws:
    """What is wrong with the samples of each method at each number of steps, and with its training."""
    measured = list_grids(evidence.metrics, evidence.experiment, evaluation)
    flaws: dict[Run, list[Flaw]] = {run: [] for grid in measured for run in grid.means}
    for run, flaw in page_of(evidence.experiment).find_flaws(evidence, measured, evaluation):
        flaws.setdefault(run, []).append(flaw)
    of_trainings = _find_training_flaws(evidence)
    return {run: [*own, *of_trainings.get(run[0], [])] for run, own in flaws.items()}


def find_copies(shares: Mapping[Run, float], text: str, real: float = np.nan) -> Iterator[tuple[Run, Flaw]]:
    """Runs whose samples are mostly copies of the data, by their shares and that of real data."""
    for run, share in shares.items():
        if share > max(_COPIES, real):
            yield run, Flaw("copies", text, share)


def _find_training_flaws(evidence: Evidence) -> dict[str, list[Flaw]]:
    """Method -> what is wrong with its training."""
    flaws: dict[str, list[Flaw]] = {}
    for method, fall in find_unfinished(evidence.logs).items():
        flaws.setdefault(method, []).append(Flaw("unfinished", "not trained to the end", fall))
    for method, (loss, nll) in find_overfitted(evidence.experiment, evidence.logs).items():
        flaws.setdefault(method, []).append(Flaw("overfitted", "over-fitted", loss / nll))
    partial = find_partial(evidence.unpaired)
    for method in evidence.experiment.methods:
        if share := partial.get(method.partition("+")[0]):
            flaws.setdefault(method, []).append(Flaw("unpaired", "trained on a part of the data", share))
    return flaws


def find_partial(unpaired: Mapping[str, float]) -> dict[str, float]:
    """The couplings that leave out much of the training data, with their shares."""
    return {name: share for name, share in unpaired.items() if share > _UNPAIRED}


def find_unfinished(logs: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    """Method -> the share by which its validation loss still fell over the last quarter of its training."""
    falls = {method: _fall(log) for method, log in logs.items() if "validation_nll" in log}
    return {method: fall for method, fall in falls.items() if fall > _FALL}


def _fall(log: pd.DataFrame) -> float:
    """Share by which the validation loss fell over the last quarter of a training; NaN if not measured."""
    measured = log.dropna(subset="validation_nll")
    before = measured[measured.iteration <= 0.75 * log.iteration.max()]
    if before.empty:
        return np.nan
    first = before.validation_nll.iloc[-1]
    return float((first - measured.validation_nll.iloc[-1]) / abs(first)) if first else np.nan


def find_overfitted(
    experiment: Experiment, logs: Mapping[str, pd.DataFrame]
) -> dict[str, tuple[float, float]]:
    """Method -> training loss and validation loss at the end, where the former is far below the latter.

    Only where the two are the same bound on the NLL: that of sources drawn again for every batch; and where
    the validation loss no longer falls.
    """
    if experiment.training.loss != "nelbo":
        return {}
    unfinished = find_unfinished(logs)
    losses = {
        method: end_losses(log)
        for method, log in logs.items()
        if method in BASES and BASES[method].independent and method not in unfinished
        if "validation_nll" in log and log.validation_nll.notna().any()
    }
    return {method: (loss, nll) for method, (loss, nll) in losses.items() if loss < _FAR_BELOW * nll}


def end_losses(log: pd.DataFrame) -> tuple[float, float]:
    """Training loss over the last tenth of the iterations, and validation loss at the end, or NaN."""
    late = log[log.iteration >= 0.9 * log.iteration.max()]
    return float(late.loss.mean()), float(log.validation_nll.dropna().iloc[-1:].mean())
