"""Writes sentences about tested differences between methods, for the pages and the terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pairflow.report.grid import Grid, differ_in_entropy
from pairflow.report.stats import Difference, Over
from pairflow.report.words import join_steps, join_words, pluralise

NAMED = 3  # most methods that a sentence lists; otherwise it counts the comparisons
_WORDS = ("better", "higher", "worse", "lower")


class Comparison(NamedTuple):
    """A difference and where it was tested: a method (empty if the sentence already names it) and NFE."""

    method: str
    nfe: int
    cell: Difference


def count_verdicts(verdicts: Counter[str]) -> str:
    """Return text such as `6 better, 2 undecided`; it is empty if nothing was tested."""
    return ", ".join(f"{verdicts[word]} {word}" for word in (*_WORDS, "undecided") if verdicts[word])


def describe_differences(
    sides: tuple[str, str],
    measure: str,
    grid: Grid,
    comparisons: Sequence[Comparison],
    warnings: str = "",
    intervals: bool = False,
) -> str:
    """Write a sentence that says where the first of two `sides` is better or worse than the second, and by
    how much; if undecided, what difference the tests would have found.

    `sides` are named in words, as is the `measure`: the metric of `grid`. `comparisons` are the differences
    of the two sides, and `warnings` is text for the end of the sentence. With `intervals`, the sentence also
    has the range of the 95 % intervals of the differences.
    """
    tested = [comparison for comparison in comparisons if comparison.cell.test]
    (subject, baseline), judged = sides, f"judged by {measure}"
    if not tested:
        reasons = "; ".join(dict.fromkeys(comparison.cell.reason for comparison in comparisons))
        text = f"{judged}, {subject} was not tested against {baseline}: {reasons}{warnings}."
        return begin_sentence(text, comparisons)
    parts = list[str]()
    for word in _WORDS:
        same = [comparison for comparison in tested if grid.verdict(comparison.cell) == word]
        if same:
            size = _span((abs(comparison.cell.value) for comparison in same), grid)
            ends = [end for comparison in same for end in (comparison.cell.low, comparison.cell.high)]
            within = f" (95 % intervals of the differences: {_span(ends, grid, '+')})" if intervals else ""
            than = f" than {baseline}" * (not parts)
            parts.append(f"{word}{than} {_locate(same, len(tested), grid.unit)}, by {size}{within}")
    undecided = [comparison for comparison in tested if not comparison.cell.decided]
    would = _describe_limits([comparison.cell for comparison in undecided], grid) if undecided else ""
    if parts and undecided:
        parts.append(f"nothing is decided {_locate(undecided, len(tested), grid.unit)}, where {would}")
    elif undecided:
        family = max(comparison.cell.family for comparison in undecided)
        over = f" (corrected for {family} tests)" * (family > len(tested))
        count = pluralise(len(tested), "comparison")
        nothing = f"no difference between {subject} and {baseline} is decided in {count}{over}; {would}"
        return begin_sentence(f"{judged}, {nothing}{warnings}.", tested)
    return begin_sentence(f"{judged}, {subject} is {'; '.join(parts)}{warnings}.", tested)


def describe_entropies(pair: str, grid: Grid, entropies: Mapping[int, Sequence[float]]) -> str:
    """Say at which NFE entropies are too different to compare perplexities; empty if there is none.

    `pair` names both sides in words, `grid` is the table that is compared, and `entropies` has the mean
    entropies of both sides by NFE.
    """
    nfes = [nfe for nfe, (one, other) in entropies.items() if differ_in_entropy(one, other)]
    if not nfes:
        return ""
    return (
        f"{pair} differ in entropy at {join_steps(nfes, grid.unit)}. Perplexities can only be compared at "
        f"equal entropy, so measure at several temperatures (evaluations.{grid.evaluation}.temperatures)."
    )


def begin_sentence(text: str, comparisons: Iterable[Comparison]) -> str:
    """Begin `text` with a capital, or with `In this training` if any of the differences is only between
    trials."""
    if any(comparison.cell.over == Over.TRIALS for comparison in comparisons):
        return f"In this training, {text}"
    return text[0].upper() + text[1:]


def _describe_limits(undecided: Sequence[Difference], grid: Grid) -> str:
    """Say how large the differences had to be for the undecided tests to detect them."""
    possible = [cell.visible for cell in undecided if grid.could_show(cell)]
    if not possible:
        return "the tests could not have found any gain"
    among = f" in {len(possible)} of them" * (len(possible) < len(undecided))
    return f"the tests would have found a difference of about {_span(possible, grid)}{among}"


def _locate(comparisons: Sequence[Comparison], total: int, unit: str) -> str:
    """Say where these `comparisons` out of `total` were made: `with pairflow at 1 and 4 sampling steps`, or
    for many methods only `in 5 of 8 comparisons`. `unit` is what NFE counts, such as sampling steps."""
    steps: dict[str, list[int]] = {}
    for comparison in comparisons:
        steps.setdefault(comparison.method, []).append(comparison.nfe)
    if len(comparisons) == total > NAMED and "" not in steps:
        return f"in all {total} comparisons"
    if len(steps) > NAMED:
        return f"in {len(comparisons)} of {total} comparisons"
    if "" in steps:
        return f"at {join_steps(steps[''], unit)}"
    return join_words([f"with {method} at {join_steps(nfes, unit)}" for method, nfes in steps.items()])


def _span(values: Iterable[float], grid: Grid, sign: str = "") -> str:
    """Write the smallest and the largest value, such as `2.2 to 9.1`, or `6.0` if they print alike. `grid`
    sets the decimals; `sign` is as in Python's format."""
    ends = [*values]
    return " to ".join(dict.fromkeys(grid.number(end, sign) for end in (min(ends), max(ends))))
