"""The verdict of a comparison in a few sentences, which the terminal and the page show."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pairflow.report.compare.sections import DataSection, MetricGrid
from pairflow.report.stats import Difference, Over
from pairflow.report.words import TWO_SEEDS, join_steps, join_words, pluralise

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


def count_verdicts(grid: MetricGrid) -> str:
    """`6 better, 2 undecided`; empty where nothing was tested."""
    counts = grid.verdicts
    return ", ".join(f"{counts[word]} {word}" for word in (*_WORDS, "undecided") if counts[word])


def _explain(sections: Sequence[DataSection]) -> str:
    """Why experiments, or the methods of one, have no values that compare."""
    first, *others = sections
    if others:
        return "; ".join(section.apart for section in others)
    alike = [grid for grid in first.grids if grid.kind[:2] == first.grids[0].kind[:2]]
    if len(alike) > 1:
        owners = [join_words([*dict.fromkeys(row.run for row in grid.rows)]) for grid in alike]
        return join_words(
            [f"{run} has {grid.label} from {grid.samples}" for run, grid in zip(owners, alike, strict=True)]
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
    tests = [cell for contrast in leading.contrasts for cell in contrast.tested.values()]
    if any(cell.undecided and cell.too_few for cell in tests):
        yield f"{TWO_SEEDS}; take at least 3."
    shown = [grid for grid in section.grids if grid.about.best and grid.about.chart and grid is not leading]
    several = len(section.evaluations) > 1
    counted = {
        _name(grid, section) + f" ({grid.evaluation})" * several: grid for grid in shown if grid.verdicts
    }
    if counted:
        cells = [cell for grid in counted.values() for row in grid.contrasts for cell in row.tested.values()]
        counts = "; ".join(f"{name} {count_verdicts(grid)}" for name, grid in counted.items())
        yield _begin(f"the differences from {section.baseline} by other measures are: {counts}.", cells)


def _name(grid: MetricGrid, section: DataSection) -> str:
    """A measure's name, which has an extractor only where the section has several."""
    extractors = {other.kind.extractor for other in section.grids} - {""}
    return grid.label if len(extractors) > 1 else grid.name


def _compare(subject: str, section: DataSection, grid: MetricGrid) -> str:
    """One experiment, or one method, against the baseline by one measure."""
    own = [contrast for contrast in grid.contrasts if contrast.subject == subject]
    places = [
        _Place("" if contrast.key.run == contrast.baseline.run else contrast.key.method, nfe, cell)
        for contrast in own
        for nfe, cell in contrast.tested.items()
    ]
    name = _name(grid, section) + f" of {grid.samples}" * grid.about.counted
    start = f"{subject} against {section.baseline}, {name}: "
    if not places:
        cells = [cell for contrast in own for cell in contrast.cells.values()]
        reasons = "; ".join(dict.fromkeys(cell.reason for cell in cells))
        return _begin(f"{start}not tested ({reasons}).", cells)
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
            parts.append(f"undecided {_locate(undecided, len(places))}{would and f', where {would}'}")
        else:
            over = f" (corrected over {grid.family})" * (grid.family > len(places))
            nothing = f"nothing is decided in {pluralise(len(places), 'comparison')}{over}"
            parts += filter(None, [nothing, would])
    return _begin(f"{start}{'; '.join(parts)}.", [place.cell for place in places])


def _describe_limits(undecided: Sequence[Difference], grid: MetricGrid) -> str:
    """The smallest differences that could have been seen; nothing of two seeds, which have a sentence."""
    cells = [cell for cell in undecided if not cell.too_few]
    possible = [cell.visible for cell in cells if grid.about.could_show(cell)]
    if not possible:
        return "no possible gain would have shown" if cells else ""
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


def _span(sizes: Sequence[float], grid: MetricGrid) -> str:
    """`6.0`, `2.2 to 9.1`."""
    return " to ".join(dict.fromkeys(grid.number(size) for size in (min(sizes), max(sizes))))
