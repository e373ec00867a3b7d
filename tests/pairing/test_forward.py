"""The forward walk against the closed-form denoiser, and its coverage of the data."""

import itertools

import numpy as np
import pytest

from pairflow.pairing import closed_form_denoiser, forward


def law_of_the_walk(data, vocabulary_size, steps):
    """Probability of every end state, by carrying all states through the exact transitions."""
    length = data.shape[1]
    states = np.array(list(itertools.product(range(vocabulary_size), repeat=length)))
    probability = np.full(len(states), 1 / len(states))
    for step in range(steps):
        p1 = closed_form_denoiser(states, data, step / steps, vocabulary_size=vocabulary_size)  # (S, N, K)
        jump = 1 / (steps - step)
        stay = np.eye(vocabulary_size)[states]
        moved = (1 - jump) * stay + jump * p1
        transition = np.prod([moved[:, i, states[:, i]] for i in range(length)], axis=0)  # (S, S)
        probability = probability @ transition
    return states, probability


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_samples_follow_the_exact_law(steps):
    data = np.array([[0, 1], [2, 2], [1, 0], [2, 2]])
    states, expected = law_of_the_walk(data, 3, steps)
    count = 60_000
    actual = forward.sample(data, count, vocabulary_size=3, steps=steps, seed=0, threads=1, progress=False)
    share = np.array([(actual == state).all(axis=1).mean() for state in states])
    assert (np.abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / count) + 1e-9).all()


def test_the_result_depends_on_neither_threads_nor_blocks(monkeypatch):
    data = np.random.default_rng(0).integers(0, 5, (50, 6))
    options = {"vocabulary_size": 5, "steps": 8, "seed": 3, "progress": False}
    whole = forward.sample(data, 70, threads=1, **options)
    monkeypatch.setattr(forward, "_BLOCK", 1)
    assert np.array_equal(forward.sample(data, 70, threads=2, **options), whole)
    assert np.array_equal(forward.sample(data, 30, first=40, **options), whole[40:])
    assert not np.array_equal(forward.sample(data, 70, threads=2, **{**options, "seed": 4}), whole)


def test_coverage_counts_distinct_data_points():
    data = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    samples = np.array([[0, 0], [0, 0], [1, 1], [2, 2]])
    expected = {"unique_reached": 2.0, "coverage": 0.5, "coverage_predicted": 1 - 0.75**4}
    assert forward.coverage(samples, data) == expected


def test_distant_data_is_covered_like_independent_draws():
    """1 - (1 - 1/M)^M, 63.2 %, within four standard errors of the occupancy problem."""
    rows = 2000
    data = np.random.default_rng(1).integers(0, 20, (rows, 24))
    samples = forward.sample(data, rows, vocabulary_size=20, steps=20, seed=0, progress=False)
    actual = forward.coverage(samples, data)
    spread = np.sqrt(np.exp(-1) * (1 - 2 * np.exp(-1)) / rows)
    assert actual["coverage"] == pytest.approx(actual["coverage_predicted"], abs=4 * spread)
