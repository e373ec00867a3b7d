"""Computes means with intervals, and compares two methods, from metric values of seeds and of trials.

Every seed is another training. With several seeds, the observations are therefore the means of the seeds.
With one seed they are its sampling trials, which say nothing about another training. `Over` distinguishes
the two.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import ttest_ind, ttest_rel

LEVEL = 0.95  # confidence level of intervals
SIGNIFICANCE = 0.05  # largest p, after Holm's correction, of a decided difference
_QUANTILE = (1 + LEVEL) / 2
REPETITIONS = 3  # seeds or trials that a test needs: of two, a small spread is mostly chance
_NOISE = 1e-12  # relative difference of observations that is only rounding

Values = Mapping[int, Mapping[int, float]]  # seed -> trial -> value: no NaN, and no seed without a trial


class Over(StrEnum):
    """What the observations are: means of the seeds (trainings), or the trials of one seed."""

    SEEDS = "seeds"
    TRIALS = "trials"


@dataclass(frozen=True)
class Estimate:
    """Mean and sample variance of `count` independent observations, which are seeds or trials (`over`).

    The variance is NaN if there is one observation. `within` is the standard deviation between the trials of
    a seed (variances pooled over seeds); `trials` counts the trials of all `seeds`.
    """

    mean: float
    variance: float = np.nan
    count: int = 1
    over: Over = Over.TRIALS
    within: float = np.nan
    seeds: int = 1
    trials: int = 1

    @property
    def std(self) -> float:
        """The standard deviation between the observations."""
        return self.variance**0.5

    @property
    def between(self) -> float:
        """The standard deviation between the seeds' means; NaN for a single seed."""
        return self.std if self.over == Over.SEEDS else np.nan

    @property
    def note(self) -> str:
        """What was averaged, in words, such as `over 3 seeds`."""
        if self.over == Over.SEEDS:
            return f"over {self.seeds} seeds"
        return f"over {self.trials} trials of one seed" if self.trials > 1 else "a single value"

    @property
    def error(self) -> float:
        """The squared standard error of the mean."""
        return self.variance / self.count

    @property
    def interval(self) -> tuple[float, float]:
        """Student's t interval of the mean, of confidence `LEVEL`; NaN for a single observation."""
        half = t_quantile(self.count - 1) * self.error**0.5
        return self.mean - half, self.mean + half


def estimate(values: Values) -> Estimate:
    """Average `values`, {seed: {trial: value}}, which must not be empty: the seeds' means, or the trials of a
    single seed."""
    observations, over = observe(values)
    seeds = [[*trials.values()] for trials in values.values()]
    return Estimate(
        mean=float(np.mean(observations)),
        variance=_variance(observations),
        count=len(observations),
        over=over,
        within=_pooled(seeds),
        seeds=len(seeds),
        trials=sum(map(len, seeds)),
    )


def observe(values: Values) -> tuple[list[float], Over]:
    """Return the independent observations, and what they are: seeds' means, or trials of a single seed."""
    if len(values) > 1:
        return [float(np.mean([*trials.values()])) for trials in values.values()], Over.SEEDS
    return [value for trials in values.values() for value in trials.values()], Over.TRIALS


def group_by_seed(rows: pd.DataFrame) -> dict[int, dict[int, float]]:
    """Turn rows with columns seed, value and optionally trial into {seed: {trial: value}}, without NaN."""
    known = rows["value"].notna().to_numpy()  # dropna is slow, and pages have hundreds of groups
    seeds, numbers = (rows[name].to_numpy()[known] for name in ("seed", "value"))
    trials = rows["trial"].to_numpy()[known] if "trial" in rows else np.array([None])
    trials = np.arange(len(numbers)) if pd.isna(trials).any() else trials
    values: dict[int, dict[int, float]] = {}
    for seed, trial, value in zip(seeds, trials, numbers, strict=True):
        values.setdefault(int(seed), {})[int(trial)] = float(value)
    return values


def t_quantile(freedom: float) -> float:
    """Return the quantile of Student's t, at `freedom` degrees, for a two-sided interval of `LEVEL`."""
    return float(stdtrit(freedom, _QUANTILE))


@dataclass(frozen=True)
class Difference:
    """Our mean minus the baseline's (`value`), with its interval (`low`, `high`) and its test.

    If both share seeds or trials, only these count. `n` and `n_baseline` are the numbers of observations (of
    pairs, if `test` is paired). Without a test, `reason` says why, and interval and p are NaN; with a test,
    `base` is the baseline's mean. `adjusted` is p after Holm's correction over all `family` tests of a table,
    and `visible` is about the smallest difference that this test could have decided.
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
    visible: float = np.nan
    family: int = 0
    base: float = np.nan
    reason: str = ""

    @property
    def decided(self) -> bool:
        """Whether the test finds a difference, after Holm's correction."""
        return bool(self.adjusted <= SIGNIFICANCE)

    @property
    def undecided(self) -> bool:
        """Whether there is a test that finds no difference."""
        return bool(self.test) and not self.decided

    @property
    def note(self) -> str:
        """How it was tested, in words; empty without a test."""
        if not self.test:
            return ""
        paired = self.test == "paired t"
        counts = f"{self.n}" if paired else f"{self.n} against {self.n_baseline}"
        one_seed = " of one seed" if paired and self.over == Over.TRIALS else ""
        return f"{self.test}, {counts} {self.over}{one_seed}"

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def difference(ours: Values, baseline: Values) -> Difference:
    """Test whether the mean of our values, {seed: {trial: value}}, differs from the baseline's.

    A seed is a training, and a trial is one of several sets of samples of that training. The test is

    - paired over the seeds, if the two sides share several;
    - Welch's over the seeds, if both have several but share at most one;
    - paired over the trials of a seed, if one side has a single seed, which the other has, too;
    - Welch's over the trials, if each side has one seed, and not the same.

    Otherwise, or with fewer than `REPETITIONS` seeds (trials), nothing is tested, and the result says why.
    """
    shared = sorted(ours.keys() & baseline.keys())
    if len(shared) > 1:
        one, other = ([*observe({seed: side[seed] for seed in shared})[0]] for side in (ours, baseline))
        return _test(one, other, Over.SEEDS, paired=True)
    if len(ours) > 1 and len(baseline) > 1:
        return _test(observe(ours)[0], observe(baseline)[0], Over.SEEDS)
    if not shared and len(ours) + len(baseline) > 2:
        value = estimate(ours).mean - estimate(baseline).mean
        return Difference(value, reason="the single seed is not among the several")
    single, against = (side[shared[0]] if shared else next(iter(side.values())) for side in (ours, baseline))
    trials = sorted(single.keys() & against.keys()) if shared else []
    if len(trials) > 1:
        one, other = ([side[trial] for trial in trials] for side in (single, against))
        return _test(one, other, Over.TRIALS, paired=True)
    return _test([*single.values()], [*against.values()], Over.TRIALS)


def holm(p: Collection[float]) -> list[float]:
    """Adjust p values for their number by Holm's method. NaN stays NaN and does not count.

    The i-th smallest of m values is multiplied by m - i + 1; a result below the previous one is raised to it.
    """
    values = np.array([*p], dtype=float)
    order = np.argsort(values)[: np.isfinite(values).sum()]
    factors = np.arange(len(order), 0, -1)
    values[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return values.tolist()


def adjust(differences: Iterable[Difference]) -> list[Difference]:
    """Return the differences of a table with Holm's correction over them: `adjusted`, `family`, `visible`.

    If u tests are undecided, a difference of `visible` would have p = `SIGNIFICANCE` / u, which is just
    enough for Holm's method to decide the first of them.
    """
    cells = [*differences]
    adjusted = holm([cell.p for cell in cells])
    family = int(np.isfinite(adjusted).sum())
    undecided = max(1, sum(p > SIGNIFICANCE for p in adjusted))
    tail = SIGNIFICANCE / undecided / 2
    # `half` is the standard error times the quantile of LEVEL: `visible` has the corrected quantile instead.
    return [
        replace(
            cell,
            adjusted=p,
            family=family,
            visible=cell.half * float(stdtrit(cell.freedom, 1 - tail)) / t_quantile(cell.freedom),
        )
        for cell, p in zip(cells, adjusted, strict=True)
    ]


def _test(ours: Sequence[float], baseline: Sequence[float], over: Over, paired: bool = False) -> Difference:
    """Test whether the means of two lists of observations, of seeds or trials (`over`), differ: by Student's
    paired test if `paired`, else by Welch's test. If they cannot be tested, `reason` of the result says
    why."""
    gains = np.subtract(ours, baseline) if paired else np.array([])
    value = float(gains.mean() if paired else np.mean(ours) - np.mean(baseline))
    shared = Difference(value, over, len(ours), len(baseline))
    fewest, sides = min(len(ours), len(baseline)), [gains] if paired else [ours, baseline]
    if fewest < 2:
        return replace(shared, reason="a single value")
    if all(np.ptp(side) <= _NOISE * np.abs([*ours, *baseline]).max() for side in sides):
        return replace(shared, reason="no spread")
    if fewest < REPETITIONS:
        return replace(shared, reason=f"only {fewest} {over}, and a test needs {REPETITIONS}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one of Welch's groups may have no spread
        result = ttest_rel(ours, baseline) if paired else ttest_ind(ours, baseline, equal_var=False)
    low, high = map(float, result.confidence_interval(LEVEL))
    return replace(
        shared,
        test="paired t" if paired else "Welch",
        statistic=float(result.statistic),
        freedom=float(result.df),
        low=low,
        high=high,
        p=float(result.pvalue),
        base=float(np.mean(baseline)),
    )


def _variance(observations: Sequence[float]) -> float:
    return float(np.var(observations, ddof=1)) if len(observations) > 1 else np.nan


def _pooled(seeds: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation between trials of a seed, pooled over the seeds with several trials; NaN
    if there are none. `seeds` has the trials' values of each seed."""
    several = [trials for trials in seeds if len(trials) > 1]
    if not several:
        return np.nan
    freedom = [len(trials) - 1 for trials in several]
    return float(np.average([_variance(trials) for trials in several], weights=freedom) ** 0.5)
