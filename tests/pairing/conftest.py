"""Data for the tests of the engines."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def clustered():
    def make(rows, length, vocabulary_size, *, dtype=np.uint8, centres=5, noise=0.2, seed=0):
        """Rows (M, N) scattered around a few centres, duplicates among them."""
        rng = np.random.default_rng(seed)
        data = rng.integers(0, vocabulary_size, (centres, length))[rng.integers(0, centres, rows)]
        flips = rng.random((rows, length)) < noise
        data = np.where(flips, rng.integers(0, vocabulary_size, (rows, length)), data)
        data[-1] = data[0]
        return data.astype(dtype)

    return make
