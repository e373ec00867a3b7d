"""The boxes under the headline about samples of molecules."""

from collections.abc import Iterator, Mapping

from pairflow.limits import HOPELESS
from pairflow.report import flaws
from pairflow.report.contents import Contents
from pairflow.report.headline import Box, Headline
from pairflow.report.kind_page import EXPECTED_COPIES, Flawed
from pairflow.report.words import format_count

_MEMORISED = 0.2  # training loss over validation loss of a network that has nothing left to learn
FEW = 100  # valid molecules of a trial: of fewer, the share of unique ones says little


def write_boxes(flawed: Mapping[str, Flawed], headline: Headline, contents: Contents) -> Iterator[Box]:
    """Invalid, useless and known molecules, and trials with too few of them."""
    if invalid := flawed.get("invalid"):
        named = headline.name_shares(invalid)
        text = f"Under half of the samples are valid molecules: {named}. {_advise(headline, contents)}"
        yield _warn_of_use(headline.best in invalid, text)
    if useless := flawed.get("useless"):  # valid as they may be
        text = (
            f"Under {HOPELESS:.0%} of the samples are useful molecules: {headline.name_shares(useless)}. "
            f"Valid SELFIES can be nonsense: look at the molecules. {_advise(headline, contents)}"
        )
        yield _warn_of_use(headline.best in useless, text)
    if known := flawed.get("copies"):
        text = f"distinct molecules are in the data set: {headline.name_shares(known)}. {EXPECTED_COPIES}"
        yield Box("Mostly copies.", f"More than half of the {text}")
    yield from _few(headline)


def _warn_of_use(severe: bool, text: str) -> Box:
    return Box("Not usable yet." if severe else "Not every method is usable.", text, severe)


def _advise(headline: Headline, contents: Contents) -> str:
    """What would give more valid molecules: no longer training where the network has memorised its data."""
    method = headline.best.method.partition("+")[0]  # a distillation has another loss
    log = contents.training_logs.get(method) if contents.experiment.training.loss == "nelbo" else None
    loss, nll = (1.0, 1.0) if log is None else flaws.end_losses(log)
    if loss < _MEMORISED * nll:
        return (
            f"{method} has memorised its training data (training loss {loss:.2f}, validation loss "
            f"{nll:.2f}): longer training will not help. Use more molecules, and on a GPU the transformer."
        )
    return "Train longer (training.iterations), use a larger network, or draw samples with more steps."


def _few(headline: Headline) -> Iterator[Box]:
    counts = {line: headline.samples * headline.value("valid", line) for line in headline.lines}
    few = {line: count for line, count in counts.items() if count < FEW}
    if few:
        named = headline.name_values(few, format_count)
        yield Box(
            "Too few to judge.",
            f"A trial has fewer than {FEW} valid molecules: {named}. The share of unique ones among so few "
            "says little. Draw more samples per trial.",
        )
