"""What is wrong with the samples of a method, as pages, verdicts and the last lines of a run say it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.config import BASES
from pairflow.report.grid import list_grids
from pairflow.report.pages import page_of
from pairflow.report.results import FinishedExperiment

_FAR_BELOW = 0.7  # training loss over validation loss
_FALL = 0.01  # of the validation loss over the last quarter of a training
_UNPAIRED = 0.1  # of the training rows


class Flaw(NamedTuple):
    """`text` follows the name of a method; `value` is what was measured, NaN where `text` says it all."""

    kind: str
    text: str
    value: float = np.nan


Run = tuple[str, int]  # method and NFE
Flaws = Mapping[Run, list[Flaw]]


def find_flaws(results: FinishedExperiment, evaluation: str) -> Flaws:
    """What is wrong with the samples of each method at each number of steps, and with its training."""
    measured = list_grids(results.metrics, results.experiment, evaluation)
    flaws: dict[Run, list[Flaw]] = {run: [] for grid in measured for run in grid.means}
    for run, flaw in page_of(results.experiment).find_flaws(results, measured, evaluation):
        flaws.setdefault(run, []).append(flaw)
    methods = {method for method, _ in flaws}
    of_trainings = {method: [*_find_training_flaws(results, method)] for method in methods}
    return {run: [*own, *of_trainings[run[0]]] for run, own in flaws.items()}


def _find_training_flaws(results: FinishedExperiment, method: str) -> Iterator[Flaw]:
    """What is wrong with the training of a method.

    The two losses compare only where they are the same bound on the NLL: that of sources drawn again for
    every batch; and where the validation loss no longer falls.
    """
    log = results.logs.get(method)
    if log is not None and "validation_nll" in log and log.validation_nll.notna().any():
        fall, (loss, nll) = _measure_fall(log), end_losses(log)
        drawn_again = method in BASES and BASES[method].independent
        if fall > _FALL:
            yield Flaw("unfinished", "not trained to the end", fall)
        elif drawn_again and results.experiment.training.loss == "nelbo" and loss < _FAR_BELOW * nll:
            yield Flaw("overfitted", "over-fitted", loss / nll)
    unpaired = results.unpaired.get(method.partition("+")[0], 0.0)
    if unpaired > _UNPAIRED:
        yield Flaw("unpaired", "trained on a part of the data", unpaired)


def _measure_fall(log: pd.DataFrame) -> float:
    """Share by which the validation loss fell over the last quarter of a training; NaN if not measured."""
    measured = log.dropna(subset="validation_nll")
    before = measured[measured.iteration <= 0.75 * log.iteration.max()]
    if before.empty:
        return np.nan
    first = before.validation_nll.iloc[-1]
    return float((first - measured.validation_nll.iloc[-1]) / abs(first)) if first else np.nan


def end_losses(log: pd.DataFrame) -> tuple[float, float]:
    """Training loss over the last tenth of the iterations, and validation loss at the end, or NaN."""
    late = log[log.iteration >= 0.9 * log.iteration.max()]
    return float(late.loss.mean()), float(log.validation_nll.dropna().iloc[-1:].mean())
