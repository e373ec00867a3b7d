"""The report's first paragraph: sentences made from the numbers, left out where those are missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pairflow.report.experiment.contents import Contents
from pairflow.report.experiment.quality import panels
from pairflow.report.figures import mean_distance
from pairflow.report.tables import METRICS, Table, named, scope, summarise, table

BASELINE, OURS = "udlm", "pairflow"
_NAMED = 4  # of more methods, a sentence names the best


def sentences(contents: Contents) -> list[str]:
    """PairFlow against UDLM, quality at the fewest steps, the coupling's distance, its cost."""
    found = [_ratio(contents), _quality(contents), _distance(contents), _cost(contents)]
    return [sentence for sentence in found if sentence]


def ratio(ours: pd.DataFrame, baseline: pd.DataFrame, several: bool = False) -> tuple[float, float]:
    """Ratio of two means and its standard error (delta method), from rows `seed` and `value`.

    Over `several` seeds, or if one side has more than one, a seed's mean is one observation, since trials of
    one training are not independent; over one seed each trial is. The error is NaN where one side has a
    single observation; both are NaN where there is no ratio.
    """
    one, other = _observations(ours, baseline, several)
    if not len(one) or not len(other) or other.mean() == 0:
        return np.nan, np.nan
    value = one.mean() / other.mean()
    if len(one) < 2 or len(other) < 2:
        return value, np.nan
    return value, float(np.hypot(one.sem() / other.mean(), value * other.sem() / other.mean()))


def sign(ours: pd.DataFrame, baseline: pd.DataFrame, several: bool = False) -> int:
    """1 or -1 where two means are more than two standard errors of their difference apart, else 0."""
    one, other = _observations(ours, baseline, several)
    difference = one.mean() - other.mean()
    return int(np.sign(difference)) if abs(difference) > 2 * np.hypot(one.sem(), other.sem()) else 0


def _observations(ours: pd.DataFrame, baseline: pd.DataFrame, several: bool) -> tuple[pd.Series, pd.Series]:
    """Of both sides, what is independent: the means of seeds, or the trials of one."""
    one, other = (rows.dropna(subset="value") for rows in (ours, baseline))
    if several or one.seed.nunique() > 1 or other.seed.nunique() > 1:
        return one.groupby("seed")["value"].mean(), other.groupby("seed")["value"].mean()
    return one["value"], other["value"]


def _quality(contents: Contents) -> str:
    found = _headline(contents)
    if found is None:
        return ""
    counts = table(summarise(found.rows), found.evaluation, found.metric, contents.methods)
    first = 1 if found.lower else -1
    cells = sorted(
        ((method, cells[0]) for method, cells in counts.rows.items() if cells[0].count),
        key=lambda item: first * item[1].mean,
    )
    parts = {
        method: f"{cell.text}{' ' * bool(cell.spread)}{cell.spread} with {method}" for method, cell in cells
    }
    among, shown = "", list(parts)
    if len(parts) > _NAMED:
        among, shown = f", the best three of {len(parts)} methods", list(parts)[:3]
    best = _enumerate([parts[name] for name in shown])
    also = f"; {parts[BASELINE]}" if BASELINE in parts and BASELINE not in shown else ""
    return (
        f"{found.words}{found.beside} at {_steps(counts.columns[0])}{among}: {best}{also} "
        f"({_spread(counts)}; {scope(found.rows, found.evaluation)})."
    )


def _spread(counts: Table) -> str:
    """What the ± of a table's first column is."""
    if not any(cells[0].spread for cells in counts.rows.values()):
        return "no deviation" if counts.count > 1 else "one value each"
    between = f"{counts.seeds} training seeds" if counts.seeds > 1 else "sampling trials"
    return f"mean ± standard deviation between {between}"


def _ratio(contents: Contents) -> str:
    found = _headline(contents)
    if found is None:
        return ""
    ours, baseline = (found.rows[found.rows.method == name] for name in (OURS, BASELINE))
    shared = sorted(set(ours.nfe) & set(baseline.nfe))
    seeds = found.rows.seed.nunique()
    pairs = {int(nfe): (ours[ours.nfe == nfe], baseline[baseline.nfe == nfe], seeds > 1) for nfe in shared}
    signs = {nfe: sign(*pair) * (-1 if found.lower else 1) for nfe, pair in pairs.items()}
    parts = []
    for nfe in dict.fromkeys([*shared[:1], *shared[-1:]]):
        value, error = ratio(*pairs[int(nfe)])
        if np.isfinite(value):
            parts.append(
                f"{value:.2f}{f' ± {error:.2f}' if np.isfinite(error) else ''} times at {_steps(int(nfe))}"
            )
    if not parts:
        return ""
    error = (
        f"standard error over {seeds} seeds" if seeds > 1 else "standard error over trials of one training"
    )
    note = f"ratio of means ± {error}" if "±" in "".join(parts) else "no uncertainty: a single observation"
    better = f"{'lower' if found.lower else 'higher'} is better"
    verdict = _verdict(signs) if "±" in note else ""
    return f"{verdict}{found.words} of {OURS} relative to {BASELINE}: {_enumerate(parts)} ({better}; {note})."


_WORDS = {1: "better than", -1: "worse than", 0: "not clearly different from"}


def _verdict(signs: Mapping[int, int]) -> str:
    """What a newcomer wants to know first, from NFE -> sign of the effect, 1 being better."""
    who = f"{OURS}, which learns from sources paired with the data, is"
    rest = f"{BASELINE}, which learns from random ones,"
    groups = {word: [nfe for nfe in signs if signs[nfe] == found] for found, word in _WORDS.items()}
    (first, steps), *others = ((word, found) for word, found in groups.items() if found)
    where = f"at {_steps_of(steps)}"
    if not others:
        where = f"at every number of sampling steps ({_enumerate(steps)})" if len(steps) > 1 else where
    told = [f"{first} {rest} {where}", *(f"{word} it at {_steps_of(found)}" for word, found in others)]
    return (
        f"{who} {_enumerate(told)}, by more than two standard errors. "
        if any(signs.values())
        else f"{who} {told[0]}. "
    )


def _distance(contents: Contents) -> str:
    if OURS not in contents.distances:
        return ""
    length, size = contents.data["length"], contents.data["vocabulary_size"]
    measured = mean_distance(contents.distances[OURS])
    return (
        f"The {OURS} coupling leaves source and data {measured:.2f} of {length} tokens apart on average, "
        f"where random sources would be {length * (size - 1) / size:.2f} apart: there is less to undo."
    )


def _cost(contents: Contents) -> str:
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


@dataclass(frozen=True)
class _Headline:
    """The metric that the paragraph speaks of, and its rows: of one evaluation, reference and extractor."""

    metric: str
    evaluation: str
    rows: pd.DataFrame
    beside: str = ""

    @property
    def words(self) -> str:
        return METRICS[self.metric].headline

    @property
    def lower(self) -> bool:
        return METRICS[self.metric].best == "lowest"


def _headline(contents: Contents) -> _Headline | None:
    """The first metric with a headline, of the first evaluation that has values of one."""
    for name in contents.evaluations:
        for metric, rows, beside in _candidates(contents, name):
            if METRICS[metric].headline and len(rows):
                return _Headline(metric, name, rows, beside)
    return None


def _candidates(contents: Contents, evaluation: str) -> Iterator[tuple[str, pd.DataFrame, str]]:
    if contents.modality == "images":
        for panel in panels(contents, evaluation):
            yield panel.metric, panel.rows, f" {panel.beside}".rstrip()
        return
    rows = contents.metrics.dropna(subset="value")
    for metric in named(contents.modality):
        yield metric, rows[(rows.evaluation == evaluation) & (rows.metric == metric)], ""


def _steps_of(numbers: Sequence[int]) -> str:
    """`1 sampling step`, `2 and 4 sampling steps`."""
    return f"{_enumerate(numbers)} sampling step{'s' if list(numbers) != [1] else ''}"


def _steps(number: float) -> str:
    return f"{number:.0f} sampling step{'s' if number > 1 else ''}"


def _enumerate(parts: Sequence[object]) -> str:
    parts = [str(part) for part in parts]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
