"""Continuous pairing: the closed-form velocity, the walks along it, and the public function's contracts."""

import itertools
import re

import numpy as np
import pytest
import torch
from scipy.stats import chi2, norm

import pairflow
from pairflow.pairing import continuous
from pairflow.pairing.continuous import empirical_velocity


def pair(data, **settings):
    return pairflow.pair_continuous(data, **{"device": "cpu", "progress": False, **settings})


def points(rows, *shape, seed=0):
    """Points on a curve in space, with a little noise: some are near to one another."""
    generator = np.random.default_rng(seed)
    size = int(np.prod(shape))
    angles = generator.uniform(0, 3, (rows, 1)) * np.arange(1, size + 1)
    return (np.sin(angles) + 0.05 * generator.normal(size=(rows, size))).reshape(rows, *shape)


def same(first, second):
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("t", [0.2, 0.5, 0.8])
def test_the_velocity_moves_the_probability_of_two_points(t):
    """The flow p v through x is what the probability to the left of x loses: v = -(dF/dt) / (dF/dx).

    F_t(x) is the mean over the data of P(x0 <= (x - t d) / (1 - t)). Its derivatives are taken numerically.
    """
    data, x, h = np.array([[-1.0], [2.0]]), np.linspace(-2, 3, 11), 1e-5

    def left(x, t):
        return norm.cdf((x[:, None] - t * data.T) / (1 - t)).mean(axis=1)

    flow = -(left(x, t + h) - left(x, t - h)) / (left(x + h, t) - left(x - h, t))
    np.testing.assert_allclose(empirical_velocity(x[:, None], data, t)[:, 0], flow, rtol=1e-5, atol=1e-7)


def test_at_first_the_velocity_leads_to_the_mean_of_the_data():
    x, data = points(5, 3), points(20, 3, seed=1)
    np.testing.assert_allclose(empirical_velocity(x, data, 0), data.mean(axis=0) - x, rtol=1e-12)


def test_a_single_data_point_draws_straight_lines():
    data, x0 = np.array([[3.0, -1.0]]), points(4, 2)
    for t in (0, 0.3, 0.99):
        np.testing.assert_allclose(empirical_velocity((1 - t) * x0 + t * data, data, t), data - x0, rtol=1e-9)
    one = pair(data)
    assert one.x1.tolist() == data.tolist()
    assert (one.target.tolist(), one.moved.tolist()) == ([0], [0])


def test_the_walk_carries_the_normal_distribution_onto_two_points():
    """300 rows at one point and 700 at another draw 30 % and 70 % of the sources, chi-square at p = 0.001."""
    data = np.repeat([[-1.0], [1.5]], [300, 700], axis=0)
    reached = np.array([np.isclose(pair(data, seed=3).x1, point).sum() for point in data[[0, -1]]])
    assert ((reached - [300, 700]) ** 2 / [300, 700]).sum() < chi2.isf(0.001, df=1)


@pytest.mark.parametrize("size", [2, 80])
def test_the_walks_are_those_of_the_velocity_in_float64(size):
    data, steps = points(300, size), 20
    coupled, rows = pair(data, steps=steps, seed=5), slice(90, 120)
    x = coupled.x0[rows].astype(np.float64)
    for step in range(steps):
        before, x = x, x + empirical_velocity(x, data, step / steps) / steps
    t = 1 - 1 / steps
    nearest = ((before[:, None] - t * data) ** 2).sum(axis=2).argmin(axis=1)
    assert coupled.target[rows].tolist() == nearest.tolist()
    moved = np.linalg.norm(x - data[nearest], axis=1)
    np.testing.assert_allclose(coupled.moved[rows], moved, atol=1e-5)


def test_a_walk_whose_end_is_certain_would_end_there(monkeypatch):
    data = points(400, 6)
    coupled = pair(data, seed=1)
    monkeypatch.setattr(continuous, "_CERTAIN", 2.0)  # every walk takes all its steps
    walked = pair(data, seed=1)
    assert np.array_equal(coupled.target, walked.target)
    np.testing.assert_allclose(coupled.moved, walked.moved, atol=1e-5)


def test_the_coupling_costs_less_than_the_independent_one_and_reaches_most_points():
    """As many sources as points, each point with its own share: 1 - 1/e of the points are reached."""
    data = points(1000, 2)
    coupled = pair(data, steps=50)
    cost = ((coupled.x1 - coupled.x0) ** 2).sum(axis=1).mean()
    independent = ((data - coupled.x0) ** 2).sum(axis=1).mean()
    assert cost < independent / 2
    reached = len(np.unique(coupled.target)) / len(data)
    assert reached == pytest.approx(1 - 1 / np.e, abs=0.03)  # three standard deviations


def test_the_sources_are_normal():
    x0 = pair(points(2000, 3), steps=1).x0
    assert abs(norm.cdf(x0).mean() - 0.5) < 0.02
    np.testing.assert_allclose(np.cov(x0.T), np.eye(3), atol=0.12)


def test_shifted_and_constant_coordinates_leave_the_pairs_as_they_are():
    data = points(200, 2)
    shifted = np.stack([data[:, 0] + 1000, np.full(200, 7.0), data[:, 1] - 500], axis=1)
    plain, moved = pair(data, seed=4), pair(shifted, seed=4)
    # The sources have one coordinate more, and so differ: walk the same ones.
    field = continuous._Field(torch.from_numpy(data - data.mean(axis=0)).float(), 100, torch.device("cpu"))
    target, _ = field.integrate(torch.from_numpy(np.ascontiguousarray(moved.x0[:, [0, 2]])))
    assert np.array_equal(moved.target, target)
    assert np.array_equal(moved.x1, shifted[moved.target].astype(np.float32))
    assert np.array_equal(plain.x1, data[plain.target].astype(np.float32))


def test_images_keep_their_shape_and_any_float_is_taken():
    data = points(70, 2, 3, 4)
    coupled = pair(data.astype(np.float32))
    assert coupled.x0.shape == coupled.x1.shape == (70, 2, 3, 4)
    assert (coupled.x0.dtype, coupled.x1.dtype) == (np.float32, np.float32)
    assert (coupled.target.dtype, coupled.moved.dtype) == (np.int64, np.float32)
    assert same(coupled, pair(data.astype(np.float32).reshape(70, 24)))
    assert pair(data.astype(np.float16)).x1.dtype == np.float32


@pytest.mark.parametrize("size", [2, 100])
def test_shards_give_the_same_bytes_as_the_whole(size):
    data = points(203, size)
    whole = pair(data, steps=10, seed=9)
    edges = [0, 1, 64, 150, 203]
    shards = [pair(data, steps=10, seed=9, rows=rows) for rows in itertools.pairwise(edges)]
    assert same(whole, [np.concatenate(parts) for parts in zip(*shards, strict=True)])


@pytest.mark.gpu
@pytest.mark.parametrize("size", [2, 100])
def test_a_gpu_pairs_as_a_cpu_and_its_shards_are_slices(size):
    """Sources are the same; of 300 walks a few, which stand between two points, may differ."""
    data = points(300, size)
    on_cpu, on_gpu = pair(data, seed=2), pair(data, seed=2, device="cuda")
    assert np.array_equal(on_cpu.x0, on_gpu.x0)
    assert np.count_nonzero(on_cpu.target != on_gpu.target) <= 3
    shards = [pair(data, seed=2, device="cuda", rows=rows) for rows in ((0, 99), (99, 300))]
    assert same(on_gpu, [np.concatenate(parts) for parts in zip(*shards, strict=True)])


GOOD = [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (GOOD, {"x": [[0.0]], "t": 0.5}, "x, data: expected"),
        (GOOD, {"x": GOOD, "t": 1}, "t: expected a"),
        ([[0, 1]], {}, "data: expected a floating-point dtype, found int64"),
        ([0.5, 1.0], {}, "data: expected an array (rows, ...), found 1 dimension(s)"),
        ([[0.0, 1.0], [np.nan, 2.0]], {}, "data: row 1, position 0: expected a finite number of"),
        ([[1e13]], {}, "data: row 0, position 0: expected a finite number of at most 1e+12, found 1000"),
        (np.ma.masked_less(GOOD, np.inf), {}, "data: expected an array without masked values, found"),
        (GOOD, {"steps": 0}, "steps: expected an integer in 1..100000, found 0"),
        (GOOD, {"rows": (1, 3)}, "rows: expected 0 <= first < last <= 2, found 1 and 3"),
        (GOOD, {"device": "gpu"}, 'device: expected "auto", "cpu" or "cuda", found \'gpu\''),
    ],
)
def test_bad_input(data, settings, message):
    """Of the velocity, if there is a time, and of the pairing."""
    with pytest.raises(pairflow.InputError, match=f"^{re.escape(message)}"):
        (empirical_velocity if "t" in settings else pair)(data=data, **settings)


def test_a_gpu_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(pairflow.InputError, match=r"^device: torch sees no CUDA device$"):
        pair(GOOD, device="cuda")


def test_the_velocity_is_the_mean_of_x1_less_x0_by_numerical_integration():
    """E[x1 - x0 | x_t = x] of two points: x0 on a fine grid, weighed by a narrow bell around x_t = x."""
    data, t, x, width = np.array([-1.0, 2.0]), 0.4, 0.3, 1e-3
    x0 = np.linspace(-8, 8, 1_600_001)[:, None]
    density = norm.pdf(x0) * norm.pdf((1 - t) * x0 + t * data, loc=x, scale=width)
    expected = (density * (data - x0)).sum() / density.sum()
    assert empirical_velocity([[x]], data[:, None], t)[0, 0] == pytest.approx(expected, rel=1e-5)
