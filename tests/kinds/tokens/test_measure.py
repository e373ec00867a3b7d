"""Distances between sets of token rows: values that can be counted by hand, and against a plain loop."""

import numpy as np
import pytest

from pairflow.kinds.tokens.measure import nearest_hamming, ngram_distance, total_variation


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_the_nearest_row_is_found(dtype):
    random = np.random.default_rng(0)
    rows, data = (random.integers(0, 4, (count, 7)).astype(dtype) for count in (20, 50))
    expected = (rows[:, None] != data[None]).sum(axis=2).min(axis=1)
    assert nearest_hamming(rows, data).tolist() == expected.tolist()
    assert nearest_hamming(data, data).tolist() == [0] * 50


def test_total_variation_is_the_share_that_would_have_to_move():
    assert total_variation(np.array([0, 0, 1, 1]), np.array([0, 1])) == 0
    assert total_variation(np.array([0, 0, 0, 1]), np.array([0, 2])) == pytest.approx(0.5)
    assert total_variation(np.array([3]), np.array([65535 * 65536])) == 1


def test_bigrams_see_what_unigrams_do_not():
    """In both sets each symbol has half of each position; pairs of them agree only in the first."""
    same, other = np.array([[0, 0], [1, 1]]), np.array([[0, 1], [1, 0]])
    assert ngram_distance(same, other, 1) == 0
    assert ngram_distance(same, other, 2) == 1
    mixed = np.concatenate([same, other])
    assert ngram_distance(same, mixed, 2) == 0.5


def test_positions_are_compared_one_by_one():
    rows = np.array([[0, 1, 2]])
    assert ngram_distance(rows, rows[:, ::-1], 1) == pytest.approx(2 / 3)
    assert ngram_distance(rows, np.array([[0, 1, 0]]), 2) == 0.5
