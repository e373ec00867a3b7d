"""The first paragraph of the page: sentences made from the cells."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pairflow.report.paper.grids import EffectCell, PaperSection, statuses
from pairflow.report.paper.printed import parse_name
from pairflow.report.paper.verdicts import JUDGED, Comparison, Status
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import BASELINE, OURS, join_words, name_scale, pluralise


def write_summary(sections: Sequence[PaperSection], runs: Mapping[str, FinishedExperiment]) -> list[str]:
    """How much of the paper is judged, compared and not run, and which effects hold."""
    return [*_counts(sections), *_effects(sections), *_held(sections, runs)]


def _counts(sections: Sequence[PaperSection]) -> Iterator[str]:
    counts = Counter(statuses(sections).values())
    outside = counts[Status.OUTSIDE]
    yield (
        f"The paper prints {pluralise(counts.total(), 'value')} in {pluralise(len(sections), 'table')}; "
        f"{outside:,} are on data that this workflow has no experiment on, or are properties of the data."
    )
    judged = {status: counts[status] for status in JUDGED}
    total = sum(judged.values())
    parts = ", ".join(
        f"{count:,} {'agree' if status == Status.AGREES else status}" for status, count in judged.items()
    )
    unjudged, by_effect, missing = (
        f"{counts[status]:,} {_is(counts[status])}"
        for status in (Status.UNJUDGED, Status.EFFECT, Status.NOT_RUN)
    )
    yield (
        f"Of the other {pluralise(counts.total() - outside, 'value')}, {total:,} {_is(total)} judged as "
        f"numbers{f' ({parts})' if total else ''}, {unjudged} measured at the paper’s scale but not judged, "
        f"{by_effect} compared only by effect, and {missing} not run."
    )


def _effects(sections: Sequence[PaperSection]) -> Iterator[str]:
    counts = Counter(cell.comparison for cell in _cells(sections).values() if cell.comparison)
    if not counts.total():
        return
    parts = [f"{counts[comparison]:,} {word}" for comparison, (word, _) in _WORDS.items()]
    yield (
        "Each method of PairFlow is compared with UDLM at the same NFE and with the same distillations. Of "
        f"the {counts.total():,} effects that compare, {join_words(parts)}."
    )


_WORDS = {  # for a count of effects, and before a list of NFE
    Comparison.SAME: ("have the paper’s sign", "the paper’s sign"),
    Comparison.OPPOSITE: ("have the opposite one", "the opposite sign"),
    Comparison.UNDECIDED: ("are undecided", "undecided"),
}


def _held(sections: Sequence[PaperSection], runs: Mapping[str, FinishedExperiment]) -> Iterator[str]:
    """One sentence per experiment and metric on PairFlow itself against UDLM."""
    columns: dict[tuple[str, str], dict[Comparison, list[str]]] = {}
    grids = [grid for section in sections for grid in section.grids]
    kinds = {(run, grid.label): kind for grid in grids for run, kind in grid.kinds.items()}
    for (run, label, name, column), cell in _cells(sections).items():
        if name == OURS and cell.comparison:
            columns.setdefault((run, label), {}).setdefault(cell.comparison, []).append(column)
    for (run, label), parts in columns.items():
        texts = [
            f"{word} at NFE {join_words(parts[comparison])}"
            for comparison, (_, word) in _WORDS.items()
            if comparison in parts
        ]
        kind = kinds.get((run, label))
        metric = f"{kind}, beside the printed {label}" if kind else label
        scale = name_scale(runs[run].reduced)
        yield f"{run} ({scale}), {metric}, {OURS} against {BASELINE}: {'; '.join(texts)}."


def _cells(sections: Sequence[PaperSection]) -> dict[tuple[str, str, str, str], EffectCell]:
    """(experiment, metric, method, column) -> its effect, once, even if several tables print it."""
    return {
        (run, grid.label, parse_name(row.method) or "", column): cell
        for section in sections
        for grid in section.grids
        for row in grid.effects
        for run, cells in row.runs.items()
        for column, cell in zip(grid.columns, cells, strict=True)
    }


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
