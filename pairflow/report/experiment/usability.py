"""The boxes under the headline: what makes a model unusable or its numbers hard to judge, and what to do."""

from collections.abc import Iterator

from pairflow.report import flaws
from pairflow.report.contents import Contents
from pairflow.report.flaws import Flaw
from pairflow.report.headline import Box, Headline, MethodLine
from pairflow.report.pages import page_of
from pairflow.report.words import format_percent, is_paired, join_words


def find_cautions(headline: Headline, contents: Contents) -> list[Box]:
    """What is wrong with the models of an experiment, the severe ones first."""
    by_run = flaws.find_flaws(contents.evidence, headline.evaluation)
    flawed: dict[str, dict[MethodLine, list[Flaw]]] = {}
    for line in headline.lines:
        for flaw in by_run[line.method, line.nfe]:
            flawed.setdefault(flaw.kind, {}).setdefault(line, []).append(flaw)
    samples = page_of(contents.experiment).write_boxes(flawed, headline, contents)
    boxes = [*samples, *_losses(contents), *_unpaired(contents)]
    return sorted(boxes, key=lambda box: (not box.severe, box.late))


def _unpaired(contents: Contents) -> Iterator[Box]:
    """Couplings of a user's own that leave out much of the training data."""
    shares = flaws.find_partial(contents.evidence.unpaired)
    partial = [f"{name} ({format_percent(share)})" for name, share in shares.items()]
    if partial:
        yield Box(
            "Trained on other data.",
            f"More than a tenth of the training rows have no pair: {join_words(partial)}. Models that are "
            "trained on these pairs see less data than the others, so that they compare only in part. Add "
            "the missing pairs.",
        )


def _losses(contents: Contents) -> Iterator[Box]:
    """Trainings that stopped too early or too late."""
    logs = contents.training_logs
    early = flaws.find_unfinished(logs)
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
    late = flaws.find_overfitted(contents.experiment, logs)
    if late:
        named = join_words([f"{name} ({loss:.2f} against {nll:.2f})" for name, (loss, nll) in late.items()])
        yield Box(
            "Over-fitted.",
            f"The training loss is far below the validation loss, which no longer falls: {named}. Use more "
            "data, fewer iterations, a smaller network or dropout.",
        )
