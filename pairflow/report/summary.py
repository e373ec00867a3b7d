"""The report's first paragraph: sentences made from the numbers, left out where those are missing."""

import numpy as np
import pandas as pd

from pairflow.report.contents import Contents
from pairflow.report.figures import mean_distance
from pairflow.report.tables import scope, summarise, table

BASELINE, OURS = "udlm", "pairflow"
_NAMED = 4  # of more methods, a sentence names the best


def sentences(contents: Contents) -> list[str]:
    """Quality at the fewest steps, PairFlow against UDLM, the coupling's distance, its cost."""
    found = [_quality(contents), _ratio(contents), _distance(contents), _cost(contents)]
    return [sentence for sentence in found if sentence]


def ratio(ours: pd.DataFrame, baseline: pd.DataFrame) -> tuple[float, float]:
    """Ratio of two means and its standard error (delta method), from rows `seed` and `value`.

    Over several seeds a seed's mean is one observation, since trials of one training are not independent;
    over one seed each trial is. The error is NaN where one side has a single observation; both are NaN where
    there is no ratio.
    """
    one, other = _observations(ours), _observations(baseline)
    if not len(one) or not len(other) or other.mean() == 0:
        return np.nan, np.nan
    value = one.mean() / other.mean()
    if len(one) < 2 or len(other) < 2:
        return value, np.nan
    return value, float(np.hypot(one.sem() / other.mean(), value * other.sem() / other.mean()))


def _observations(rows: pd.DataFrame) -> pd.Series:
    rows = rows.dropna(subset="value")
    return rows.groupby("seed")["value"].mean() if rows.seed.nunique() > 1 else rows["value"]


def _quality(contents: Contents) -> str:
    evaluation, valid = _valid(contents)
    if valid.empty:
        return ""
    counts = table(summarise(valid), evaluation, "valid", contents.methods)
    cells = sorted(
        ((method, cells[0]) for method, cells in counts.rows.items() if cells[0].count),
        key=lambda item: -item[1].mean,
    )
    parts = {
        method: f"{cell.text}{' ' * bool(cell.spread)}{cell.spread} with {method}" for method, cell in cells
    }
    among, shown = "", list(parts)
    if len(parts) > _NAMED:
        among, shown = f", the best three of {len(parts)} methods", list(parts)[:3]
    best = _enumerate([parts[name] for name in shown])
    also = f"; {parts[BASELINE]}" if BASELINE in parts and BASELINE not in shown else ""
    spread = "mean ± standard deviation" if counts.count > 1 else "one value each"
    return (
        f"Valid molecules at {_steps(counts.columns[0])}{among}: {best}{also} "
        f"({spread}; {scope(valid, evaluation)})."
    )


def _ratio(contents: Contents) -> str:
    _, valid = _valid(contents)
    ours, baseline = valid[valid.method == OURS], valid[valid.method == BASELINE]
    shared = sorted(set(ours.nfe) & set(baseline.nfe))
    parts = []
    for nfe in dict.fromkeys([*shared[:1], *shared[-1:]]):
        value, error = ratio(ours[ours.nfe == nfe], baseline[baseline.nfe == nfe])
        if np.isfinite(value):
            parts.append(
                f"{value:.2f}{f' ± {error:.2f}' if np.isfinite(error) else ''} times at {_steps(int(nfe))}"
            )
    if not parts:
        return ""
    seeds = valid.seed.nunique()
    error = (
        f"standard error over {seeds} seeds" if seeds > 1 else "standard error over trials of one training"
    )
    note = (
        f" (ratio of means ± {error})" if "±" in "".join(parts) else " (no uncertainty: a single observation)"
    )
    return f"Valid molecules of {OURS} relative to {BASELINE}: {_enumerate(parts)}{note}."


def _distance(contents: Contents) -> str:
    if OURS not in contents.distances:
        return ""
    length, size = contents.data["length"], contents.data["vocabulary_size"]
    measured = mean_distance(contents.distances[OURS])
    return (
        f"The {OURS} coupling leaves source and data {measured:.2f} of {length} tokens apart on average; "
        f"independent sources would be {length * (size - 1) / size:.2f} apart."
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


def _valid(contents: Contents) -> tuple[str, pd.DataFrame]:
    """The first evaluation that counts valid molecules, and its rows."""
    valid = contents.metrics[contents.metrics.metric == "valid"].dropna(subset="value")
    names = [name for name in contents.evaluations if name in set(valid.evaluation)]
    return (names[0], valid[valid.evaluation == names[0]]) if names else ("", valid)


def _steps(number: int) -> str:
    return f"{number} sampling step{'s' if number > 1 else ''}"


def _enumerate(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
