import numpy as np
import pytest
import scipy.stats

from pairflow import rng
from pairflow.pairing.cpu import numbers

# Known answers of Random123 (kat_vectors, philox4x32 10): counter, key, output.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize("philox", [rng.philox4x32, numbers.philox], ids=["numpy", "numba"])
@pytest.mark.parametrize(("counter", "key", "output"), KNOWN_ANSWERS)
def test_known_answers(philox, counter, key, output):
    assert list(philox(*map(np.uint64, counter), *map(np.uint64, key))) == output


def test_word_order_and_range():
    last, none, one = np.uint64(2**32 - 1), np.uint64(0), np.uint64(1)
    assert rng.uniform(none, none) == 0
    assert rng.uniform(last, last) == 1 - 2.0**-53
    assert rng.uniform(none, one) == 2.0**-32  # word 1 is the high one
    assert rng.uniform(last, none) < 2.0**-32
    assert rng.choose(none, np.uint64(7)) == 0
    assert rng.choose(last, np.uint64(7)) == 6


def test_draws_are_a_function_of_seed_row_step_and_position():
    uniforms, words = rng.draws(3, [5, 2**40], 7, 4)
    assert uniforms.shape == words.shape == (2, 4)
    alone, _ = rng.draws(3, [2**40], 7, 9)
    assert np.array_equal(alone[0, :4], uniforms[1])
    counter = [np.uint64(n) for n in (2, 7, 0, 2**8)]  # position, step, row mod 2^32, row div 2^32
    w0, w1, w2, _ = rng.philox4x32(*counter, np.uint64(3), np.uint64(0))
    assert (rng.uniform(w0, w1), w2) == (uniforms[1, 2], words[1, 2])
    for seed, row, step in ((4, 5, 7), (3 + 2**32, 5, 7), (3, 6, 7), (3, 5, 8)):
        assert not np.intersect1d(rng.draws(seed, [row], step, 4)[0], uniforms).size


def test_uniform_tokens_are_uniform_and_do_not_depend_on_their_neighbours(monkeypatch):
    tokens = rng.uniform_tokens(0, np.arange(5000), 8, 10)
    assert (tokens.shape, tokens.dtype) == ((5000, 8), np.uint8)
    counts = np.bincount(tokens.ravel(), minlength=10)
    assert len(counts) == 10
    assert ((counts - 4000) ** 2 / 4000).sum() < 28  # chi-square, 9 degrees of freedom, p = 0.001
    monkeypatch.setattr(rng, "_CHUNK", 100)
    assert np.array_equal(rng.uniform_tokens(0, [17, 4999], 8, 10), tokens[[17, 4999]])
    assert np.array_equal(rng.uniform_tokens(0, np.arange(5000), 8, 10), tokens)
    assert rng.uniform_tokens(0, [0], 3, 65536).dtype == np.uint16


def test_normals_are_normal_and_a_function_of_seed_row_and_position(monkeypatch):
    numbers = rng.normals(0, np.arange(4000), 5)
    assert (numbers.shape, numbers.dtype) == ((4000, 5), np.float32)
    assert scipy.stats.kstest(numbers.ravel(), "norm").pvalue > 0.001
    assert np.abs(np.corrcoef(numbers.T) - np.eye(5)).max() < 0.06  # four standard deviations
    # Box and Muller's two numbers of the counter of row 0, position 0.
    w = rng.philox4x32(*np.array([0, 2**32 - 1, 0, 0, 0, 0], dtype=np.uint64))
    radius, angle = np.sqrt(-2 * np.log(1 - rng.uniform(*w[:2]))), 2 * np.pi * rng.uniform(*w[2:])
    assert numbers[0, [0, 3]] == pytest.approx(radius * np.array([np.cos(angle), np.sin(angle)]), rel=1e-6)
    monkeypatch.setattr(rng, "_CHUNK", 9)
    assert np.array_equal(rng.normals(0, [17, 3999], 5), numbers[[17, 3999]])
    assert not np.array_equal(rng.normals(1, [17], 5), numbers[[17]])


def test_random_order_is_a_permutation_of_its_own_for_each_seed():
    order = rng.random_order(0, 1000)
    assert np.array_equal(np.sort(order), np.arange(1000))
    assert np.count_nonzero(order == rng.random_order(1, 1000)) < 10


def test_stream_seed():
    assert rng.stream_seed(0, "train", 1) == 6133370629789370551
    assert rng.stream_seed(np.int64(0), "train", np.uint8(1)) == rng.stream_seed(0, "train", 1)
    labels = [(0, "train", 1), (1, "train", 1), (0, "train", 11), (0, "train1", 1), (0, "train")]
    labels.append(("0", "train", 1))
    seeds = {rng.stream_seed(*label) for label in labels}
    assert len(seeds) == len(labels)
    assert all(0 <= seed < 2**63 for seed in seeds)
    with pytest.raises(TypeError):
        rng.stream_seed(0.5)


def test_numba_and_numpy_make_the_same_numbers():
    words = np.random.default_rng(0).integers(0, 2**32, (100, 2), dtype=np.uint64)
    for w0, w1 in words:
        assert rng.uniform(w0, w1) == numbers.uniform(w0, w1)
        assert rng.choose(w0, np.uint64(39)) == numbers._choose(w0, np.uint64(39))
