"""Distances between sets of images against closed forms, pytorch-fid and brute force."""

import numpy as np
import pytest
import scipy.linalg

from pairflow.errors import InputError
from pairflow.kinds.images import measures as images
from pairflow.kinds.images.measures import inception_score, most_similar, nearest
from pairflow.metrics.frechet import Moments, frechet_distance


def gaussian(mean, covariance, count: int = 101) -> Moments:
    return Moments(count, np.asarray(mean, float), np.asarray(covariance, float) * (count - 1))


def features(rows: int, dimension: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Like a network's: not negative, correlated."""
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(rows, dimension)) @ draw.normal(size=(dimension, dimension))
    return np.maximum(values, 0) * scale


def test_moments_of_parts_add_up_to_those_of_the_whole():
    whole = features(103, 7) + 1e3
    parts = [whole[:0], whole[:1], whole[1:40], whole[40:41], whole[41:41], whole[41:]]
    added = sum((Moments.from_features(part) for part in parts[1:]), Moments.from_features(parts[0]))
    assert added.count == 103
    np.testing.assert_allclose(added.mean, whole.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(added.covariance, np.cov(whole, rowvar=False), rtol=1e-9)
    np.testing.assert_allclose(added.root @ added.root, added.covariance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        (([0, 0], np.eye(2)), ([3, 4], np.eye(2)), 25),  # of equal shape: the squared distance of the means
        (([1, 2], np.diag([1, 4])), ([1, 2], np.diag([9, 16])), 4 + 4),  # axes apart: (s1 - s2)^2 each
        (([0, 0], np.diag([1, 0])), ([0, 0], np.diag([0, 1])), 2),  # singular, nothing in common
        (([0, 0], np.zeros((2, 2))), ([0, 2], np.diag([5, 6])), 4 + 11),  # a point
        (([0, 0], [[2, 1], [1, 2]]), ([0, 0], [[2, -1], [-1, 2]]), 8 - 4 * 3**0.5),  # eigenvalues 3 and 1
    ],
)
def test_the_frechet_distance_of_known_gaussians(first, second, distance):
    one, other = gaussian(*first), gaussian(*second)
    assert frechet_distance(one, other) == pytest.approx(distance, abs=1e-6)
    assert frechet_distance(other, one) == pytest.approx(distance, abs=1e-6)
    assert frechet_distance(one, one) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("rows", [300, 40, 17])
def test_the_frechet_distance_is_pytorch_fids(rows, monkeypatch):
    """Also where the samples are fewer than the features. pytorch-fid passes `disp`, gone in SciPy 1.18."""
    from pytorch_fid import fid_score

    sqrtm = scipy.linalg.sqrtm
    monkeypatch.setattr(fid_score.linalg, "sqrtm", lambda product, disp: (sqrtm(product), 0.0))
    one = Moments.from_features(features(rows, 40))
    other = Moments.from_features(features(500, 40, seed=1, scale=1.2))
    expected = fid_score.calculate_frechet_distance(one.mean, one.covariance, other.mean, other.covariance)
    assert frechet_distance(one, other) == pytest.approx(expected, rel=1e-6)


def test_the_inception_score_of_constructed_probabilities():
    assert inception_score(np.full((40, 8), 1 / 8)) == pytest.approx(1)
    one_hot = np.tile(np.eye(4), (10, 1))  # every split holds each class once
    assert inception_score(one_hot) == pytest.approx(4)
    assert inception_score(np.repeat(np.eye(4), 10, axis=0), splits=1) == pytest.approx(4)
    assert inception_score(np.eye(4)[np.zeros(40, int)]) == pytest.approx(1)
    halves = np.array([[0.75, 0.25], [0.25, 0.75]])
    divergence = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert inception_score(np.tile(halves, (10, 1))) == pytest.approx(np.exp(divergence))
    by_class = np.repeat(np.eye(10), 10, axis=0)  # each of ten splits holds only one class
    assert inception_score(by_class) == pytest.approx(1)
    with pytest.raises(InputError, match="Inception Score: expected at least 10 samples, found 9"):
        inception_score(by_class[:9])


@pytest.mark.parametrize("symbols", [2, 256])
def test_the_nearest_row_is_that_of_brute_force(symbols, monkeypatch):
    """In several chunks of both; of equal distances the first row counts."""
    monkeypatch.setattr(images, "_SAMPLE_ROWS", 7)
    monkeypatch.setattr(images, "_DATA_ROWS", 16)
    draw = np.random.default_rng(0)
    data = draw.integers(0, symbols, (50, 12), dtype=np.uint8)
    data[40:] = data[:10]  # ties, in another chunk
    samples = np.concatenate([draw.integers(0, symbols, (20, 12), dtype=np.uint8), data[35:45]])
    squares = ((samples[:, None].astype(int) - data) ** 2).sum(-1)
    distance, index = nearest(samples, data)
    np.testing.assert_array_equal(index, squares.argmin(1))
    np.testing.assert_array_equal(distance, np.sqrt(squares.min(1)))
    assert (distance[20:] == 0).all()
    assert index[20:].tolist() == [*range(35, 40), *range(5)]


def test_distances_beyond_float32_are_exact():
    """Squared distances near 2^27, where float32 knows only multiples of 8, that differ by 399."""
    data = np.full((2, 3072), 200, dtype=np.uint8)
    data[1, 0] = 199
    distance, index = nearest(np.zeros((1, 3072), dtype=np.uint8), data)
    assert (index.tolist(), round(distance[0] ** 2)) == ([1], 3072 * 200**2 - 399)


def test_the_most_similar_row_is_that_of_brute_force(monkeypatch, float32_error):
    monkeypatch.setattr(images, "_SAMPLE_ROWS", 7)
    data, samples = features(30, 6), features(20, 6, seed=1, scale=5)
    lengths = np.linalg.norm(samples, axis=1)[:, None] * np.linalg.norm(data, axis=1)
    cosine = samples @ data.T / lengths
    allowed = float32_error(6, layers=3)
    np.testing.assert_allclose(most_similar(samples, data), cosine.max(1), rtol=0, atol=allowed)
