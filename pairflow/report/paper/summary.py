"""The first paragraph of the page: sentences made from the cells."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pairflow.report.paper.compare import BASELINE, EffectCell, Section, Status, statuses
from pairflow.report.paper.measured import Run
from pairflow.report.paper.printed import method
from pairflow.report.paper.verdicts import Comparison

OURS = "pairflow"


def sentences(sections: Sequence[Section], runs: Mapping[str, Run]) -> list[str]:
    """How much of the paper is judged, compared and not run, and which effects hold."""
    return [*_counts(sections), *_effects(sections), *_held(sections, runs)]


def _counts(sections: Sequence[Section]) -> Iterator[str]:
    found = Counter(statuses(sections).values())
    outside = found[Status.OUTSIDE]
    yield (
        f"The paper prints {_values(found.total())} in {_plural(len(sections), 'table')}; {outside:,} are of "
        "data that this workflow has no experiment on, or properties of the data."
    )
    judged = [(status, found[status]) for status in (Status.AGREES, Status.HIGHER, Status.LOWER)]
    total = sum(number for _, number in judged)
    parts = ", ".join(
        f"{number:,} {'agree' if status == Status.AGREES else status}" for status, number in judged
    )
    unjudged, by_effect, missing = (
        f"{found[status]:,} {_is(found[status])}"
        for status in (Status.UNJUDGED, Status.EFFECT, Status.NOT_RUN)
    )
    yield (
        f"Of the other {_values(found.total() - outside)}, {total:,} {_is(total)} judged as numbers"
        f"{f' ({parts})' if total else ''}, {unjudged} measured at the paper’s scale and not judged, "
        f"{by_effect} compared by effect only, and {missing} not run."
    )


def _effects(sections: Sequence[Section]) -> Iterator[str]:
    found = Counter(cell.comparison for cell in _cells(sections).values() if cell.comparison)
    if not found.total():
        return
    parts = [f"{found[each]:,} {word}" for each, word in _WORDS.items()]
    yield (
        "Effects of pairing, each method of PairFlow against UDLM with the same distillations at one NFE: "
        f"of {found.total():,} that compare, {parts[0]}, {parts[1]} and {parts[2]}."
    )


_WORDS = {
    Comparison.SAME: "have the paper’s sign",
    Comparison.OPPOSITE: "the opposite one",
    Comparison.UNDECIDED: "are undecided",
}


def _held(sections: Sequence[Section], runs: Mapping[str, Run]) -> Iterator[str]:
    """One sentence per run and metric of PairFlow itself against UDLM."""
    found: dict[tuple[str, str], dict[Comparison, list[str]]] = {}
    kinds = {
        (run, grid.label): kind
        for section in sections
        for grid in section.grids
        for run, kind in grid.kinds.items()
    }
    for (run, label, name, column), cell in _cells(sections).items():
        if name == OURS and cell.comparison:
            found.setdefault((run, label), {}).setdefault(cell.comparison, []).append(column)
    for (run, label), parts in found.items():
        scale = "reduced scale" if runs[run].reduced else "the paper’s scale"
        told = [
            f"{word} at NFE {_enumerate(parts[each])}"
            for each, word in {
                Comparison.SAME: "the paper’s sign",
                Comparison.OPPOSITE: "the opposite sign",
                Comparison.UNDECIDED: "undecided",
            }.items()
            if each in parts
        ]
        kind = kinds.get((run, label))
        what = f"{kind}, beside the printed {label}" if kind else label
        yield f"{run} ({scale}), {what}, {OURS} against {BASELINE}: {'; '.join(told)}."


def _cells(sections: Sequence[Section]) -> dict[tuple[str, str, str, str], EffectCell]:
    """(Run, metric, method, column) -> its effect, once, even if several tables print it."""
    return {
        (run, grid.label, method(row.method) or "", column): cell
        for section in sections
        for grid in section.grids
        for row in grid.effects
        for run, cells in row.runs.items()
        for column, cell in zip(grid.columns, cells, strict=True)
    }


def _values(number: int) -> str:
    return _plural(number, "value")


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _enumerate(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
