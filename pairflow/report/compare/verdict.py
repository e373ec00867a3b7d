"""Writes the verdict of a comparison in a few sentences, for the terminal and the page."""

from collections.abc import Iterator, Sequence

from pairflow.report.compare.sections import ComparedGrid, ComparedRuns, Contrast, RowKey
from pairflow.report.differences import (
    NAMED,
    Comparison,
    begin_sentence,
    count_verdicts,
    describe_differences,
    describe_entropies,
)
from pairflow.report.words import join_steps, join_words


def write_verdict(compared: ComparedRuns) -> list[str]:
    """Say what is better in what, by how much, and what is undecided; or why nothing compares."""
    return [*_judge(compared)] or [f"Nothing can be compared: {_explain(compared)}."]


def _explain(compared: ComparedRuns) -> str:
    """Say why nothing is compared: why experiments, or the methods of one, have no comparable values."""
    leading = compared.grids[0]
    same = [grid for grid in compared.grids if grid.label == leading.label]
    if len(same) > 1:
        runs = [join_words([*dict.fromkeys(row.run for row in grid.table)]) for grid in same]
        values = [f"{grid.full_label} from {grid.samples}" for grid in same]
        return join_words([f"{run} has {value}" for run, value in zip(runs, values, strict=True)])
    names = join_words([run.name for run in compared.runs])
    missing = "share no methods" if len(compared.runs) > 1 else "has fewer than two methods"
    return f"{names} {missing} at the same number of sampling steps"


def _judge(compared: ComparedRuns) -> Iterator[str]:
    """Yield the sentences of the verdict; none if nothing is compared.

    By the leading metric there is a sentence on each experiment (or method) that is compared with the
    baseline, then any limits of the comparison. A last sentence counts the verdicts by other metrics.
    """
    leading = compared.leading
    if leading is None:
        return
    for subject in dict.fromkeys(contrast.subject for contrast in leading.contrasts):
        contrasts = [contrast for contrast in leading.contrasts if contrast.subject == subject]
        label = leading.about.label
        name = (leading.about.leads_as or label) + _name(leading, compared).removeprefix(label)
        name += f" among {leading.samples}" * leading.about.counted
        warnings = _warn(contrasts, single=len(compared.runs) == 1)
        sides = subject, compared.baseline
        yield describe_differences(sides, name, leading, list_comparisons(contrasts), warnings)
    yield from _limit(compared, leading)
    shown = [grid for grid in compared.grids if grid.about.best and grid.about.chart and grid is not leading]
    several = len(compared.evaluations) > 1
    counted = {
        _name(grid, compared) + f" ({grid.evaluation})" * several: grid for grid in shown if grid.verdicts
    }
    if counted:
        comparisons = [
            comparison for grid in counted.values() for comparison in list_comparisons(grid.contrasts)
        ]
        counts = "; ".join(f"{name} ({count_verdicts(grid.verdicts)})" for name, grid in counted.items())
        text = f"the comparisons with {compared.baseline} by other measures are: {counts}."
        yield begin_sentence(text, [comparison for comparison in comparisons if comparison.cell.test])


def list_comparisons(contrasts: Sequence[Contrast]) -> list[Comparison]:
    return [
        Comparison("" if row.key.run == row.baseline.run else row.key.method, nfe, cell)
        for row in contrasts
        for nfe, cell in row.cells.items()
    ]


def _limit(compared: ComparedRuns, grid: ComparedGrid) -> Iterator[str]:
    """Yield sentences on comparisons in `grid` in which equal steps need unequal network calls, or whose
    samples have unequal entropies."""
    grids = {other.metric: other for other in compared.evaluations[grid.evaluation]}
    for contrast in grid.contrasts:
        sides = [contrast.key, contrast.baseline]
        pair = " and ".join(f"{side.method} of {side.run}" for side in sides)
        calls = {nfe: [grid.table[side].calls[nfe] for side in sides] for nfe in contrast.cells}
        if unequal := [nfe for nfe, (subject, baseline) in calls.items() if subject != baseline]:
            subject, baseline = calls[unequal[0]]
            yield (
                f"At equal steps, {pair} make different numbers of network calls: {subject} and {baseline} "
                f"at {join_steps(unequal[:1])}."
            )
        if "entropy" in grids and grid.metric != "entropy":
            means = grids["entropy"].means
            entropies = {nfe: [means[side, nfe] for side in sides] for nfe in contrast.cells}
            if text := describe_entropies(pair, grid, entropies):
                yield text


def _name(grid: ComparedGrid, compared: ComparedRuns) -> str:
    """Return the label of the metric in `grid`, with its extractor only if the tables of the comparison have
    several."""
    extractors = {other.extractor for other in compared.grids} - {""}
    return grid.full_label if len(extractors) > 1 else grid.label


def _warn(contrasts: Sequence[Contrast], single: bool) -> str:
    """Return what is wrong with the compared samples, as the end of a sentence; empty if nothing is.

    Up to `NAMED` models are named, with their steps. With `single`, the experiment is not named.
    """
    steps: dict[tuple[RowKey, str], list[int]] = {}
    for contrast in contrasts:
        for nfe, by_side in contrast.warnings.items():
            for side, text in ((side, text) for side, texts in by_side.items() for text in texts):
                steps.setdefault((side, text), []).append(nfe)
    sides = dict.fromkeys(side for side, _ in steps)
    if not steps:
        return ""
    if len(sides) > NAMED:
        distinct = dict.fromkeys(text for _, text in steps)
        return f"; warnings about {len(sides)} models: {', '.join(distinct)}"
    parts = []
    for side in sides:
        warnings = [f"{text} at {join_steps(nfes)}" for (other, text), nfes in steps.items() if other == side]
        parts.append(f"{side.method if single else f'{side.method} in {side.run}'}: {', '.join(warnings)}")
    return f"; warnings: {'; '.join(parts)}"
