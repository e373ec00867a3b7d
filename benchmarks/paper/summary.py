"""The scoreboard of the page, and sentences on the effects, made from the cells."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.paper.grids import EffectCell, PaperSection, statuses
from benchmarks.paper.printed import parse_name
from benchmarks.paper.protocol import describe_scale
from benchmarks.paper.verdicts import Comparison, Status
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import OURS, baselines, join_words

OUTCOMES = {  # of printed values, as the scoreboard counts them
    "agree": (Status.AGREES,),
    "differ": (Status.HIGHER, Status.LOWER),
    "not comparable": (Status.UNJUDGED, Status.EFFECT),
    "not run": (Status.NOT_RUN,),
    "no experiment": (Status.OUTSIDE,),
}


def count_outcomes(sections: Iterable[PaperSection]) -> dict[str, int]:
    """Outcome -> how many of the printed values of some tables have it."""
    counts = Counter(statuses([*sections]).values())
    return {name: sum(counts[status] for status in own) for name, own in OUTCOMES.items()}


def write_effects(sections: Sequence[PaperSection], runs: Mapping[str, FinishedExperiment]) -> list[str]:
    """How many effects hold, and a sentence on PairFlow itself per experiment and metric."""
    return [*_effects(sections), *_held(sections, runs)]


def _effects(sections: Sequence[PaperSection]) -> Iterator[str]:
    counts = Counter(cell.comparison for cell in _cells(sections).values() if cell.comparison)
    if not counts.total():
        return
    parts = [f"{counts[comparison]:,} {word}" for comparison, (word, _) in _WORDS.items()]
    yield (
        "Each method of PairFlow is compared with UDLM, or in continuous flows with CondOT, at the same "
        "NFE and with the same distillations. Of the "
        f"{counts.total():,} effects that compare, {join_words(parts)}."
    )


_WORDS = {  # for a count of effects, and before a list of NFE
    Comparison.SAME: ("have the paper’s sign", "the paper’s sign"),
    Comparison.OPPOSITE: ("have the opposite one", "the opposite sign"),
    Comparison.UNDECIDED: ("are undecided", "undecided"),
}


def _held(sections: Sequence[PaperSection], runs: Mapping[str, FinishedExperiment]) -> Iterator[str]:
    """One sentence per experiment and metric on PairFlow itself against the baseline."""
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
        baseline = baselines(runs[run].experiment)[0]
        yield f"{run} ({describe_scale(runs[run])}), {metric}, {OURS} against {baseline}: {'; '.join(texts)}."


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
