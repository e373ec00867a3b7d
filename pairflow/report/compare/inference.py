"""Means with intervals and differences with tests, from the values of seeds and of their sampling trials.

Another seed is another training. So the means of the seeds are the observations where there are several; of
one seed its trials are, which say nothing of another training. `over` tells the two apart everywhere.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

LEVEL = 0.95  # of every interval
_NOISE = 1e-12  # a spread that is smaller than this share of the values is rounding

Values = Mapping[int, Mapping[int, float]]  # seed -> trial -> value: no NaN, and no seed without a trial


class Over(StrEnum):
    """What the observations are."""

    SEEDS = "seeds"
    TRIALS = "trials"


@dataclass(frozen=True)
class Estimate:
    """Mean of the seeds' means and its interval (Student's t) over seeds, or of one seed over its trials.

    `between` is the standard deviation between the seeds' means, `within` that between the trials of a seed
    (variances pooled over seeds), `seeds` and `trials` how many of them there are, trials of all seeds. What
    a single observation does not give is NaN.
    """

    mean: float
    between: float
    within: float
    low: float
    high: float
    over: Over
    seeds: int
    trials: int

    @property
    def n(self) -> int:
        """Observations."""
        return self.seeds if self.over == Over.SEEDS else self.trials

    @property
    def std(self) -> float:
        """Between the observations."""
        return self.between if self.over == Over.SEEDS else self.within


def estimate(values: Values) -> Estimate:
    """Of a cell that has at least one value."""
    means = _means(values)
    [*trials] = values.values()
    over = Over.SEEDS if len(means) > 1 else Over.TRIALS
    low, high = interval(means if over == Over.SEEDS else [*trials[0].values()])
    return Estimate(
        mean=float(np.mean(means)),
        between=_std(means),
        within=_within(trials),
        low=low,
        high=high,
        over=over,
        seeds=len(values),
        trials=sum(map(len, trials)),
    )


def interval(observations: Sequence[float]) -> tuple[float, float]:
    """Student's t interval of the mean; NaN of a single observation."""
    count = len(observations)
    if count < 2:
        return np.nan, np.nan
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * _std(observations) / count**0.5
    mean = float(np.mean(observations))
    return mean - half, mean + half


@dataclass(frozen=True)
class Difference:
    """Ours less the baseline, over what the two share where they share it, and its interval and test.

    `n` and `n_baseline` are the observations: pairs, if `test` is paired. Without a test `reason` says why,
    and interval and p are NaN. `adjusted` is p after Holm's correction over a table.
    """

    value: float
    over: Over | None = None
    n: int = 0
    n_baseline: int = 0
    test: str = ""
    statistic: float = np.nan
    freedom: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    adjusted: float = np.nan
    reason: str = ""


def difference(ours: Values, baseline: Values) -> Difference:
    """Paired over the seeds that both have; Welch's test over seeds where both have several, but share none.

    Where one of them has a single seed, over trials in the same way: of the seed that they share, or of their
    single seeds.
    """
    shared = sorted(ours.keys() & baseline.keys())
    if len(shared) > 1:
        return _paired(
            *(_means({seed: each[seed] for seed in shared}) for each in (ours, baseline)), Over.SEEDS
        )
    if len(ours) > 1 and len(baseline) > 1:
        return _welch(_means(ours), _means(baseline), Over.SEEDS)
    if not shared and len(ours) + len(baseline) > 2:
        value = float(np.mean(_means(ours)) - np.mean(_means(baseline)))
        return Difference(value, reason="several seeds against one that is none of them")
    one, other = (each[shared[0]] if shared else next(iter(each.values())) for each in (ours, baseline))
    trials = sorted(one.keys() & other.keys()) if shared else []
    if len(trials) > 1:
        return _paired(*([each[trial] for trial in trials] for each in (one, other)), Over.TRIALS)
    return _welch([*one.values()], [*other.values()], Over.TRIALS)


def holm(p: Collection[float]) -> list[float]:
    """Holm's adjustment: the i-th smallest of m times m - i + 1, and no less than those before. NaN stays."""
    values = np.array([*p], dtype=float)
    order = np.argsort(values)[: np.isfinite(values).sum()]
    factors = np.arange(len(order), 0, -1)
    values[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return values.tolist()


def _paired(ours: Sequence[float], baseline: Sequence[float], over: Over) -> Difference:
    differences = np.subtract(ours, baseline)
    value, count = float(differences.mean()), len(differences)
    if _alike(differences, [*ours, *baseline]):
        return Difference(value, over, count, count, reason="no spread")
    return _tested(value, over, count, count, "paired t", stats.ttest_rel(ours, baseline))


def _welch(ours: Sequence[float], baseline: Sequence[float], over: Over) -> Difference:
    counts = len(ours), len(baseline)
    value = float(np.mean(ours) - np.mean(baseline))
    if min(counts) < 2:
        return Difference(value, over, *counts, reason="a single value")
    every = [*ours, *baseline]
    if _alike(ours, every) and _alike(baseline, every):
        return Difference(value, over, *counts, reason="no spread")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of one side that does not vary, which is fine
        found = stats.ttest_ind(ours, baseline, equal_var=False)
    return _tested(value, over, *counts, "Welch", found)


def _tested(value: float, over: Over, n: int, n_baseline: int, test: str, found) -> Difference:
    ends = found.confidence_interval(LEVEL)
    return Difference(
        value,
        over,
        n,
        n_baseline,
        test,
        statistic=float(found.statistic),
        freedom=float(found.df),
        low=float(ends.low),
        high=float(ends.high),
        p=float(found.pvalue),
    )


def _alike(observations: Sequence[float], values: Sequence[float]) -> bool:
    return bool(np.ptp(observations) <= _NOISE * np.abs(values).max())


def _means(values: Values) -> list[float]:
    return [float(np.mean([*trials.values()])) for trials in values.values()]


def _std(observations: Sequence[float]) -> float:
    return float(np.std(observations, ddof=1)) if len(observations) > 1 else np.nan


def _within(seeds: Sequence[Mapping[int, float]]) -> float:
    """Deviation between the trials of a seed, from the variances of all seeds that have several."""
    several = [[*trials.values()] for trials in seeds if len(trials) > 1]
    if not several:
        return np.nan
    freedom = [len(trials) - 1 for trials in several]
    return float(np.average([np.var(trials, ddof=1) for trials in several], weights=freedom) ** 0.5)
