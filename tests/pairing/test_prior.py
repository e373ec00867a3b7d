"""Noise by frequency: its law, and the rows that are drawn from it."""

import numpy as np

from pairflow import rng
from pairflow.pairing.cpu.numbers import tokens_by_frequency
from pairflow.pairing.prior import frequencies

TOKENS = np.array([[0, 1], [0, 2], [2, 2], [0, 2]], np.uint8)


def test_frequencies_are_shares_at_each_position_with_one_per_cent_of_uniform_noise():
    shares = np.array([[3, 0, 1], [0, 1, 3]]) / 4
    np.testing.assert_allclose(frequencies(TOKENS, 3), 0.99 * shares + 0.01 / 3, rtol=1e-15)


def test_rows_are_drawn_by_the_inverse_of_the_cumulative_frequencies():
    pi, numbers = frequencies(TOKENS, 3), np.arange(10_000)
    rows = tokens_by_frequency(7, numbers, pi)
    u = rng.draws(7, numbers, 0, 2)[0]
    assert np.array_equal(rows, (u[..., None] >= pi.cumsum(axis=1)[:, :-1]).sum(axis=2))
    shares = [np.bincount(column, minlength=3) / len(rows) for column in rows.T]
    assert np.abs(np.array(shares) - pi).max() < 0.015
    assert np.array_equal(tokens_by_frequency(7, numbers[42:44], pi), rows[42:44])
