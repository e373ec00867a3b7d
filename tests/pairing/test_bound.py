"""The bound on the distance of any coupling: known values, and the best coupling of small data."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from pairflow.pairing.bound import independent_distance, least_distance


@pytest.mark.parametrize(
    ("rows", "length", "size", "share"),
    [  # QM9, ZINC-250k, MNIST-Binary and CIFAR-10, as shares of the distance of independent sources
        (127_190, 32, 40, 0.774),
        (224_568, 74, 72, 0.889),
        (60_000, 784, 2, 0.833),
        (100_000, 3072, 256, 0.993),
    ],
)
def test_the_bound_of_the_papers_data(rows, length, size, share):
    least = least_distance(rows, length, size) / independent_distance(length, size)
    assert least == pytest.approx(share, abs=0.002)


@pytest.mark.parametrize(("length", "size"), [(4, 2), (3, 4), (784, 2)])
def test_the_bound_of_one_row_and_of_all_rows(length, size):
    assert least_distance(1, length, size) == independent_distance(length, size)
    if size**length < 1e6:
        assert least_distance(size**length, length, size) == pytest.approx(0, abs=1e-9)
    bounds = [least_distance(rows, length, size) for rows in (1, 2, 3, 10, 16)]
    assert bounds == sorted(bounds, reverse=True)


def test_a_binary_symbol_in_closed_form():
    """For K = 2 the bound is D with log 2 - H_b(D) = log(M) / N: H_b(0.11) is half a bit to within 0.1 %."""
    assert least_distance(2**8, 16, 2) == pytest.approx(16 * 0.11, abs=0.005)


@pytest.mark.parametrize("seed", range(4))
def test_no_coupling_is_nearer_than_the_bound(seed):
    """All 3^6 sources against 9 rows of equal weight: the cheapest of all couplings is still above it."""
    rows = np.random.default_rng(seed).integers(0, 3, (9, 6), np.uint8)
    sources = np.array([*itertools.product(range(3), repeat=6)], np.uint8)
    targets = rows.repeat(len(sources) // 9, axis=0)
    costs = (sources[:, None] != targets).sum(2)
    cheapest = costs[linear_sum_assignment(costs)].mean()
    assert least_distance(9, 6, 3) <= cheapest < independent_distance(6, 3)
