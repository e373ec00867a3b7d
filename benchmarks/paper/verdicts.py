"""The stated rules by which a measured value is compared with a printed one.

Numbers. Over S >= 3 trainings, m is the mean of the seeds' means and s their standard deviation; p is printed
as the mean of T = 10 sampling trials of one training, with a deviation d between those trials (0 where none
is printed). If p came from one more training like ours, it would fall within

    margin = t(0.975, S - 1) sqrt(s^2 (1 + 1/S) + d^2 / T)

of m in at least 95 of 100 cases. |m - p| <= margin *agrees*, beyond it m is *higher* or *lower*.

Effects. With two methods' means a and b, and their squared standard errors u and v, the sign of the effect is
that of a - b where |a - b| > t sqrt(u + v), Welch's t at 95 %, and *undecided* elsewhere. Its size is a / b,
with the interval that fits that test: all r with (a - r b)^2 <= t^2 (u + r^2 v) (Fieller). Observations are
the means of the seeds if there are several, and else the trials of the one training; of fewer than three the
sign is undecided. Values that are printed without a deviation are taken as exact.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from benchmarks.paper.printed import TRIALS
from pairflow.report.stats import REPETITIONS, Estimate, t_quantile

SEEDS = REPETITIONS  # trainings that a judgement needs


class Status(StrEnum):
    """What became of a printed value, the most telling first."""

    AGREES = "agrees"
    HIGHER = "higher"
    LOWER = "lower"
    UNJUDGED = "not judged"
    EFFECT = "effect only"
    NOT_RUN = "not run"
    OUTSIDE = "outside"


JUDGED = (Status.AGREES, Status.HIGHER, Status.LOWER)


def margin(measured: Estimate, std: float) -> float:
    """How far a printed value with the deviation `std` may be from the mean of several seeds."""
    seeds = measured.count
    spread = measured.variance * (1 + 1 / seeds) + np.nan_to_num(std) ** 2 / TRIALS
    return float(t_quantile(seeds - 1) * spread**0.5)


def judge(measured: Estimate, value: float, std: float) -> Status:
    """The verdict on a number from at least `SEEDS` seeds."""
    difference = measured.mean - value
    if abs(difference) <= margin(measured, std):
        return Status.AGREES
    return Status.HIGHER if difference > 0 else Status.LOWER


@dataclass(frozen=True)
class Effect:
    """`sign` is 1, -1 or 0 (undecided); `ratio` is NaN without a positive baseline.

    `low` and `high` are its interval; an end that is unknown or does not exist is NaN.
    """

    sign: int
    ratio: float
    low: float = np.nan
    high: float = np.nan


class Comparison(StrEnum):
    SAME = "same sign"
    OPPOSITE = "opposite"
    UNDECIDED = "undecided"


def measure_effect(ours: Estimate, baseline: Estimate, *, as_printed: bool = False) -> Effect:
    """Ours against a baseline; with `as_printed`, values without a deviation are taken as exact."""
    a, b, u, v = ours.mean, baseline.mean, ours.error, baseline.error
    ratio = a / b if b > 0 else np.nan
    if not np.isfinite(u + v) or min(ours.count, baseline.count) < REPETITIONS:
        return Effect(int(np.sign(a - b)) if as_printed else 0, ratio)
    quantile = t_quantile(_welch_freedom(ours, baseline)) if u + v else 0.0
    decided = abs(a - b) > quantile * (u + v) ** 0.5
    low, high = _fieller(a, b, quantile**2 * u, quantile**2 * v)
    return Effect(int(np.sign(a - b)) if decided else 0, ratio, low, high)


def compare_effects(here: Effect, paper: Effect) -> Comparison:
    """Whether an effect is the paper's: undecided where either one is."""
    if not here.sign or not paper.sign:
        return Comparison.UNDECIDED
    return Comparison.SAME if here.sign == paper.sign else Comparison.OPPOSITE


def _welch_freedom(one: Estimate, other: Estimate) -> float:
    """Degrees of freedom of the difference of two means, by Welch and Satterthwaite; not both exact."""
    u, v = one.error, other.error
    return float((u + v) ** 2 / (u**2 / (one.count - 1) + v**2 / (other.count - 1)))


def _fieller(a: float, b: float, u: float, v: float) -> tuple[float, float]:
    """Ends of the ratios r >= 0 with (a - r b)^2 <= u + r^2 v: Fieller's interval of a / b.

    u and v are squared standard errors times the squared quantile. An end that does not exist is NaN.
    """
    if b <= 0:
        return np.nan, np.nan
    square, constant = b * b - v, a * a - u
    root = max(a * a * b * b - square * constant, 0.0) ** 0.5
    if square > 0:
        return max((a * b - root) / square, 0.0), (a * b + root) / square
    if constant <= 0:
        return np.nan, np.nan
    return constant / (a * b + root), np.nan  # the baseline may be 0: no upper end
