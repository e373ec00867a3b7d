"""Compares methods in words: sentences from numbers, which are left out if the numbers are missing."""

from collections.abc import Iterator, Mapping

import numpy as np

from pairflow.config import BASES, tail_revises
from pairflow.report.contents import Contents
from pairflow.report.differences import Comparison, describe_differences, describe_entropies
from pairflow.report.grid import Grid, describe_scope
from pairflow.report.words import OURS, baselines, format_duration, format_percent, join_steps, join_words

_NAMED = 4  # of more methods than this, a sentence names only the best three


def write_summary(contents: Contents) -> list[str]:
    """Write sentences that compare PairFlow and own pairs with baselines, name the best methods, and describe
    the coupling."""
    compares = len(contents.methods) > 1 or not contents.own_data
    texts = [_describe_distance(contents), _describe_cost(contents)] if compares else []
    if grid := contents.leading:
        others = baselines(contents.experiment)
        masked = [method for method in contents.methods if not tail_revises(method)]
        by_calls = grid.by_calls(contents.experiment.count_calls)
        against = [(grid, baseline) for baseline in others]
        against += [(by_calls, baseline) for baseline in masked]
        compared = [text for table, baseline in against for text in _compare(table, baseline, contents)]
        texts = [*compared, _rank(grid, others[0], contents), *texts]
    return [text for text in texts if text]


def _rank(grid: Grid, first: str, contents: Contents) -> str:
    """Write a sentence that names the best methods at the fewest sampling steps, and the baseline `first`."""
    cells = {method: cells[0] for method, cells in contents.add_calls(grid).rows.items() if cells[0].count}
    ranked = sorted(cells, key=lambda method: cells[method].mean, reverse=grid.about.best == "highest")
    among, named = "", ranked
    if len(ranked) > _NAMED:
        among, named = f", the best three of {len(ranked)} methods", ranked[:3]
    parts = {
        method: f"{cell.text} {cell.spread}".rstrip() + f" with {method}" for method, cell in cells.items()
    }
    baseline = f"; {parts[first]}" if first in parts and first not in named else ""
    title = _title(grid)
    return (
        f"{title[0].upper()}{title[1:]} at {join_steps(grid.columns[:1])}{among}: "
        f"{join_words([parts[name] for name in named])}{baseline} "
        f"({describe_scope(grid.frame)})."
    )


def _compare(grid: Grid, baseline: str, contents: Contents) -> Iterator[str]:
    """Yield a sentence on PairFlow, and on each model of own pairs, compared with `baseline`. Holm's
    correction is over the tests of all methods in `grid`."""
    others = sorted({method for method, _ in grid.values} - {baseline})
    tests = grid.compare(dict.fromkeys(others, baseline))
    entropies = _find_entropies(grid, contents)
    for method in [OURS, *(f"pairs-{name}" for name in contents.experiment.pairs)]:
        if method in tests:
            sources = "sources paired with the data" if method == OURS else "your own pairs"
            sides = f"{method} ({sources})", f"{baseline} ({BASES[baseline].learns})"
            comparisons = [Comparison("", nfe, cell) for nfe, cell in tests[method].items()]
            text = describe_differences(sides, _title(grid), grid, comparisons, intervals=True)
            pairs = {
                nfe: [entropies[side, nfe] for side in (method, baseline)]
                for nfe in tests[method]
                if entropies
            }
            yield f"{text} {describe_entropies(f'{method} and {baseline}', grid, pairs)}".rstrip()


def _find_entropies(grid: Grid, contents: Contents) -> Mapping[tuple[str, int], float]:
    """Return the mean entropies of text samples by (method, NFE or calls) of `grid`; empty for other data."""
    for other in contents.grids[grid.evaluation]:
        if other.metric == "entropy":
            by_calls = grid.unit != other.unit
            return (other.by_calls(contents.experiment.count_calls) if by_calls else other).means
    return {}


def _title(grid: Grid) -> str:
    return f"{grid.about.leads_as} {grid.qualifier}".rstrip()


def _describe_distance(contents: Contents) -> str:
    if OURS not in contents.distances:
        return ""
    length, measured = contents.data["length"], contents.couplings[OURS]["hamming_mean"]
    meaning = "So the model has less to undo."
    if OURS in contents.independent:
        meaning = (
            "So the coupling is nearly independent of the data: hardly any weight counts except a row's own."
        )
    return (
        f"With the {OURS} coupling a source differs from its row in {measured:.2f} of {length} tokens on "
        f"average; random sources would differ in {contents.independent_distance:.2f}. {meaning}"
    )


def _describe_cost(contents: Contents) -> str:
    for cost in contents.training_costs.get(OURS, []):
        if cost.work == "pairing" and np.isfinite(cost.share):
            seconds, share = format_duration(cost.seconds), format_percent(cost.share)
            return f"Computing the pairs of {OURS} took {seconds}, {share} of the time of its training."
    return ""
