"""The stated rules by which a measured value is set beside a printed one.

Numbers. Of S >= 3 trainings, m is the mean of the seeds' means and s their standard deviation; p is printed
as the mean of T = 10 sampling trials of one training, with a deviation d between those trials (0 where none
is printed). If p came from one more training like ours, it would fall within

    margin = t(0.975, S - 1) sqrt(s^2 (1 + 1/S) + d^2 / T)

of m in at least 95 of 100 cases. |m - p| <= margin *agrees*, beyond it m is *higher* or *lower*.

Effects. Of two methods with means a and b, squared standard errors u and v, the sign of the effect is that of
a - b where |a - b| > t sqrt(u + v), Welch's t at 95 %, and *undecided* elsewhere. Its size is a / b, with the
interval that fits that test: all r with (a - r b)^2 <= t^2 (u + r^2 v) (Fieller). Observations are the means
of the seeds if there are several, and else the trials of the one training. Values that are printed without a
deviation count as they are.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from scipy.special import stdtrit

SEEDS = 3  # trainings that a judgement needs
_LEVEL = 0.975  # both sides of 95 %


@dataclass(frozen=True)
class Estimate:
    """Mean and sample variance of `count` independent observations; the variance of one is NaN."""

    mean: float
    variance: float = np.nan
    count: int = 1

    @property
    def std(self) -> float:
        return self.variance**0.5

    @property
    def error(self) -> float:
        """Squared standard error of the mean."""
        return self.variance / self.count


def estimate(rows: pd.DataFrame) -> Estimate | None:
    """Of metric rows: the means of their seeds are the observations, of a single seed its trials are.

    None where no value is a number.
    """
    rows = rows.dropna(subset="value")
    if rows.empty:
        return None
    values = rows.groupby("seed")["value"].mean() if rows.seed.nunique() > 1 else rows["value"]
    return Estimate(float(values.mean()), float(values.var()), len(values))


class Verdict(StrEnum):
    AGREES = "agrees"
    HIGHER = "higher"
    LOWER = "lower"


def margin(measured: Estimate, std: float, trials: int) -> float:
    """How far a printed value with the deviation `std` of `trials` may be from the mean of several seeds."""
    seeds = measured.count
    spread = measured.variance * (1 + 1 / seeds) + np.nan_to_num(std) ** 2 / trials
    return float(stdtrit(seeds - 1, _LEVEL) * spread**0.5)


def judge(measured: Estimate, value: float, std: float, trials: int) -> Verdict:
    """The verdict on a number, of at least two seeds."""
    difference = measured.mean - value
    if abs(difference) <= margin(measured, std, trials):
        return Verdict.AGREES
    return Verdict.HIGHER if difference > 0 else Verdict.LOWER


@dataclass(frozen=True)
class Effect:
    """`sign` is 1, -1 or 0 (undecided); `ratio` NaN without a positive baseline; `low`, `high` its interval.

    An end of the interval that is not known, or that does not exist, is NaN.
    """

    sign: int
    ratio: float
    low: float = np.nan
    high: float = np.nan


class Comparison(StrEnum):
    SAME = "same sign"
    OPPOSITE = "opposite"
    UNDECIDED = "undecided"


def effect(ours: Estimate, baseline: Estimate, *, as_printed: bool = False) -> Effect:
    """Ours against a baseline; with `as_printed`, values without a deviation are taken for exact."""
    a, b, u, v = ours.mean, baseline.mean, ours.error, baseline.error
    ratio = a / b if b > 0 else np.nan
    if not np.isfinite(u + v):
        return Effect(int(np.sign(a - b)) if as_printed else 0, ratio)
    quantile = _welch(ours, baseline)
    decided = abs(a - b) > quantile * (u + v) ** 0.5
    low, high = _fieller(a, b, quantile**2 * u, quantile**2 * v)
    return Effect(int(np.sign(a - b)) if decided else 0, ratio, low, high)


def compare(here: Effect, paper: Effect) -> Comparison:
    """Whether an effect is the paper's: undecided where either one is."""
    if not here.sign or not paper.sign:
        return Comparison.UNDECIDED
    return Comparison.SAME if here.sign == paper.sign else Comparison.OPPOSITE


def _welch(one: Estimate, other: Estimate) -> float:
    """Student's quantile at Welch and Satterthwaite's degrees of freedom."""
    u, v = one.error, other.error
    if u + v == 0:
        return 0.0
    freedom = (u + v) ** 2 / (u**2 / (one.count - 1) + v**2 / (other.count - 1))
    return float(stdtrit(freedom, _LEVEL))


def _fieller(a: float, b: float, u: float, v: float) -> tuple[float, float]:
    """Ratios r >= 0 with (a - r b)^2 <= u + r^2 v, where u and v have the quantile in them."""
    if b <= 0:
        return np.nan, np.nan
    square, constant = b * b - v, a * a - u
    root = max(a * a * b * b - square * constant, 0.0) ** 0.5
    if square > 0:
        return max((a * b - root) / square, 0.0), (a * b + root) / square
    if constant <= 0:
        return np.nan, np.nan
    return constant / (a * b + root), np.nan  # the baseline may be 0: no upper end
