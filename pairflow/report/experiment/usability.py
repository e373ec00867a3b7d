"""The boxes under the headline: what makes a model unusable or its numbers hard to judge, and what to do."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pairflow.limits import HOPELESS
from pairflow.report import flaws
from pairflow.report.experiment.contents import Contents
from pairflow.report.experiment.headline import Headline, MethodLine
from pairflow.report.flaws import Flaw
from pairflow.report.words import format_count, format_percent, is_paired, join_words

_MEMORISED = 0.2  # training loss over validation loss of a network that has nothing left to learn
FEW = 100  # valid molecules of a trial: of fewer, the share of unique ones says little
_NAMED = 4  # methods, at most, that a box names

Flawed = Mapping[MethodLine, Sequence[Flaw]]  # the methods with flaws of one kind, at their best NFE


@dataclass(frozen=True)
class Caution:
    """A box under the headline: what is wrong, and what to do. `severe`: the best method is not usable."""

    title: str
    text: str
    severe: bool = False


def find_cautions(headline: Headline, contents: Contents) -> list[Caution]:
    """What is wrong with the models of an experiment, the severe ones first."""
    by_run = flaws.find_flaws(contents.evidence, headline.evaluation)
    by_kind: dict[str, dict[MethodLine, list[Flaw]]] = {}
    for line in headline.lines:
        for flaw in by_run[line.method, line.nfe]:
            by_kind.setdefault(flaw.kind, {}).setdefault(line, []).append(flaw)
    boxes = (("invalid", _invalid), ("useless", _useless), ("copies", _copies))
    cautions = [write(by_kind[kind], headline, contents) for kind, write in boxes if kind in by_kind]
    cautions += [*_few(headline), *_losses(contents), *_unpaired(contents)]
    if suspects := by_kind.get("nonsense"):
        cautions.append(_nonsense(suspects, headline))
    return sorted(cautions, key=lambda caution: not caution.severe)


def _measure(flawed: Flawed) -> dict[MethodLine, float]:
    return {line: own[0].value for line, own in flawed.items()}


def _name(values: Mapping[MethodLine, float], headline: Headline, text: Callable[[float], str]) -> str:
    """The methods with their values; of many only their number, as the table has the values."""
    if len(values) > _NAMED:
        ends = f"{text(min(values.values()))} to {text(max(values.values()))}"
        return f"{len(values)} of {len(headline.lines)} methods ({ends})"
    return join_words([f"{line.method} ({text(value)})" for line, value in values.items()])


def _warn_of_use(severe: bool, text: str) -> Caution:
    return Caution("Not usable yet." if severe else "Not every method is usable.", text, severe)


def _invalid(broken: Flawed, headline: Headline, contents: Contents) -> Caution:
    named = _name(_measure(broken), headline, format_percent)
    text = f"Under half of the samples are valid molecules: {named}. {_advise(headline, contents)}"
    return _warn_of_use(headline.best in broken, text)


def _useless(broken: Flawed, headline: Headline, contents: Contents) -> Caution:
    """Methods with hardly any useful molecule, valid as they may be."""
    named = _name(_measure(broken), headline, format_percent)
    text = (
        f"Under {HOPELESS:.0%} of the samples are useful molecules: {named}. Valid SELFIES can be "
        f"nonsense: look at the molecules. {_advise(headline, contents)}"
    )
    return _warn_of_use(headline.best in broken, text)


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


def _copies(copying: Flawed, headline: Headline, contents: Contents) -> Caution:
    """Samples that equal training data; molecules that are known."""
    what = {
        "molecules": "distinct molecules are in the data set",
        "images": "samples equal training images",
        "tokens": "samples equal training rows",
    }[contents.modality]
    of_images = contents.modality == "images"
    expected = "That is expected where the data hold nearly all of their kind. Else "
    advice = "use more data, fewer iterations or a smaller network."
    advice = advice.capitalize() if of_images else expected + advice
    named = _name(_measure(copying), headline, format_percent)
    return Caution("Mostly copies.", f"More than half of the {what}: {named}. {advice}", of_images)


def _nonsense(suspects: Flawed, headline: Headline) -> Caution:
    """Methods whose samples, at their best number of steps, have a value like that of nonsense."""
    named = "; ".join(
        f"{line.method}: {', '.join(flaw.text for flaw in own)}" for line, own in suspects.items()
    )
    return Caution(
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
    shares = flaws.find_partial(contents.evidence.unpaired)
    partial = [f"{name} ({format_percent(share)})" for name, share in shares.items()]
    if partial:
        yield Caution(
            "Trained on other data.",
            f"More than a tenth of the training rows have no pair: {join_words(partial)}. Models that are "
            "trained on these pairs see less data than the others, so that they compare only in part. Add "
            "the missing pairs.",
        )


def _losses(contents: Contents) -> Iterator[Caution]:
    """Trainings that stopped too early or too late."""
    logs = contents.training_logs
    early = flaws.find_unfinished(logs)
    if early:
        named = join_words([f"{method} (by {format_percent(fall)})" for method, fall in early.items()])
        validated = {method for method, log in logs.items() if "validation_nll" in log}
        paired = any(is_paired(method) for method in validated - set(early))
        unknown = " This loss cannot tell whether a model of paired sources is trained to the end." * paired
        yield Caution(
            "Not trained to the end.",
            f"The validation loss still fell over the last quarter of the training: {named}. Raise "
            f"training.iterations.{unknown}",
        )
    late = flaws.find_overfitted(contents.experiment, logs)
    if late:
        named = join_words([f"{name} ({loss:.2f} against {nll:.2f})" for name, (loss, nll) in late.items()])
        yield Caution(
            "Over-fitted.",
            f"The training loss is far below the validation loss, which no longer falls: {named}. Use more "
            "data, fewer iterations, a smaller network or dropout.",
        )
