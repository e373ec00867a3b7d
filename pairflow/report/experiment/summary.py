"""The page's first paragraph: sentences made from the numbers, left out where those are missing."""

from collections.abc import Mapping

import numpy as np

from pairflow.report.experiment.contents import Contents
from pairflow.report.experiment.quality import Panel, panels
from pairflow.report.figures import mean_distance
from pairflow.report.stats import compare_ratio, compare_sign, group_by_seed
from pairflow.report.tables import Table, describe_scope, make_table, summarise
from pairflow.report.words import BASELINE, OURS, join_steps, join_words

_NAMED = 4  # of more methods than these, a sentence names only the best


def write_summary(contents: Contents) -> list[str]:
    """PairFlow against UDLM, quality at the fewest steps, the coupling's distance, its cost."""
    texts = [_describe_distance(contents), _describe_cost(contents)]
    if headline := _headline(contents):
        texts = [_compare(headline), _rank(headline, contents.methods), *texts]
    return [text for text in texts if text]


def _rank(panel: Panel, methods: list[str]) -> str:
    """The best methods at the fewest sampling steps."""
    table = make_table(summarise(panel.rows), panel.evaluation, panel.metric, methods)
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
    title = f"{panel.about.headline} {panel.beside}".rstrip()
    best = join_words([parts[name] for name in named])
    baseline = f"; {parts[BASELINE]}" if BASELINE in parts and BASELINE not in named else ""
    return (
        f"{title} at {join_steps(table.columns[:1])}{among}: {best}{baseline} "
        f"({_describe_spread(table)}; {describe_scope(panel.rows, panel.evaluation)})."
    )


def _describe_spread(table: Table) -> str:
    """What the ± in a table's first column is."""
    if not any(cells[0].spread for cells in table.rows.values()):
        return "no deviation" if table.count > 1 else "one value each"
    between = f"{table.seeds} training seeds" if table.seeds > 1 else "sampling trials"
    return f"mean ± standard deviation between {between}"


def _compare(panel: Panel) -> str:
    """PairFlow relative to UDLM at the fewest and the most sampling steps that both have."""
    title, lower = panel.about.headline, panel.about.best == "lowest"
    ours, baseline = (panel.rows[panel.rows.method == name] for name in (OURS, BASELINE))
    shared = sorted({int(nfe) for nfe in set(ours.nfe) & set(baseline.nfe)})
    seeds = panel.rows.seed.nunique()
    pairs = {
        nfe: (group_by_seed(ours[ours.nfe == nfe]), group_by_seed(baseline[baseline.nfe == nfe]), seeds > 1)
        for nfe in shared
    }
    signs = {nfe: compare_sign(*pair) * (-1 if lower else 1) for nfe, pair in pairs.items()}
    parts = []
    for nfe in dict.fromkeys([*shared[:1], *shared[-1:]]):
        ratio, error = compare_ratio(*pairs[nfe])
        if np.isfinite(ratio):
            spread = f" ± {error:.2f}" if np.isfinite(error) else ""
            parts.append(f"{ratio:.2f}{spread} times at {join_steps([nfe])}")
    if not parts:
        return ""
    over = f"over {seeds} seeds" if seeds > 1 else "over trials of one training"
    known = "±" in "".join(parts)
    note = f"ratio of means ± standard error {over}" if known else "no uncertainty: a single observation"
    better = f"{'lower' if lower else 'higher'} is better"
    verdict = _judge(signs) if known else ""
    return f"{verdict}{title} of {OURS} relative to {BASELINE}: {join_words(parts)} ({better}; {note})."


_WORDS = {1: "better than", -1: "worse than", 0: "not clearly different from"}


def _judge(signs: Mapping[int, int]) -> str:
    """What a newcomer wants to know first, from NFE -> sign of the effect, 1 being better."""
    subject = f"{OURS}, which learns from sources paired with the data, is"
    rest = f"{BASELINE}, which learns from random ones,"
    groups = {word: [nfe for nfe in signs if signs[nfe] == sign] for sign, word in _WORDS.items()}
    (first, steps), *others = ((word, steps) for word, steps in groups.items() if steps)
    where = f"at {join_steps(steps)}"
    if not others and len(steps) > 1:
        where = f"at every number of sampling steps ({join_words(steps)})"
    parts = [f"{first} {rest} {where}", *(f"{word} it at {join_steps(steps)}" for word, steps in others)]
    if not any(signs.values()):
        return f"{subject} {parts[0]}. "
    return f"{subject} {join_words(parts)}, by more than two standard errors. "


def _describe_distance(contents: Contents) -> str:
    if OURS not in contents.distances:
        return ""
    length, size = contents.data["length"], contents.data["vocabulary_size"]
    measured = mean_distance(contents.distances[OURS])
    return (
        f"The {OURS} coupling leaves source and data {measured:.2f} of {length} tokens apart on average, "
        f"where random sources would be {length * (size - 1) / size:.2f} apart: there is less to undo."
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


def _headline(contents: Contents) -> Panel | None:
    """The first metric with a headline, in the first evaluation that has values of one."""
    every = (panel for name in contents.evaluations for panel in panels(contents, name))
    return next((panel for panel in every if panel.about.headline), None)
