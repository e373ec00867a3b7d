"""Semidiscrete transport of points: the law, the balance, and the cheapest coupling where it is known."""

import numpy as np
import pytest
from scipy.stats import chisquare

import pairflow
from pairflow import rng
from pairflow.pairing.posterior import UNITS
from pairflow.pairing.spaces import PointPosterior


def points(rows, length, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, length)).astype(np.float32) * 1.5 + 3


def test_draws_and_entropies_follow_the_definition():
    """P(m | z) is proportional to exp((g_m - |z - d_m|^2 / 2) / tau), g_m by the guess and the units."""
    data, tau, draws = points(7, 3), 0.8, 40_000
    centred = (data - data.mean(axis=0)).astype(np.float32)
    buckets = np.array([0, 1, 2, 3, 0, 1, 2])
    law = PointPosterior(centred, buckets, tau, "cpu")
    source = np.array([[0.3, -1.0, 0.5]], np.float32)
    drawn, [entropy] = law.draw(source, np.array([5]), 1, draws=draws)
    guess = law.offsets.numpy().astype(float) + buckets / UNITS
    potentials = tau * (guess - buckets / UNITS) + (centred.astype(float) ** 2).sum(axis=1) / 2
    logits = (potentials - ((source - centred) ** 2).sum(axis=1) / 2) / tau
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    assert chisquare(np.bincount(drawn[0], minlength=7), shares * draws).pvalue > 1e-3
    assert entropy == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-4)


@pytest.fixture(scope="module")
def small():
    """A coupling of 60 points of two shapes, whose shift does not matter."""
    data = points(60, 4).reshape(60, 2, 2)
    return pairflow.transport_continuous(data, tau=0.5, progress=False)


def test_all_points_are_equally_likely(small):
    hits = np.bincount(small.rows(rng.normals(3, np.arange(60_000), 4), np.arange(60_000)), minlength=60)
    assert small.balance.reached
    assert hits.min() > 650
    assert hits.max() < 1450


def test_pairs_are_a_function_of_their_numbers(small):
    x0, x1 = small.draw(30)
    later = small.draw(10, first=20)
    assert x0.shape == x1.shape == (30, 2, 2)
    np.testing.assert_array_equal(x0[20:], later[0])
    np.testing.assert_array_equal(x1[20:], later[1])


def test_distance_and_information_are_those_of_the_draws(small):
    x0, x1 = small.draw(100_000)
    squares = ((x0 - x1) ** 2).sum(axis=(1, 2))
    assert squares.mean() == pytest.approx(small.balance.distance, rel=0.01)
    assert 0 < small.balance.information < np.log(60)


def test_two_points_share_the_line_at_the_mean():
    """The cheapest coupling of N(0, 1) with two points of equal mass cuts the line at 0."""
    data = np.array([[2.0], [5.0]])
    near = pairflow.transport_continuous(data, tau=0.01, progress=False)
    sources = np.array([[-2.0], [-0.2], [0.2], [2.0]])
    np.testing.assert_array_equal(near.rows(sources, np.arange(4)), [0, 0, 1, 1])
    mean = np.sqrt(2 / np.pi)  # of |z|
    expected = 1 + (4 + 25) / 2 - 2 * (5 - 2) * mean / 2
    assert near.balance.distance == pytest.approx(expected, rel=0.01)


def test_a_high_temperature_makes_both_independent():
    data = points(50, 3)
    far = pairflow.transport_continuous(data, tau=100, progress=False)
    centre = (data.astype(float) ** 2).sum(axis=1).mean() + 3
    assert far.balance.distance == pytest.approx(centre, rel=0.02)
    assert far.balance.information == pytest.approx(0, abs=0.01)


def test_a_source_for_each_point_is_one_that_goes_there(small):
    x0 = small.sources()
    assert x0.shape == (60, 2, 2)
    independent = rng.normals(9, np.arange(60), 4).reshape(60, 2, 2)
    apart = ((small.data - independent) ** 2).sum()
    assert ((small.data - x0) ** 2).sum() < 0.95 * apart
