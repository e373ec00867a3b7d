"""Plug-in total correlation: known answers, a slow count of the same, and its ceiling for QM9."""

import itertools
from collections import Counter

import numpy as np
import pytest

from pairflow import InputError
from pairflow.metrics import correlation
from pairflow.metrics.correlation import data_total_correlation, describe, total_correlation

LOG10 = np.log2(10)


def slow(samples) -> float:
    """The same for one source state, from dictionaries of counts."""

    def entropy(items):
        shares = np.array(list(Counter(items).values())) / len(samples)
        return -(shares * np.log2(shares)).sum()

    return sum(entropy(column) for column in zip(*samples, strict=True)) - entropy(map(tuple, samples))


def test_fair_bits_equal_samples_and_a_single_position_have_none():
    samples = np.array(list(itertools.product([0, 1], repeat=4)), np.uint8)  # (16, 4)
    assert total_correlation(samples[None]) == pytest.approx([0], abs=1e-12)
    assert total_correlation(np.full((3, 10, 8), 7)).tolist() == [0, 0, 0]
    samples = np.random.default_rng(0).integers(0, 4, (50, 10, 1))
    assert total_correlation(samples) == pytest.approx(np.zeros(50), abs=1e-12)


def test_copies_of_a_position_have_its_entropy_once_for_each_copy():
    position = np.array([0, 0, 0, 0, 1, 1, 2, 3])  # 1.75 bits
    assert total_correlation(np.repeat(position[:, None], 5, axis=1)[None]) == pytest.approx([4 * 1.75])


def test_samples_that_differ_everywhere_are_at_the_bound_whatever_made_them():
    samples = np.arange(10)[:, None] + 10 * np.arange(32)  # (10, 32)
    assert total_correlation(samples[None]) == pytest.approx([31 * LOG10])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize(("count", "length", "symbols"), [(2, 1, 2), (5, 3, 2), (10, 4, 3), (13, 6, 200)])
def test_counted_one_by_one_it_is_the_same(dtype, count, length, symbols):
    samples = np.random.default_rng(count).integers(0, symbols, (30, count, length)).astype(dtype)
    expected = [slow(group.tolist()) for group in samples]
    np.testing.assert_allclose(total_correlation(samples), expected, atol=1e-12)


def test_the_order_of_samples_and_of_axes_in_memory_does_not_matter():
    samples = np.random.default_rng(0).integers(0, 3, (20, 6, 5))
    expected = total_correlation(samples)
    np.testing.assert_array_equal(total_correlation(samples[:, ::-1]), expected)
    np.testing.assert_array_equal(total_correlation(np.asfortranarray(samples)), expected)


def test_batches_put_together_are_the_whole(monkeypatch):
    samples = np.random.default_rng(0).integers(0, 3, (57, 10, 5), dtype=np.uint8)
    tokens = samples.reshape(-1, 5)
    whole, of_data = total_correlation(samples), data_total_correlation(tokens, 10, 57, seed=3)
    for size in (1, 10, 56):
        parts = [total_correlation(samples[first : first + size]) for first in range(0, 57, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(correlation, "_CHUNK", 7 * 10 * 5)
    np.testing.assert_array_equal(total_correlation(samples), whole)
    np.testing.assert_array_equal(data_total_correlation(tokens, 10, 57, seed=3), of_data)


def test_draws_from_the_data_are_independent_rows_by_the_seed():
    tokens = np.arange(1000)[:, None] + np.zeros(4, int)  # a row is its number, four times
    estimates = data_total_correlation(tokens, 10, 5000, seed=0)
    pairs = 45 / 1000  # expected number of equal pairs of draws: each costs 0.2 bits in every entropy
    assert estimates.mean() == pytest.approx(3 * (LOG10 - 0.2 * pairs), abs=0.01)
    np.testing.assert_array_equal(data_total_correlation(tokens, 10, 5000, seed=0), estimates)
    assert (data_total_correlation(tokens, 10, 5000, seed=1) != estimates).any()
    np.testing.assert_array_equal(data_total_correlation(tokens, 10, 20, seed=0), estimates[:20])


def test_a_summary_in_numbers():
    estimates = describe(np.array([1.0, 2.0, 3.0, 6.0]), np.array([4.0, 5.0]))
    expected = {"": 3.0, "_se": pytest.approx((14 / 3 / 4) ** 0.5), "_ceiling": 4.5}
    assert estimates == {f"total_correlation{name}": value for name, value in expected.items()}


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        (np.zeros((2, 3), int), r"int64 \(2, 3\)"),
        (np.zeros((2, 3, 4)), r"float64 \(2, 3, 4\)"),
        (np.zeros((2, 0, 4), int), r"int64 \(2, 0, 4\)"),
    ],
)
def test_what_are_no_samples(samples, found):
    with pytest.raises(InputError, match=rf"samples: expected integers \(.*\), found {found}"):
        total_correlation(samples)


@pytest.mark.data
def test_ten_qm9_molecules_show_what_the_paper_prints(qm9):
    """32.45 bits at ten samples a group, against the printed 31.87 and 30.72."""
    tokens = qm9.train
    estimates = data_total_correlation(tokens, 10, 20_000, seed=0)
    error = estimates.std() / len(estimates) ** 0.5
    assert error == pytest.approx(0.017, abs=0.001)
    assert estimates.mean() == pytest.approx(32.45, abs=2 * error)
    assert estimates.mean() == pytest.approx(32.475, abs=2 * error)  # of 600,000 groups
    shuffled = np.random.default_rng(0).permuted(tokens, axis=0)
    assert data_total_correlation(shuffled, 10, 20_000, seed=0).mean() == pytest.approx(32.475, abs=0.05)


def test_distinct_samples_have_the_entropy_log_r():
    samples = np.random.default_rng(0).integers(0, 2, (400, 10, 64))
    estimates = total_correlation(samples)
    marginals = [sum(slow(np.stack([x, x], 1)) for x in group.T) for group in samples[:5]]  # I(x; x) = H(x)
    assert estimates[:5] == pytest.approx(np.array(marginals) - LOG10)
    assert estimates.mean() > 50
