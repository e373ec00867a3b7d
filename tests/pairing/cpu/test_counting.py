"""The parts of the CPU engine that compute with words of NumPy, and the choice of an index."""

import numpy as np
import pytest
from numba import njit

from pairflow import rng
from pairflow.pairing.cpu import block, keys
from pairflow.pairing.cpu.numbers import uniform_tokens


@pytest.mark.parametrize(("length", "size"), [(1, 2), (13, 300), (784, 2), (5, 65_536)])
def test_compiled_noise_is_that_of_numpy(length, size):
    numbers = np.arange(2**33 - 5, 2**33 + 5)
    tokens = uniform_tokens(11, numbers, length, size)
    expected = rng.uniform_tokens(11, numbers, length, size)
    assert tokens.dtype == expected.dtype
    assert np.array_equal(tokens, expected)


def test_common_symbols_take_bitmaps_and_rare_ones_lists():
    common = np.random.default_rng(0).integers(0, 5, (70_000, 12), dtype=np.uint8)
    assert not keys.prepare(common, 5).listed
    rare = np.random.default_rng(1).integers(0, 5000, (2000, 8), dtype=np.uint16)
    assert keys.prepare(rare, 5000).listed


def test_blocks_compute_like_words():
    @njit
    def compute(a, b, result):
        x, y = block.load(a, 1), block.load(b, 0)
        block.store(result, 0, (x & ~y) | (x ^ block.fill(np.uint64(3))))
        block.store(result, 1, block.plus(block.popcount(x), y))
        return block.total(block.popcount(x)), block.any_bit(x), block.any_bit(x ^ x)

    words = np.random.default_rng(0).integers(0, 2**63, (3, 8), dtype=np.uint64)
    a, b, result = block.zero_blocks(2), block.zero_blocks(1), block.zero_blocks(2)
    a[1], b[0] = words[:2]
    counted = compute(a, b, result)
    assert np.array_equal(result[0], (words[0] & ~words[1]) | (words[0] ^ np.uint64(3)))
    assert np.array_equal(result[1], np.bitwise_count(words[0]) + words[1])
    assert counted == (np.bitwise_count(words[0]).sum(), True, False)
    assert a.ctypes.data % 64 == 0


def test_random_words_eight_at_a_time_are_those_of_numpy():
    @njit
    def draw(positions, words):
        low, high = block.fill(np.uint64(7)), block.fill(np.uint64(2**31))
        w0, w1, _, _ = philox(
            block.load(positions, 0), block.fill(np.uint64(5)), low, high, np.uint64(1), np.uint64(2**32 - 1)
        )
        block.store(words, 0, w0 | (w1 << np.uint64(32)))

    philox = njit(rng.philox4x32)
    positions, words = np.arange(8, dtype=np.uint64), np.zeros(8, np.uint64)
    draw(positions, words)
    number = [np.uint64(value) for value in (5, 7, 2**31, 1, 2**32 - 1)]
    w0, w1, _, _ = rng.philox4x32(positions, *number)
    assert np.array_equal(words, w0 | (w1 << np.uint64(32)))
