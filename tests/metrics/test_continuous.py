"""Distances between samples of points, by hand and in closed form."""

import re

import numpy as np
import pytest

from pairflow.errors import InputError
from pairflow.metrics import continuous
from pairflow.metrics.continuous import chamfer, wasserstein


def test_the_chamfer_distance_by_hand():
    """From 0 and 3 to 1: (1 + 4) / 2. From 1 to 0: 1."""
    assert chamfer([[0.0], [3.0]], [[1.0]]) == 3.5
    assert chamfer([[0.0, 0.0]], [[3.0, 4.0]]) == 50.0
    points = np.random.default_rng(0).normal(size=(20, 3))
    assert chamfer(points, points[::-1]) == 0


@pytest.mark.parametrize("size", [2, 12])
def test_the_chamfer_distance_of_many_points_is_the_brute_force_one(size, monkeypatch):
    monkeypatch.setattr(continuous, "_CHUNK", 100)
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(50, size)), generator.normal(size=(30, size))
    squares = ((a[:, None] - b) ** 2).sum(axis=2)
    assert chamfer(a, b) == pytest.approx(squares.min(axis=1).mean() + squares.min(axis=0).mean())


def test_the_wasserstein_distance_of_sorted_numbers_is_that_of_their_ranks():
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 40, 1))
    expected = np.sqrt(((np.sort(a, axis=0) - np.sort(b, axis=0)) ** 2).mean())
    assert wasserstein(a, b) == pytest.approx(expected)


def test_the_wasserstein_distance_of_a_shift_is_its_length():
    points = np.random.default_rng(0).normal(size=(30, 2))
    assert wasserstein(points, points[::-1] + np.array([3, 4])) == pytest.approx(5)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([[0.0]], [[0.0], [1.0]], "a, b: expected samples of one size, found 1 and 2 rows"),
        ([[0.0]], [[0.0, 1.0]], "a, b: expected two arrays (rows, d) of one d, found shapes"),
        ([[0.0]], [[np.nan]], "b: row 0, position 0: expected a finite number of at most 1e+12, found nan"),
    ],
)
def test_samples_that_do_not_fit_are_refused(a, b, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        wasserstein(a, b)
