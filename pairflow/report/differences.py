"""Writes sentences about tested differences between methods, for the pages and the terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pairflow.report.grid import Grid, differ_in_entropy
from pairflow.report.stats import Difference, Over
from pairflow.report.words import join_steps, join_words, pluralise

NAMED = 3  # most methods that a sentence lists; otherwise it counts the comparisons
_WORDS = ("better", "higher", "worse", "lower")


class Place(NamedTuple):
    """A difference and where it was tested: a method (empty if the sentence already names it) and NFE."""

    method: str
    nfe: int
    cell: Difference


def count_verdicts(verdicts: Counter[str]) -> str:
    """Return text such as `6 better, 2 undecided`; it is empty if nothing was tested."""
    return ", ".join(f"{verdicts[word]} {word}" for word in (*_WORDS, "undecided") if verdicts[word])


def describe_differences(
    subject: str, grid: Grid, places: Sequence[Place], warnings: str = "", intervals: bool = False
) -> str:
    """Say where `subject` is better or worse and by how much; if undecided, what difference would have shown.

    With `intervals`, the sentence also has the range of the 95 % intervals of the differences.
    """
    tested = [place for place in places if place.cell.test]
    if not tested:
        reasons = "; ".join(dict.fromkeys(place.cell.reason for place in places))
        return begin_sentence(f"{subject}: not tested ({reasons}){warnings}.", places)
    parts = []
    for word in _WORDS:
        alike = [place for place in tested if grid.verdict(place.cell) == word]
        if alike:
            size = _span((abs(place.cell.value) for place in alike), grid)
            ends = [end for place in alike for end in (place.cell.low, place.cell.high)]
            within = f" (95 % intervals: {_span(ends, grid, '+')})" if intervals else ""
            parts.append(f"{word} {_locate(alike, len(tested), grid.unit)}, by {size}{within}")
    undecided = [place for place in tested if not place.cell.decided]
    if undecided:
        would = _describe_limits([place.cell for place in undecided], grid)
        if parts:
            parts.append(f"undecided {_locate(undecided, len(tested), grid.unit)}, where {would}")
        else:
            family = max(place.cell.family for place in undecided)
            over = f" (corrected over {family})" * (family > len(tested))
            parts += [f"nothing is decided in {pluralise(len(tested), 'comparison')}{over}", would]
    return begin_sentence(f"{subject}: {'; '.join(parts)}{warnings}.", tested)


def describe_entropies(pair: str, grid: Grid, entropies: Mapping[int, Sequence[float]]) -> str:
    """Say at which NFE entropies are too different to compare perplexities; empty if there is none.

    `entropies` has the mean entropies of both sides by NFE.
    """
    apart = [nfe for nfe, (one, other) in entropies.items() if differ_in_entropy(one, other)]
    if not apart:
        return ""
    return (
        f"{pair} differ in entropy at {join_steps(apart, grid.unit)}, and perplexities compare only where it "
        f"is equal: compare over temperatures (evaluations.{grid.evaluation}.temperatures)."
    )


def begin_sentence(text: str, places: Iterable[Place]) -> str:
    """Begin a sentence with a capital, or with `In this training` if differences are between trials."""
    if any(place.cell.over == Over.TRIALS for place in places):
        return f"In this training, {text}"
    return f"T{text[1:]}" if text.startswith("the ") else text  # other texts begin with a name


def _describe_limits(undecided: Sequence[Difference], grid: Grid) -> str:
    """Say how large the differences had to be for the undecided tests to detect them."""
    possible = [cell.visible for cell in undecided if grid.could_show(cell)]
    if not possible:
        return "the tests could not have detected any gain"
    among = f" in {len(possible)} of them" * (len(possible) < len(undecided))
    return f"a difference of about {_span(possible, grid)} would have shown{among}"


def _locate(places: Sequence[Place], of: int, unit: str) -> str:
    """Write `with pairflow at 1 and 4 sampling steps`, or for many methods only `in 5 of 8 comparisons`."""
    steps: dict[str, list[int]] = {}
    for place in places:
        steps.setdefault(place.method, []).append(place.nfe)
    if len(places) == of > NAMED and "" not in steps:
        return f"in all {of} comparisons"
    if len(steps) > NAMED:
        return f"in {len(places)} of {of} comparisons"
    if "" in steps:
        return f"at {join_steps(steps[''], unit)}"
    return join_words([f"with {method} at {join_steps(own, unit)}" for method, own in steps.items()])


def _span(values: Iterable[float], grid: Grid, sign: str = "") -> str:
    """Write the smallest and the largest value, such as `2.2 to 9.1`, or `6.0` if they print alike."""
    ends = [*values]
    return " to ".join(dict.fromkeys(grid.number(end, sign) for end in (min(ends), max(ends))))
