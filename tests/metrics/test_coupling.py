import math

import numpy as np
import pytest

from pairflow import InputError
from pairflow.metrics.coupling import diagnose, hamming_histogram, nearest_distance


def test_the_independent_distance_is_the_mean_over_uniform_pairs():
    x0, x1 = np.random.default_rng(0).integers(0, 5, (2, 20000, 8))
    diagnostics = diagnose(x0, x1, 5)
    assert diagnostics["hamming_independent"] == 6.4
    assert diagnostics["hamming_mean"] == pytest.approx(6.4, abs=0.05)


def test_the_nearest_of_two_opposite_rows():
    """Of 10 bits, B differ from the one row and 10 - B from the other: E min(B, 10 - B), B ~ Bin(10, 1/2)."""
    rows = np.array([[0] * 10, [1] * 10], np.uint8)
    expected = sum(min(b, 10 - b) * math.comb(10, b) for b in range(11)) / 2**10
    assert nearest_distance(rows, 2) == pytest.approx(expected, abs=0.25)


def test_noise_by_frequency_takes_the_place_of_uniform_noise():
    """Half of the rows are zeros, half are ones, which is also what sources are, but for a tenth at 0."""
    pi, x1 = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0, 0], [1, 1]] * 20_000, np.uint8)
    x0 = (np.random.default_rng(0).random(x1.shape) >= pi[:, 0]).astype(np.uint8)
    values = diagnose(x0, x1, 2, pi)
    assert values["hamming_independent"] == pytest.approx(1.0)
    assert values["hamming_mean"] == pytest.approx(1.0, abs=0.02)
    assert values["hamming_nearest"] == pytest.approx(0.5, abs=0.15)  # both positions equal or not
    assert values["symbol_deviation"] < 5 * values["symbol_deviation_expected"] < 0.01
    equal, uniform = diagnose(x0, x1, 2, np.full((2, 2), 0.5)), diagnose(x0, x1, 2)
    for name in ("hamming_independent", "symbol_deviation", "symbol_deviation_expected"):
        assert equal[name] == pytest.approx(uniform[name], rel=1e-12)


def test_shapes_that_do_not_fit():
    with pytest.raises(InputError, match=r"x0, x1: expected one shape .*, found \(2, 3\) and \(2, 4\)"):
        hamming_histogram(np.zeros((2, 3), int), np.zeros((2, 4), int))


def test_a_coupling_in_numbers():
    x1 = np.zeros((4, 2), np.uint8)
    x0 = np.array([[0, 0], [0, 1], [1, 1], [1, 1]], np.uint8)
    diagnostics = diagnose(x0, x1, 2)
    assert diagnostics["hamming_mean"] == pytest.approx(1.25)
    assert diagnostics["hamming_std"] == pytest.approx(np.sqrt(11 / 16))
    assert diagnostics["hamming_independent"] == 1.0
    assert [diagnostics[f"hamming_share_{d}"] for d in range(3)] == [0.25, 0.25, 0.5]
    assert diagnostics["symbol_deviation"] == pytest.approx(1 / 8)  # 3 zeros and 5 ones
    assert diagnostics["symbol_deviation_expected"] == pytest.approx(np.sqrt(1 / (16 * np.pi)))


def test_the_expected_deviation_is_that_of_uniform_symbols():
    rng = np.random.default_rng(0)
    x1 = np.zeros((2000, 10), np.uint8)
    diagnostics = [diagnose(rng.integers(0, 30, x1.shape), x1, 30) for _ in range(40)]
    deviations = np.array([values["symbol_deviation"] for values in diagnostics])
    expected, spread = diagnostics[0]["symbol_deviation_expected"], deviations.std() / np.sqrt(40)
    assert deviations.mean() == pytest.approx(expected, abs=4 * spread)


def test_hamming_histogram():
    x0 = np.array([[0, 1, 2], [0, 1, 2], [2, 2, 2]], dtype=np.uint8)
    x1 = np.array([[0, 1, 2], [0, 2, 1], [0, 0, 0]], dtype=np.uint8)
    assert hamming_histogram(x0, x1).tolist() == [1, 0, 1, 1]
