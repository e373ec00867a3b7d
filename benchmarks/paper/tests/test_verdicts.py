import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.paper.verdicts import Effect, Status, compare_effects, judge, margin, measure_effect
from pairflow.report.stats import Estimate


@pytest.mark.parametrize(
    ("variance", "std", "spread"),
    [(9.0, 2.0, 12.4), (9.0, math.nan, 12.0), (0.0, 1.0, 0.1), (0.0, math.nan, 0.0)],
)
def test_the_margin_by_hand_and_verdicts_at_its_border(variance, std, spread):
    measured = Estimate(0.0, variance, 3)  # at 0, so that the difference is the margin to the bit
    width = margin(measured, std)
    assert width == pytest.approx(4.3027 * math.sqrt(spread), rel=1e-4)
    for border, verdict in ((width, Status.LOWER), (-width, Status.HIGHER)):
        assert judge(measured, border, std) is Status.AGREES
        beyond = math.nextafter(border, math.inf if verdict is Status.LOWER else -math.inf)
        assert judge(measured, beyond, std) is verdict


def test_about_one_in_twenty_of_equal_trainings_does_not_agree():
    """The margin without a printed deviation is the prediction interval of one more training."""
    random = np.random.default_rng(0)
    drawn = random.normal(50, 3, (3000, 4))
    differ = [judge(Estimate(each[:3].mean(), each[:3].var(ddof=1), 3), each[3], math.nan) for each in drawn]
    share = np.mean([verdict is not Status.AGREES for verdict in differ])
    assert 0.035 < share < 0.065


def test_the_sign_of_an_effect_is_welchs_test():
    random = np.random.default_rng(1)
    for shift in np.linspace(-3, 3, 25):
        a, b = random.normal(20 + shift, 2, 10), random.normal(20, 1, 7)
        found = measure_effect(*(Estimate(x.mean(), x.var(ddof=1), len(x)) for x in (a, b)))
        decided = stats.ttest_ind(a, b, equal_var=False).pvalue < 0.05
        assert found.sign == (np.sign(a.mean() - b.mean()) if decided else 0)
        assert (found.low <= 1 <= found.high) == (not decided)
        assert found.low < found.ratio < found.high


def test_the_ends_of_the_interval_are_where_the_test_turns():
    a, b = Estimate(223.4, 12.7**2, 10), Estimate(17.5, 3.2**2, 10)
    found = measure_effect(a, b)
    freedom = (a.error + b.error) ** 2 / (a.error**2 / 9 + b.error**2 / 9)
    for ratio in (found.low, found.high):
        width = stats.t.ppf(0.975, freedom) * math.sqrt(a.error + ratio**2 * b.error)
        assert abs(a.mean - ratio * b.mean) == pytest.approx(width)


def test_a_baseline_that_may_be_nothing_leaves_the_ratio_open():
    found = measure_effect(Estimate(9.9, 2.3**2, 10), Estimate(0.3, 0.5**2, 10))
    assert found.sign == 1
    assert 10 < found.low < found.ratio
    assert math.isnan(found.high)


def test_the_border_of_an_effect_is_undecided():
    """Ten trials each of variance 5 are Welch's t of 18 degrees of freedom with a standard error of 1."""
    quantile = stats.t.ppf(0.975, 18)
    baseline = Estimate(0.0, 5.0, 10)
    for sign in (1, -1):
        assert measure_effect(Estimate(sign * quantile * (1 - 1e-6), 5.0, 10), baseline).sign == 0
        assert measure_effect(Estimate(sign * quantile * (1 + 1e-6), 5.0, 10), baseline).sign == sign


NOTHING = Estimate(0.0, 0.0, 10)
PRINTED = Estimate(340.47)  # without a deviation


@pytest.mark.parametrize(
    ("ours", "baseline", "sign", "ratio"),
    [
        (Estimate(math.nan), Estimate(5.0, 1.0, 10), 0, math.nan),
        (Estimate(5.0), Estimate(math.nan, 1.0, 10), 0, math.nan),
        (NOTHING, NOTHING, 0, math.nan),
        (Estimate(1.0, 0.0, 10), NOTHING, 1, math.nan),
        (Estimate(9.9, 2.3**2, 10), NOTHING, 1, math.nan),
        (Estimate(0.3, 0.5**2, 10), Estimate(0.2, 0.5**2, 10), 0, 1.5),
        (Estimate(269.87), PRINTED, 0, 0.7926),
        (Estimate(10.0, 1.0, 10), PRINTED, 0, 0.0294),  # only one side has a spread
        (Estimate(10.0, 1e-9, 2), Estimate(20.0, 1e-9, 10), 0, 0.5),  # two observations are no test
    ],
)
def test_effects_without_an_interval(ours, baseline, sign, ratio):
    found = measure_effect(ours, baseline)
    assert (found.sign, found.ratio) == (sign, pytest.approx(ratio, abs=1e-4, nan_ok=True))
    assert math.isnan(found.low)


def test_a_single_printed_value_is_exact():
    assert measure_effect(Estimate(269.87), PRINTED, as_printed=True).sign == -1
    assert measure_effect(PRINTED, PRINTED, as_printed=True).sign == 0


def test_comparisons():
    expected = {(1, 1): "same sign", (-1, -1): "same sign", (1, -1): "opposite"}
    expected |= dict.fromkeys([(0, 1), (-1, 0), (0, 0)], "undecided")
    assert {(a, b): compare_effects(Effect(a, 1.0), Effect(b, 1.0)) for a, b in expected} == expected
