"""Known answers, worked out by hand or taken from the literature."""

import numpy as np
import pandas as pd
import pytest

from pairflow.report.stats import Over, adjust, difference, estimate, group_by_seed, holm

NAN = np.nan
# Student (1908), The probable error of a mean: hours of sleep gained by ten patients under two drugs.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def seeds(means, first=0):
    """One trial per seed."""
    return {first + seed: {0: value} for seed, value in enumerate(means)}


def test_the_interval_of_three_seeds():
    """Means 2, 6, 10 deviate by 4, and t(0.975, 2) is 4.302653: 6 -+ 4.302653 x 4 / sqrt(3)."""
    found = estimate({0: {0: 1, 1: 3}, 1: {0: 4, 1: 8}, 2: {0: 10, 1: 10}})
    assert (found.mean, found.between, found.over, found.count) == (6.0, 4.0, Over.SEEDS, 3)
    assert (found.seeds, found.trials) == (3, 6)
    assert found.within == pytest.approx(np.sqrt((2 + 8 + 0) / 3))
    half = 4.302652729911275 * 4 / np.sqrt(3)
    assert found.interval == pytest.approx((6 - half, 6 + half))


def test_of_one_seed_the_interval_is_over_its_trials_and_says_so():
    """Of 1, 2, 3: 2 -+ 4.302653 / sqrt(3)."""
    found = estimate({7: {0: 1, 1: 2, 2: 3}})
    assert (found.mean, found.within, found.over, found.count, found.seeds) == (2.0, 1.0, Over.TRIALS, 3, 1)
    assert np.isnan(found.between)
    assert found.std == found.within
    assert found.interval[1] - 2 == pytest.approx(4.302652729911275 / np.sqrt(3))


def test_seeds_count_alike_and_a_single_value_has_no_interval():
    found = estimate({0: {0: 1, 1: 1, 2: 1, 3: 1}, 1: {0: 3}})
    assert (found.mean, found.between, found.within) == (2.0, pytest.approx(np.sqrt(2)), 0.0)
    found = estimate({0: {-1: 5.0}})
    assert (found.mean, found.over, found.count) == (5.0, Over.TRIALS, 1)
    assert np.isnan([*found.interval, found.std, found.between, found.within]).all()


def test_paired_over_seeds_is_students_own_example():
    """Published: mean 1.58, t = 4.0621, 9 degrees of freedom, p = 0.002833, 0.7001 to 2.4599."""
    found = difference(seeds(SECOND), seeds(FIRST))
    assert (found.test, found.over, found.n, found.freedom) == ("paired t", Over.SEEDS, 10, 9)
    assert found.value == pytest.approx(1.58)
    assert found.statistic == pytest.approx(4.0621, abs=5e-5)
    assert found.p == pytest.approx(0.002833, abs=5e-7)
    assert (found.low, found.high) == pytest.approx((0.7001142, 2.4598858), abs=1e-6)


def test_without_shared_seeds_welch_on_the_same_numbers():
    """Published for the two drugs as unpaired: t = 1.8608, 17.776 degrees of freedom, p = 0.07939."""
    found = difference(seeds(SECOND), seeds(FIRST, first=100))
    assert (found.test, found.over, found.n, found.n_baseline) == ("Welch", Over.SEEDS, 10, 10)
    assert found.statistic == pytest.approx(1.8608, abs=5e-5)
    assert found.freedom == pytest.approx(17.776, abs=5e-4)
    assert found.p == pytest.approx(0.07939, abs=5e-6)


@pytest.mark.parametrize(
    ("ours", "baseline", "test", "over", "n", "value"),
    [
        # one shared seed of several is no pair
        (seeds([1, 2, 4]), seeds([3, 5, 8], first=2), "Welch", Over.SEEDS, 3, -3.0),
        # seeds 1, 2 and 3 are shared: differences 1, 3 and 2
        ({0: {0: 100}} | seeds([2, 6, 5], 1), seeds([1, 3, 3, -100], 1), "paired t", Over.SEEDS, 3, 2.0),
        # one seed: trials are paired by number, whatever their order
        ({0: {2: 13, 0: 11, 1: 12}}, {0: {0: 10, 1: 10, 2: 10}}, "paired t", Over.TRIALS, 3, 2.0),
        # trials of two seeds are never paired
        ({0: {0: 1, 1: 2, 2: 4}}, {1: {0: 3, 1: 5, 2: 8}}, "Welch", Over.TRIALS, 3, -3.0),
        # one seed against several: the trials of the seed that they share
        (
            {1: {0: 5, 1: 7, 2: 6}},
            {0: {0: 90, 1: 91}, 1: {0: 1, 1: 2, 2: 1.5}, 2: {0: 80, 1: 81}},
            *("paired t", Over.TRIALS, 3, 4.5),
        ),
    ],
)
def test_what_is_paired(ours, baseline, test, over, n, value):
    found = difference(ours, baseline)
    assert (found.test, found.over, found.n, found.value) == (test, over, n, pytest.approx(value))


@pytest.mark.parametrize(
    ("ours", "baseline", "value", "reason"),
    [
        ({9: {0: 5, 1: 7}}, {0: {0: 1}, 1: {0: 4}}, 3.5, "the single seed is not among the several"),
        ({0: {-1: 1}}, {1: {0: 2, 1: 3}}, -1.5, "a single value"),
        ({0: {0: 2, 1: 3}}, {0: {0: 1, 1: 2}}, 1.0, "no spread"),
        ({0: {0: 0.3}, 1: {0: 0.1}}, {0: {0: 0.3}, 1: {0: 0.1}}, 0.0, "no spread"),
        ({0: {0: 0.1 + 0.2}, 1: {0: 0.7}}, {0: {0: 0.3}, 1: {0: 0.7}}, pytest.approx(0), "no spread"),
        # however small the spread: of two trials, differences of 10 and 10.001 had p below 0.0001
        (seeds([1, 3]), seeds([2, 7]), -2.5, "only 2 seeds, and a test needs 3"),
        (seeds([1, 3, 5]), seeds([2, 7], first=5), -1.5, "only 2 seeds, and a test needs 3"),
        ({0: {0: 1, 1: 3}}, {1: {0: 2, 1: 7, 2: 9}}, -4.0, "only 2 trials, and a test needs 3"),
    ],
)
def test_what_cannot_be_tested_says_why(ours, baseline, value, reason):
    found = difference(ours, baseline)
    assert (found.test, found.value, found.reason) == ("", value, reason)
    assert np.isnan([found.low, found.high, found.p]).all()
    [adjusted] = adjust([found])
    assert (adjusted.decided, adjusted.undecided) == (False, False)


def test_the_other_way_round_only_signs_flip():
    random = np.random.default_rng(0)
    for _ in range(50):
        sides = [
            {
                int(seed): {trial: random.normal() for trial in range(random.integers(1, 4))}
                for seed in random.choice(4, random.integers(1, 4), replace=False)
            }
            for _ in range(2)
        ]
        one, other = difference(*sides), difference(*reversed(sides))
        assert (one.test, one.over, one.reason) == (other.test, other.over, other.reason)
        assert (one.n, one.n_baseline) == (other.n_baseline, other.n)
        ours = [one.value, one.low, one.high, one.statistic, one.p]
        theirs = [-other.value, -other.high, -other.low, -other.statistic, other.p]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_holm():
    """Of 0.01, 0.04, 0.03: 3 x 0.01, 2 x 0.03, and 1 x 0.04 no less than that; NaN is no test."""
    assert holm([0.01, NAN, 0.04, 0.03]) == pytest.approx([0.03, NAN, 0.06, 0.06], nan_ok=True)
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def observed(values: list[float], of_seeds: list[int] | None = None):
    """Values by seed, from rows like those of metrics.parquet."""
    return group_by_seed(pd.DataFrame({"value": values, "seed": of_seeds or [0] * len(values)}))


def test_rows_are_grouped_by_seed_and_nan_is_no_observation():
    assert observed([1, 3, 4, NAN, 6], [0, 0, 1, 1, 2]) == {0: {0: 1, 1: 3}, 1: {2: 4}, 2: {3: 6}}
    assert observed([NAN, NAN]) == {}


def test_a_difference_is_decided_after_holm_over_its_table():
    """Paired over four trials: a mean of 2 with standard error 0.577 has t = 3.46 and p = 0.041, twice."""
    baseline = {0: {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}}
    gains = ((1, 1, 3, 3), (3, 3, 1, 1), (8, 8, 10, 10))
    cells = [difference({0: {i: i + 1.0 + gain for i, gain in enumerate(own)}}, baseline) for own in gains]
    assert [cell.p for cell in cells] == pytest.approx([0.0405193, 0.0405193, 0.00057367], rel=1e-5)
    adjusted = adjust(cells)
    assert [cell.adjusted for cell in adjusted] == pytest.approx([0.0810386, 0.0810386, 0.00172102], rel=1e-5)
    assert [cell.decided for cell in adjusted] == [False, False, True]
    assert [cell.decided for cell in adjust(cells[:1])] == [True]
    # Two are undecided, so that one more needs p = 0.05 / 2: t(0.9875, 3) = 4.17653 standard errors.
    assert adjusted[0].visible == pytest.approx(4.17653 * 3**-0.5, rel=1e-5)
    for factor in (0.999, 1.001):
        shift = factor * adjusted[0].visible - adjusted[0].value
        moved = {0: {i: i + 1.0 + gain + shift for i, gain in enumerate(gains[0])}}
        assert adjust([difference(moved, baseline), *cells[1:]])[0].decided == (factor > 1)


def test_without_a_test_nothing_is_decided_and_no_family_grows():
    single = difference({0: {0: 1.0}}, {0: {0: 5.0}})
    tested = difference(seeds(SECOND), seeds(FIRST))
    cell, *others = adjust([single, tested, tested])
    assert (cell.decided, cell.undecided, cell.reason) == (False, False, "a single value")
    assert np.isnan(cell.visible)
    assert [other.family for other in others] == [2, 2]
    assert tested.base == pytest.approx(0.75)
