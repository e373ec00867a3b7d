"""The comparison of methods in words: sentences made from the numbers, left out where those are missing."""

from collections.abc import Mapping, Sequence

import numpy as np

from pairflow.config import BASES, tail_revises
from pairflow.report.contents import Contents
from pairflow.report.figures import mean_distance
from pairflow.report.panels import Panel, leading_panel, panels
from pairflow.report.stats import Difference, adjust, difference
from pairflow.report.tables import (
    Table,
    choose_digits,
    could_show,
    describe_scope,
    differ_in_entropy,
    make_table,
    summarise,
)
from pairflow.report.words import OURS, baselines, format_number, join_steps, join_words

_NAMED = 4  # of more methods than these, a sentence names only the best


def write_summary(contents: Contents) -> list[str]:
    """PairFlow and own pairs against baselines, quality at the fewest steps, the coupling and its cost."""
    texts = [_describe_distance(contents), _describe_cost(contents)]
    if panel := leading_panel(contents.metrics, contents.experiment):
        paired = [OURS, *(f"pairs-{name}" for name in contents.experiment.pairs)]
        against = baselines(contents.experiment)
        compared = [text for baseline in against for text in _compare(panel, paired, baseline, contents)]
        masked = [method for method in contents.methods if not tail_revises(method)]
        by_calls = panel.by_calls(contents.experiment.count_calls)
        compared += [text for baseline in masked for text in _compare(by_calls, paired, baseline, contents)]
        texts = [*compared, _rank(panel, contents), *texts]
    return [text for text in texts if text]


def _rank(panel: Panel, contents: Contents) -> str:
    """The best methods at the fewest sampling steps."""
    table = make_table(summarise(panel.rows), panel.evaluation, panel.metric, panel.about, contents.methods)
    first = baselines(contents.experiment)[0]
    direction = 1 if panel.about.best == "lowest" else -1
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
        panel,
        f"{_title(panel)} at {join_steps(table.columns[:1])}{among}: {best}{baseline} "
        f"({_describe_spread(table)}; {describe_scope(panel.rows, panel.evaluation)}"
        f"{_describe_inequality(panel, table, contents)}).",
    )


def _describe_inequality(panel: Panel, table: Table, contents: Contents) -> str:
    """In what the methods are unequal in a table's first column: in their calls, or text in its entropy."""
    calls = contents.add_calls(table).call_rows
    texts = [f"network calls: {join_words([f'{own[0]} of {name}' for name, own in calls.items()])}"]
    means = _find_entropies(panel, contents)
    found = [mean for (_, nfe), mean in means.items() if nfe == table.columns[0]]
    least, most = min(found, default=0.0), max(found, default=0.0)
    entropies = f"entropies of {least:.2f} to {most:.2f} nats, so that perplexities do not compare"
    texts = texts * (len(calls) > 1) + [entropies] * differ_in_entropy(least, most)
    return "".join(f"; {text}" for text in texts)


def _describe_spread(table: Table) -> str:
    """What the ± in a table's first column is."""
    if not any(cells[0].spread for cells in table.rows.values()):
        return "no deviation" if table.count > 1 else "one value each"
    between = f"{table.seeds} training seeds" if table.seeds > 1 else "sampling trials"
    return f"mean ± standard deviation between {between}"


def _compare(panel: Panel, methods: Sequence[str], baseline: str, contents: Contents) -> list[str]:
    """PairFlow and own couplings less a baseline; beside the first one, what holds for all these tests."""
    tests = _test(panel, baseline)
    entropies = _find_entropies(panel, contents)
    texts = [
        " ".join(
            [
                _describe(method, tests[method], panel, baseline),
                *_describe_entropies(method, tests[method], entropies, panel, baseline),
            ]
        )
        for method in methods
        if method in tests
    ]
    cells = [cell for method in methods for cell in tests.get(method, {}).values()]
    return [" ".join([texts[0], *_describe_tests(cells)]), *texts[1:]] if texts else []


def _describe(method: str, tests: Mapping[int, Difference], panel: Panel, baseline: str) -> str:
    """Where a method is better than the baseline, and by how much at the fewest and the most steps."""
    ends = dict.fromkeys([min(tests), max(tests)])
    differences = join_words([_describe_difference(tests[nfe], nfe, panel) for nfe in ends])
    better = "lower" if panel.about.best == "lowest" else "higher"
    text = f"{_title(panel)} of {method} less that of {baseline}: {differences}; {better} is better"
    seen = [_begin(panel, text)]
    if any(cell.test for cell in tests.values()):
        judged = _begin(panel, _judge(method, tests, panel, baseline))
        seen = [judged, *seen, *_describe_limits(tests, panel)]
    return " ".join(f"{sentence}." for sentence in seen)


def _find_entropies(panel: Panel, contents: Contents) -> Mapping[tuple[str, int], float]:
    """The mean entropy of samples of text at the places of a panel; empty for other data."""
    for other in panels(contents.metrics, contents.experiment, panel.evaluation):
        if other.metric == "entropy":
            by_calls = panel.unit != other.unit
            return (other.by_calls(contents.experiment.count_calls) if by_calls else other).means
    return {}


def _describe_entropies(
    method: str, tests: Mapping[int, Difference], entropies: Mapping, panel: Panel, baseline: str
) -> list[str]:
    """Where perplexities are not compared at equal entropy, as they have to be."""
    if not entropies:
        return []
    pairs = {place: (entropies[method, place], entropies[baseline, place]) for place in tests}
    unequal = {place: pair for place, pair in pairs.items() if differ_in_entropy(*pair)}
    if not unequal:
        return []
    said = [
        f"{ours:.2f} against {theirs:.2f} nats at {join_steps([place], panel.unit)}"
        for place, (ours, theirs) in unequal.items()
    ]
    return [
        f"Perplexities compare at equal entropy only, but the entropies are {join_words(said)}: compare "
        f"over temperatures (evaluations.{panel.evaluation}.temperatures)."
    ]


def _test(panel: Panel, baseline: str) -> dict[str, dict[int, Difference]]:
    """Method -> NFE -> its difference from the baseline, by the rule of `pairflow compare`.

    Holm's correction is over the differences of all methods from the baseline.
    """
    values = panel.values
    keys = [key for key in sorted(values) if key[0] != baseline and (baseline, key[1]) in values]
    cells = adjust(difference(values[method, nfe], values[baseline, nfe]) for method, nfe in keys)
    tests: dict[str, dict[int, Difference]] = {}
    for (method, nfe), cell in zip(keys, cells, strict=True):
        tests.setdefault(method, {})[nfe] = cell
    return tests


def _describe_tests(cells: Sequence[Difference]) -> list[str]:
    """How a verdict may differ from an interval."""
    family = max(cell.family for cell in cells)
    single = "Each interval is of one difference only; verdicts are corrected (Holm) over"
    return [f"{single} {family} comparisons."] if family > 1 else []


def _title(panel: Panel) -> str:
    return f"{panel.about.headline} {panel.beside}".rstrip()


def _begin(panel: Panel, text: str) -> str:
    """A sentence about methods; of a single training seed it says so."""
    if panel.rows.seed.nunique() == 1:
        return f"In this training, {text}"
    return text[0].upper() + text[1:]


def _describe_difference(cell: Difference, nfe: int, panel: Panel) -> str:
    value = f"{_number(cell.value, panel, '+')} at {join_steps([nfe], panel.unit)}"
    if not cell.test:
        return f"{value} (not tested: {cell.reason})"
    ends = f"{_number(cell.low, panel, '+')} to {_number(cell.high, panel, '+')}"
    return f"{value} (95 % interval {ends})"


def _describe_limits(tests: Mapping[int, Difference], panel: Panel) -> list[str]:
    """The smallest differences that could have been seen, where the test decides nothing."""
    undecided = {nfe: cell for nfe, cell in tests.items() if cell.undecided}
    possible = [nfe for nfe, cell in undecided.items() if could_show(panel.about, cell)]
    limits = [f"{_number(tests[nfe].visible, panel)} at {join_steps([nfe], panel.unit)}" for nfe in possible]
    texts = [f"A difference of about {join_words(limits)} would have shown"] if limits else []
    if blind := [nfe for nfe in undecided if nfe not in possible]:
        texts.append(f"No possible gain would have shown at {join_steps(blind, panel.unit)}")
    return texts


def _number(value: float, panel: Panel, sign: str = "") -> str:
    """A value with the decimals that its metric has in tables."""
    digits = 1 if panel.about.counted else choose_digits([*panel.means.values()])
    return format_number(value, digits, sign)


_WORDS = {1: "better than", -1: "worse than", 0: "not shown to differ from"}


def _judge(method: str, tests: Mapping[int, Difference], panel: Panel, baseline: str) -> str:
    """What a newcomer wants to know first, from NFE -> test."""
    direction = -1 if panel.about.best == "lowest" else 1
    signs = {nfe: direction * int(np.sign(cell.value)) * cell.decided for nfe, cell in tests.items()}
    paired = "sources paired with the data" if method == OURS else "your own pairs"
    subject = f"{method}, which learns from {paired},"
    rest = f"{baseline}, which learns from {BASES[baseline].learns}"
    groups = {word: [nfe for nfe in signs if signs[nfe] == sign] for sign, word in _WORDS.items()}
    (first, steps), *others = ((word, steps) for word, steps in groups.items() if steps)
    where = f"at {join_steps(steps, panel.unit)}"
    if not others and len(steps) > 1:
        every = f"number of {panel.unit}s ({join_words(steps)})"
        if not signs[steps[0]]:
            return f"at no {every} is {subject} shown to differ from {rest}"
        where = f"at every {every}"
    parts = [
        f"{first} {rest}, {where}",
        *(f"{word} it at {join_steps(steps, panel.unit)}" for word, steps in others),
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
        f"where random sources would be {length * (size - 1) / size:.2f} apart: {meaning}."
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
