"""What is wrong with the samples of a method, as pages, verdicts and the last lines of a run say it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.config import BASES, Experiment
from pairflow.kinds.text.controls import CONTROLS
from pairflow.limits import HOPELESS, USABLE
from pairflow.report.panels import panels
from pairflow.report.results import FinishedExperiment, is_complete
from pairflow.report.tables import REAL

HELD_OUT = "held-out text"
SECOND = "second_ppl"  # what `TextValues` call the perplexity under the second judge
_FAR_BELOW = 0.7  # training loss over validation loss
_FALL = 0.01  # of the validation loss over the last quarter of a training
_COPIES = 0.5
_UNPAIRED = 0.1  # of the training rows
_LEAST_ENTROPY = 0.9  # of that of held-out text: samples below it vary too little
_LEAST_DISTINCT = 0.5  # likewise, for distinct 4-grams
_COPIED = {
    "molecules": "most of its molecules are in the data set",
    "images": "most of its samples equal training images",
    "tokens": "most of its samples equal training rows",
}

TextValues = Mapping[str, float]  # metric -> mean


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
    experiment = evidence.experiment
    measured = panels(evidence.metrics, experiment.modality, evaluation)
    means = {panel.metric: panel.means for panel in measured}
    flaws: dict[Run, list[Flaw]] = {run: [] for panel in measured for run in panel.means}
    found = [*_list_copies(evidence, means), *_list_nonsense(evidence, evaluation)]
    if "valid" in means:
        samples = max(int(panel.rows.samples.max()) for panel in measured)
        found += _list_useless(means, samples)
    for run, flaw in found:
        flaws.setdefault(run, []).append(flaw)
    of_trainings = _find_training_flaws(evidence)
    return {run: [*own, *of_trainings.get(run[0], [])] for run, own in flaws.items()}


def _list_useless(means: Mapping[str, Mapping[Run, float]], samples: int) -> Iterator[tuple[Run, Flaw]]:
    for run, count in means["valid"].items():
        if count / samples < USABLE:
            yield run, Flaw("invalid", "under half of its samples are valid molecules", count / samples)
    for run, count in means.get("useful_strict", {}).items():
        if count / samples < HOPELESS:
            text = f"under {HOPELESS:.0%} of its samples are useful molecules"
            yield run, Flaw("useless", text, count / samples)


def _list_copies(evidence: Evidence, means: Mapping[str, Mapping[Run, float]]) -> Iterator[tuple[Run, Flaw]]:
    """Samples that equal training data; molecules that are known, unless the data hold all there are."""
    modality, rows = evidence.experiment.modality, evidence.metrics
    if is_complete(evidence.experiment):
        return
    shares = {**means.get("nn_copies", {}), **means.get("copies", {})}
    if modality == "molecules":
        unique = means.get("unique_strict", {})
        novel = means.get("novel_strict", {})
        shares = {run: 1 - novel[run] / count for run, count in unique.items() if run in novel and count}
    real = rows.value[(rows.method == REAL) & (rows.metric == "copies")].mean()  # NaN but for token rows
    for run, share in shares.items():
        if share > max(_COPIES, real):
            yield run, Flaw("copies", _COPIED[modality], share)


def _list_nonsense(evidence: Evidence, evaluation: str) -> Iterator[tuple[Run, Flaw]]:
    points = find_points(evidence.metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return
    samples = evidence.metrics[~evidence.metrics.method.isin([REAL, *CONTROLS])]
    for (method, nfe), values in mean_values(samples, evaluation, ["method", "nfe"]).items():
        for text in find_warnings(values, points[HELD_OUT], points["shuffled"]):
            yield (method, int(nfe)), Flaw("nonsense", text)


def find_points(metrics: pd.DataFrame, evaluation: str) -> dict[str, TextValues]:
    """Real text and the controls, as far as they were measured."""
    means = mean_values(metrics, evaluation, ["method"])
    points = {HELD_OUT: means.get((REAL,), {})} | {name: means.get((name,), {}) for name in CONTROLS}
    return {name: values for name, values in points.items() if values}


def find_warnings(values: TextValues, real: TextValues, shuffled: TextValues) -> list[str]:
    """What is suspicious about samples, from their means and those of real and of shuffled text.

    A good perplexity is no proof: rows of one common word repeated have one (arXiv 2606.08417).
    """
    suspicious = {
        "likelier than real text": values["judge_ppl"] < real["judge_ppl"],
        "varies too little": values["entropy"] < _LEAST_ENTROPY * real["entropy"],
        "samples repeat one another": values["distinct_4"] < _LEAST_DISTINCT * real["distinct_4"],
        "trigrams no nearer to text than shuffled text’s": values["js_trigram"] >= shuffled["js_trigram"],
    }
    return [text for text, holds in suspicious.items() if holds]


def mean_values(rows: pd.DataFrame, evaluation: str, keys: list[str]) -> dict[tuple, dict[str, float]]:
    """Key -> metric -> the mean over seeds and trials; the second judge's perplexity is `SECOND`."""
    own = rows[(rows.evaluation == evaluation)].dropna(subset="value")
    own = own.assign(metric=own.metric.mask(is_second(own), SECOND))
    means = own.groupby([*keys, "metric"])["value"].mean()
    values_of: dict[tuple, dict[str, float]] = {}
    for (*key, metric), value in means.items():
        values_of.setdefault(tuple(key), {})[metric] = float(value)
    return values_of


def is_second(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each row is of the second judge."""
    return rows.extractor.astype("object").fillna("").str.startswith("transformer")


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
        if method in BASES and not BASES[method].coupled and method not in unfinished
        if "validation_nll" in log and log.validation_nll.notna().any()
    }
    return {method: (loss, nll) for method, (loss, nll) in losses.items() if loss < _FAR_BELOW * nll}


def end_losses(log: pd.DataFrame) -> tuple[float, float]:
    """Training loss over the last tenth of the iterations, and validation loss at the end, or NaN."""
    late = log[log.iteration >= 0.9 * log.iteration.max()]
    return float(late.loss.mean()), float(log.validation_nll.dropna().iloc[-1:].mean())
