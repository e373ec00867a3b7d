"""The verdict of a comparison in a few sentences, which the terminal and the page show."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pairflow.report.compare.sections import ComparedGrid, Contrast, DataSection, RowKey
from pairflow.report.grid import differ_in_entropy
from pairflow.report.stats import Difference, Over
from pairflow.report.words import join_steps, join_words, pluralise

_NAMED = 3  # methods that a sentence lists; of more it counts the comparisons
_WORDS = ("better", "higher", "worse", "lower")


class _Place(NamedTuple):
    """Where a difference was tested; `method` is empty where methods are what is compared."""

    method: str
    nfe: int
    cell: Difference


def write_verdict(sections: Sequence[DataSection]) -> list[str]:
    """What is better in what, by how much, and what is undecided; or why nothing compares."""
    sentences = [sentence for section in sections for sentence in _judge(section)]
    return sentences or [f"Nothing compares: {_explain(sections)}."]


def count_verdicts(grid: ComparedGrid) -> str:
    """`6 better, 2 undecided`; empty where nothing was tested."""
    counts = grid.verdicts
    return ", ".join(f"{counts[word]} {word}" for word in (*_WORDS, "undecided") if counts[word])


def _explain(sections: Sequence[DataSection]) -> str:
    """Why experiments, or the methods of one, have no values that compare."""
    first, *others = sections
    if others:
        return "; ".join(section.apart for section in others)
    alike = [
        grid
        for grid in first.grids
        if (grid.metric, grid.reference) == (first.grids[0].metric, first.grids[0].reference)
    ]
    if len(alike) > 1:
        owners = [join_words([*dict.fromkeys(row.run for row in grid.table)]) for grid in alike]
        return join_words(
            [
                f"{run} has {grid.full_label} from {grid.samples}"
                for run, grid in zip(owners, alike, strict=True)
            ]
        )
    what = "methods of one name" if len(first.runs) > 1 else "two methods"
    names = join_words([run.name for run in first.runs])
    return (
        f"{names} {'have' if len(first.runs) > 1 else 'has'} no {what} at the same number of sampling steps"
    )


def _judge(section: DataSection) -> Iterator[str]:
    """A sentence for each subject by the leading measure, and one that counts the verdicts by the others."""
    leading = section.leading
    if leading is None:
        return
    for subject in dict.fromkeys(contrast.subject for contrast in leading.contrasts):
        yield _compare(subject, section, leading)
    yield from _limit(section, leading)
    shown = [grid for grid in section.grids if grid.about.best and grid.about.chart and grid is not leading]
    several = len(section.evaluations) > 1
    counted = {
        _name(grid, section) + f" ({grid.evaluation})" * several: grid for grid in shown if grid.verdicts
    }
    if counted:
        cells = [cell for grid in counted.values() for row in grid.contrasts for cell in row.tested.values()]
        counts = "; ".join(f"{name} {count_verdicts(grid)}" for name, grid in counted.items())
        yield _begin(f"the differences from {section.baseline} by other measures are: {counts}.", cells)


def _limit(section: DataSection, grid: ComparedGrid) -> Iterator[str]:
    """Where a comparison at equal NFE is not one at equal calls of the network, or at equal entropy."""
    entropies = next((other for other in section.evaluations[grid.evaluation] if _is_entropy(other)), None)
    for contrast in grid.contrasts:
        own, base = grid.table[contrast.key], grid.table[contrast.baseline]
        pair, steps = f"{_label(contrast.key)} and {_label(contrast.baseline)}", contrast.cells
        if unequal := [nfe for nfe in steps if own.calls[nfe] != base.calls[nfe]]:
            first = unequal[0]
            yield (
                f"{pair} are compared at equal NFE: at {join_steps([first])} they make {own.calls[first]} "
                f"and {base.calls[first]} calls of the network."
            )
        if entropies and not _is_entropy(grid):
            one, other = (entropies.table[key].cells for key in (contrast.key, contrast.baseline))
            apart = [nfe for nfe in steps if differ_in_entropy(one[nfe].mean, other[nfe].mean)]
            if apart:
                yield (
                    f"{pair} differ in entropy at {join_steps(apart)}, and perplexities compare only where "
                    "it is equal."
                )


def _is_entropy(grid: ComparedGrid) -> bool:
    return grid.metric == "entropy"


def _label(key: RowKey) -> str:
    return f"{key.method} of {key.run}"


def _name(grid: ComparedGrid, section: DataSection) -> str:
    """A measure's name, which has an extractor only where the section has several."""
    extractors = {other.extractor for other in section.grids} - {""}
    return grid.full_label if len(extractors) > 1 else grid.label


def _compare(subject: str, section: DataSection, grid: ComparedGrid) -> str:
    """One experiment, or one method, against the baseline by one measure."""
    own = [contrast for contrast in grid.contrasts if contrast.subject == subject]
    places = [
        _Place("" if contrast.key.run == contrast.baseline.run else contrast.key.method, nfe, cell)
        for contrast in own
        for nfe, cell in contrast.tested.items()
    ]
    warnings = _warn(own, single=len(section.runs) == 1)
    name = _name(grid, section) + f" of {grid.samples}" * grid.about.counted
    start = f"{subject} against {section.baseline}, {name}: "
    if not places:
        cells = [cell for contrast in own for cell in contrast.cells.values()]
        reasons = "; ".join(dict.fromkeys(cell.reason for cell in cells))
        return _begin(f"{start}not tested ({reasons}){warnings}.", cells)
    parts = []
    for word in _WORDS:
        judged_so = [place for place in places if grid.verdict(place.cell) == word]
        if judged_so:
            sizes = [abs(place.cell.value) for place in judged_so]
            parts.append(f"{word} {_locate(judged_so, len(places))}, by {_span(sizes, grid)}")
    undecided = [place for place in places if not place.cell.decided]
    if undecided:
        would = _describe_limits([place.cell for place in undecided], grid)
        if parts:
            parts.append(f"undecided {_locate(undecided, len(places))}, where {would}")
        else:
            over = f" (corrected over {grid.family})" * (grid.family > len(places))
            nothing = f"nothing is decided in {pluralise(len(places), 'comparison')}{over}"
            parts += [nothing, would]
    return _begin(f"{start}{'; '.join(parts)}{warnings}.", [place.cell for place in places])


def _warn(contrasts: Sequence[Contrast], single: bool) -> str:
    """What is wrong with the samples that are compared: whose, at which steps; of many methods only what."""
    steps: dict[tuple[RowKey, str], list[int]] = {}
    for contrast in contrasts:
        for nfe, by_side in contrast.warnings.items():
            for side, text in ((side, text) for side, texts in by_side.items() for text in texts):
                steps.setdefault((side, text), []).append(nfe)
    sides = dict.fromkeys(side for side, _ in steps)
    if not steps:
        return ""
    if len(sides) > _NAMED:
        distinct = dict.fromkeys(text for _, text in steps)
        return f"; warnings about {len(sides)} models: {', '.join(distinct)}"
    parts = []
    for side in sides:
        of = [f"{text} at {join_steps(own)}" for (other, text), own in steps.items() if other == side]
        parts.append(f"{side.method if single else f'{side.method} in {side.run}'}: {', '.join(of)}")
    return f"; warnings: {'; '.join(parts)}"


def _describe_limits(undecided: Sequence[Difference], grid: ComparedGrid) -> str:
    """The smallest differences that could have been seen."""
    possible = [cell.visible for cell in undecided if grid.could_show(cell)]
    if not possible:
        return "no possible gain would have shown"
    among = f" in {len(possible)} of them" * (len(possible) < len(undecided))
    return f"a difference of about {_span(possible, grid)} would have shown{among}"


def _begin(text: str, cells: Sequence[Difference]) -> str:
    """A sentence about differences; it says so if they are between sampling trials of one training."""
    if any(cell.over == Over.TRIALS for cell in cells):
        return f"In this training, {text}"
    return f"T{text[1:]}" if text.startswith("the ") else text  # else it begins with a name


def _locate(places: Sequence[_Place], of: int) -> str:
    """`with pairflow at 1 and 4 sampling steps`; of many methods only in how many of the comparisons."""
    steps: dict[str, list[int]] = {}
    for place in places:
        steps.setdefault(place.method, []).append(place.nfe)
    if len(places) == of > _NAMED:
        return f"in all {of} comparisons"
    if len(steps) > _NAMED:
        return f"in {len(places)} of {of} comparisons"
    if "" in steps:
        return f"at {join_steps(steps[''])}"
    return join_words([f"with {method} at {join_steps(own)}" for method, own in steps.items()])


def _span(sizes: Sequence[float], grid: ComparedGrid) -> str:
    """`6.0`, `2.2 to 9.1`."""
    return " to ".join(dict.fromkeys(grid.number(size) for size in (min(sizes), max(sizes))))
