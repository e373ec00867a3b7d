"""The parts of the CPU engine that compute with words of NumPy, and the choice of an index."""

import numpy as np
import pytest

from pairflow import rng
from pairflow.pairing.cpu import keys
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
