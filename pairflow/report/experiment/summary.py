"""The comparison of methods in words: sentences made from the numbers, left out where those are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pairflow.config import BASES, tail_revises
from pairflow.pairing.bound import independent_distance
from pairflow.report.contents import Contents
from pairflow.report.figures import mean_distance
from pairflow.report.grid import Grid, describe_scope, differ_in_entropy, leading_grid, list_grids
from pairflow.report.stats import Difference
from pairflow.report.words import OURS, baselines, join_steps, join_words

_NAMED = 4  # of more methods than these, a sentence names only the best


def write_summary(contents: Contents) -> list[str]:
    """PairFlow and own pairs against baselines, quality at the fewest steps, the coupling and its cost."""
    texts = [_describe_distance(contents), _describe_cost(contents)]
    if grid := leading_grid(contents.metrics, contents.experiment):
        paired = [OURS, *(f"pairs-{name}" for name in contents.experiment.pairs)]
        against = baselines(contents.experiment)
        compared = [text for baseline in against for text in _compare(grid, paired, baseline, contents)]
        masked = [method for method in contents.methods if not tail_revises(method)]
        by_calls = grid.by_calls(contents.experiment.count_calls)
        compared += [text for baseline in masked for text in _compare(by_calls, paired, baseline, contents)]
        texts = [*compared, _rank(grid, contents), *texts]
    return [text for text in texts if text]


def _rank(grid: Grid, contents: Contents) -> str:
    """The best methods at the fewest sampling steps."""
    table = replace(contents.add_calls(grid), real=grid.real[:0])
    first = baselines(contents.experiment)[0]
    direction = 1 if grid.about.best == "lowest" else -1
    cells = sorted(
        ((method, cells[0]) for method, cells in table.rows.items() if cells[0].count),
        key=lambda item: direction * item[1].mean,
    )
    parts = {
        method: f"{cell.text}{' ' * bool(cell.spread)}{cell.spread} with {method}" for method, cell in cells
    }
    among, named = "", list(parts)
    if len(parts) > _NAMED:
        among, named = f", the best three of {len(parts)} methods", list(parts)[:3]
    best = join_words([parts[name] for name in named])
    baseline = f"; {parts[first]}" if first in parts and first not in named else ""
    return _begin(
        grid,
        f"{_title(grid)} at {join_steps(table.columns[:1])}{among}: {best}{baseline} "
        f"({_describe_spread(table)}; {describe_scope(grid.frame, grid.evaluation)}"
        f"{_describe_inequality(grid, table, contents)}).",
    )


def _describe_inequality(grid: Grid, table: Grid, contents: Contents) -> str:
    """In what the methods are unequal in a table's first column: in their calls, or text in its entropy."""
    calls = table.call_rows
    texts = [f"network calls: {join_words([f'{own[0]} of {name}' for name, own in calls.items()])}"]
    means = _find_entropies(grid, contents)
    found = [mean for (_, nfe), mean in means.items() if nfe == table.columns[0]]
    least, most = min(found, default=0.0), max(found, default=0.0)
    entropies = f"entropies of {least:.2f} to {most:.2f} nats, so that perplexities do not compare"
    texts = texts * (len(calls) > 1) + [entropies] * differ_in_entropy(least, most)
    return "".join(f"; {text}" for text in texts)


def _describe_spread(table: Grid) -> str:
    """What the ± in a table's first column is."""
    if not any(cells[0].spread for cells in table.rows.values()):
        return "no deviation" if table.count > 1 else "one value each"
    between = f"{table.seeds} training seeds" if table.seeds > 1 else "sampling trials"
    return f"mean ± standard deviation between {between}"


def _compare(grid: Grid, methods: Sequence[str], baseline: str, contents: Contents) -> list[str]:
    """PairFlow and own couplings less a baseline; beside the first one, what holds for all these tests."""
    others = sorted({method for method, _ in grid.values} - {baseline})
    tests = grid.compare(dict.fromkeys(others, baseline))
    entropies = _find_entropies(grid, contents)
    texts = [
        " ".join(
            [
                _describe(method, tests[method], grid, baseline),
                *_describe_entropies(method, tests[method], entropies, grid, baseline),
            ]
        )
        for method in methods
        if method in tests
    ]
    cells = [cell for method in methods for cell in tests.get(method, {}).values()]
    return [" ".join([texts[0], *_describe_tests(cells)]), *texts[1:]] if texts else []


def _describe(method: str, tests: Mapping[int, Difference], grid: Grid, baseline: str) -> str:
    """Where a method is better than the baseline, and by how much at the fewest and the most steps."""
    ends = dict.fromkeys([min(tests), max(tests)])
    differences = join_words([_describe_difference(tests[nfe], nfe, grid) for nfe in ends])
    better = "lower" if grid.about.best == "lowest" else "higher"
    text = f"{_title(grid)} of {method} less that of {baseline}: {differences}; {better} is better"
    seen = [_begin(grid, text)]
    if any(cell.test for cell in tests.values()):
        judged = _begin(grid, _judge(method, tests, grid, baseline))
        seen = [judged, *seen, *_describe_limits(tests, grid)]
    return " ".join(f"{sentence}." for sentence in seen)


def _find_entropies(grid: Grid, contents: Contents) -> Mapping[tuple[str, int], float]:
    """The mean entropy of samples of text at the places of a grid; empty for other data."""
    for other in list_grids(contents.metrics, contents.experiment, grid.evaluation):
        if other.metric == "entropy":
            by_calls = grid.unit != other.unit
            return (other.by_calls(contents.experiment.count_calls) if by_calls else other).means
    return {}


def _describe_entropies(
    method: str, tests: Mapping[int, Difference], entropies: Mapping, grid: Grid, baseline: str
) -> list[str]:
    """Where perplexities are not compared at equal entropy, as they have to be."""
    if not entropies:
        return []
    pairs = {place: (entropies[method, place], entropies[baseline, place]) for place in tests}
    unequal = {place: pair for place, pair in pairs.items() if differ_in_entropy(*pair)}
    if not unequal:
        return []
    said = [
        f"{ours:.2f} against {theirs:.2f} nats at {join_steps([place], grid.unit)}"
        for place, (ours, theirs) in unequal.items()
    ]
    return [
        f"Perplexities compare at equal entropy only, but the entropies are {join_words(said)}: compare "
        f"over temperatures (evaluations.{grid.evaluation}.temperatures)."
    ]


def _describe_tests(cells: Sequence[Difference]) -> list[str]:
    """How a verdict may differ from an interval."""
    family = max(cell.family for cell in cells)
    single = "Each interval is of one difference only; verdicts are corrected (Holm) over"
    return [f"{single} {family} comparisons."] if family > 1 else []


def _title(grid: Grid) -> str:
    return f"{grid.about.leads_as} {grid.beside}".rstrip()


def _begin(grid: Grid, text: str) -> str:
    """A sentence about methods; of a single training seed it says so."""
    if grid.frame.seed.nunique() == 1:
        return f"In this training, {text}"
    return text[0].upper() + text[1:]


def _describe_difference(cell: Difference, nfe: int, grid: Grid) -> str:
    value = f"{grid.number(cell.value, '+')} at {join_steps([nfe], grid.unit)}"
    if not cell.test:
        return f"{value} (not tested: {cell.reason})"
    ends = f"{grid.number(cell.low, '+')} to {grid.number(cell.high, '+')}"
    return f"{value} (95 % interval {ends})"


def _describe_limits(tests: Mapping[int, Difference], grid: Grid) -> list[str]:
    """The smallest differences that could have been seen, where the test decides nothing."""
    undecided = {nfe: cell for nfe, cell in tests.items() if cell.undecided}
    possible = [nfe for nfe, cell in undecided.items() if grid.could_show(cell)]
    limits = [f"{grid.number(tests[nfe].visible)} at {join_steps([nfe], grid.unit)}" for nfe in possible]
    texts = [f"A difference of about {join_words(limits)} would have shown"] if limits else []
    if blind := [nfe for nfe in undecided if nfe not in possible]:
        texts.append(f"No possible gain would have shown at {join_steps(blind, grid.unit)}")
    return texts


_WORDS = {1: "better than", -1: "worse than", 0: "not shown to differ from"}


def _judge(method: str, tests: Mapping[int, Difference], grid: Grid, baseline: str) -> str:
    """What a newcomer wants to know first, from NFE -> test."""
    direction = -1 if grid.about.best == "lowest" else 1
    signs = {nfe: direction * int(np.sign(cell.value)) * cell.decided for nfe, cell in tests.items()}
    paired = "sources paired with the data" if method == OURS else "your own pairs"
    subject = f"{method}, which learns from {paired},"
    rest = f"{baseline}, which learns from {BASES[baseline].learns}"
    groups = {word: [nfe for nfe in signs if signs[nfe] == sign] for sign, word in _WORDS.items()}
    (first, steps), *others = ((word, steps) for word, steps in groups.items() if steps)
    where = f"at {join_steps(steps, grid.unit)}"
    if not others and len(steps) > 1:
        every = f"number of {grid.unit}s ({join_words(steps)})"
        if not signs[steps[0]]:
            return f"at no {every} is {subject} shown to differ from {rest}"
        where = f"at every {every}"
    parts = [
        f"{first} {rest}, {where}",
        *(f"{word} it at {join_steps(steps, grid.unit)}" for word, steps in others),
    ]
    return f"{subject} is {join_words(parts)}"


def _describe_distance(contents: Contents) -> str:
    if OURS not in contents.distances:
        return ""
    length, size = contents.data["length"], contents.data["vocabulary_size"]
    measured = mean_distance(contents.distances[OURS])
    meaning = "there is less to undo"
    if OURS in contents.independent:
        meaning = "it is nearly independent of the data, because hardly any weight counts but a row's own"
    return (
        f"The {OURS} coupling leaves source and data {measured:.2f} of {length} tokens apart on average, "
        f"where random sources would be {independent_distance(length, size):.2f} apart: {meaning}."
    )


def _describe_cost(contents: Contents) -> str:
    timings = contents.timings
    seconds = {
        step: timings.loc[(timings.step == step) & (timings.method == OURS), "seconds"].sum()
        for step in ("pair", "train")
    }
    if not all(seconds.values()):
        return ""
    share = seconds["pair"] / seconds["train"]
    return (
        f"Computing that coupling took {seconds['pair']:,.1f} s, {share:.1%} of the "
        f"{seconds['train']:,.1f} s spent on training {OURS}."
    )
