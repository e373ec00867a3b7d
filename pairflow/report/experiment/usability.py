"""What makes a model unusable, or its numbers hard to judge, and what to do about it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pairflow.config import BASES
from pairflow.limits import HOPELESS, USABLE
from pairflow.report.experiment.contents import Contents
from pairflow.report.experiment.headline import Headline, MethodLine
from pairflow.report.experiment.texts import measured_rows
from pairflow.report.words import format_count, format_percent, is_paired, join_words

FEW = 100  # valid molecules of a trial: of fewer, the share of unique ones says little
_FAR_BELOW = 0.7  # training loss over validation loss
_MEMORISED = 0.2  # likewise, for a network that has nothing left to learn from its training data
_FALL = 0.01  # of the validation loss over the last quarter of a training
_COPIES = 0.5
_UNPAIRED = 0.1  # of the training rows
_NAMED = 4  # methods, at most, that a box names


@dataclass(frozen=True)
class Caution:
    """A box under the headline: what is wrong, and what to do. `severe`: the best method is not usable."""

    title: str
    text: str
    severe: bool = False


def find_cautions(headline: Headline, contents: Contents) -> list[Caution]:
    """What is wrong with the models of an experiment, the severe ones first."""
    cautions = [
        *_invalid(headline, contents),
        *_useless(headline, contents),
        *_copies(headline, contents),
        *_few(headline),
        *_losses(contents),
    ]
    cautions += [*_unpaired(contents), *_nonsense(headline, contents)]
    return sorted(cautions, key=lambda caution: not caution.severe)


def _name(values: Mapping[MethodLine, float], headline: Headline, text: Callable[[float], str]) -> str:
    """The methods with their values; of many only their number, as the table has the values."""
    if len(values) > _NAMED:
        ends = f"{text(min(values.values()))} to {text(max(values.values()))}"
        return f"{len(values)} of {len(headline.lines)} methods ({ends})"
    return join_words([f"{line.method} ({text(value)})" for line, value in values.items()])


def _invalid(headline: Headline, contents: Contents) -> Iterator[Caution]:
    shares = {line: headline.value("valid", line) for line in headline.lines}
    broken = {line: share for line, share in shares.items() if share < USABLE}
    if broken:
        named = _name(broken, headline, format_percent)
        severe = headline.best in broken
        yield Caution(
            "Not usable yet." if severe else "Not every method is usable.",
            f"Under half of the samples are valid molecules: {named}. {_advise(headline, contents)}",
            severe,
        )


def _useless(headline: Headline, contents: Contents) -> Iterator[Caution]:
    """Methods with hardly any useful molecule, valid as they may be; none where these were not counted."""
    shares = {line: headline.value("useful", line) for line in headline.lines}
    broken = {line: share for line, share in shares.items() if share < HOPELESS}
    if broken:
        named = _name(broken, headline, format_percent)
        severe = headline.best in broken
        yield Caution(
            "Not usable yet." if severe else "Not every method is usable.",
            f"Under {HOPELESS:.0%} of the samples are useful molecules: {named}. Valid SELFIES can be "
            f"nonsense: look at the molecules. {_advise(headline, contents)}",
            severe,
        )


def _advise(headline: Headline, contents: Contents) -> str:
    """What would give more valid molecules: no longer training where the network has memorised its data."""
    method = headline.best.method.partition("+")[0]  # a distillation has another loss
    log = contents.training_logs.get(method) if contents.experiment.training.loss == "nelbo" else None
    loss, nll = (1.0, 1.0) if log is None else _end_losses(log)
    if loss < _MEMORISED * nll:
        return (
            f"{method} has learnt its training data by heart (training loss {loss:.2f}, validation loss "
            f"{nll:.2f}): longer training will not help. Use more molecules, and on a GPU the transformer."
        )
    return "Train longer (training.iterations), use a larger network, or draw samples with more steps."


def _copies(headline: Headline, contents: Contents) -> Iterator[Caution]:
    """Samples that equal training data; molecules that are known, unless the data hold all there are."""
    of_molecules = contents.modality == "molecules"
    if contents.complete:
        return
    shares = {
        line: 1 - headline.value("novel", line) if of_molecules else headline.value("copies", line)
        for line in headline.lines
    }
    real = contents.real.value[contents.real.metric == "copies"].mean()  # NaN but for token rows
    copying = {line: share for line, share in shares.items() if share > max(_COPIES, real)}
    if copying:
        named = _name(copying, headline, format_percent)
        what = {
            "molecules": "distinct molecules are in the data set",
            "images": "samples equal training images",
            "text": "samples equal training rows",
            "tokens": "samples equal training rows",
        }[contents.modality]
        of_images = contents.modality == "images"
        expected = "" if of_images else "That is expected where the data hold nearly all of their kind. Else "
        advice = "use more data, fewer iterations or a smaller network."
        advice = expected + advice if expected else advice.capitalize()
        yield Caution("Mostly copies.", f"More than half of the {what}: {named}. {advice}", of_images)


def _nonsense(headline: Headline, contents: Contents) -> Iterator[Caution]:
    """Methods whose samples, at their best number of steps, have a value like that of nonsense."""
    rows = {(row.name, row.nfe): row for row in measured_rows(contents, headline.evaluation)}
    by_line = {
        line: rows[line.method, line.nfe] for line in headline.lines if (line.method, line.nfe) in rows
    }
    suspects = {line: row.warnings for line, row in by_line.items() if row.warnings}
    if suspects:
        named = "; ".join(f"{line.method}: {', '.join(texts)}" for line, texts in suspects.items())
        yield Caution(
            "Perhaps not text.",
            f"Samples are suspicious: {named}. Read some, and compare them with the controls, before you "
            "trust a good perplexity.",
            len(suspects.get(headline.best, ())) > 1,
        )


def _few(headline: Headline) -> Iterator[Caution]:
    counts = {line: headline.samples * headline.value("valid", line) for line in headline.lines}
    few = {line: count for line, count in counts.items() if count < FEW}
    if few:
        named = _name(few, headline, format_count)
        yield Caution(
            "Too few to judge.",
            f"A trial has fewer than {FEW} valid molecules: {named}. The share of unique ones among so few "
            "says little. Draw more samples per trial.",
        )


def _unpaired(contents: Contents) -> Iterator[Caution]:
    """Couplings of a user's own that leave out much of the training data."""
    rows = contents.data["training_rows"]
    shares = {name: values["unpaired_rows"] / rows for name, values in contents.adopted.items()}
    partial = [f"{name} ({format_percent(share)})" for name, share in shares.items() if share > _UNPAIRED]
    if partial:
        yield Caution(
            "Trained on other data.",
            f"More than a tenth of the training rows have no pair: {join_words(partial)}. Models that are "
            "trained on these pairs see less data than the others, so that they compare only in part. Add "
            "the missing pairs.",
        )


def _losses(contents: Contents) -> Iterator[Caution]:
    """Trainings that stopped too early or too late."""
    logs = {method: log for method, log in contents.training_logs.items() if "validation_nll" in log}
    falls = {method: _fall(log) for method, log in logs.items()}
    early = {method: fall for method, fall in falls.items() if fall > _FALL}
    if early:
        named = join_words([f"{method} (by {format_percent(fall)})" for method, fall in early.items()])
        paired = any(is_paired(method) for method in set(logs) - set(early))
        unknown = " This loss cannot tell whether a model of paired sources is trained to the end." * paired
        yield Caution(
            "Not trained to the end.",
            f"The validation loss still fell over the last quarter of the training: {named}. Raise "
            f"training.iterations.{unknown}",
        )
    late = {
        method: losses
        for method, losses in _final_losses(logs, contents).items()
        if method not in early and losses[0] < _FAR_BELOW * losses[1]
    }
    if late:
        named = join_words([f"{name} ({loss:.2f} against {nll:.2f})" for name, (loss, nll) in late.items()])
        yield Caution(
            "Over-fitted.",
            f"The training loss is far below the validation loss, which no longer falls: {named}. Use more "
            "data, fewer iterations, a smaller network or dropout.",
        )


def _fall(log: pd.DataFrame) -> float:
    """Share by which the validation loss fell over the last quarter of a training; NaN if not measured."""
    measured = log.dropna(subset="validation_nll")
    before = measured[measured.iteration <= 0.75 * log.iteration.max()]
    if before.empty:
        return np.nan
    first = before.validation_nll.iloc[-1]
    return float((first - measured.validation_nll.iloc[-1]) / abs(first)) if first else np.nan


def _final_losses(logs: Mapping[str, pd.DataFrame], contents: Contents) -> dict[str, tuple[float, float]]:
    """Method -> training loss over the last tenth of the iterations, and validation loss at the end.

    Only where the two are the same bound on the NLL: that of sources drawn again for every batch.
    """
    if contents.experiment.training.loss != "nelbo":
        return {}
    losses = {}
    for method, log in logs.items():
        if method in BASES and not BASES[method].coupled and log.validation_nll.notna().any():
            losses[method] = _end_losses(log)
    return losses


def _end_losses(log: pd.DataFrame) -> tuple[float, float]:
    """Training loss over the last tenth of the iterations, and validation loss at the end, or NaN."""
    late = log[log.iteration >= 0.9 * log.iteration.max()]
    return float(late.loss.mean()), float(log.validation_nll.dropna().iloc[-1:].mean())
