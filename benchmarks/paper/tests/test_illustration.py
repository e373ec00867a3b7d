import numpy as np

import pairflow
from benchmarks.paper import illustration


def test_uniform_corruption_is_linear_in_time_and_backward_pairing_nearer():
    found = illustration.illustrate()
    rows = illustration.toy_set()
    rules = {"vocabulary_size": illustration.SYMBOLS, "steps": illustration.STEPS}
    x0 = pairflow.pair(rows, **rules, seed=illustration.SEED, backend="cpu", progress=False)
    assert found.backward[0] == found.uniform[0] == 0
    assert found.backward[-1] == np.count_nonzero(x0 != rows, axis=1).mean()
    assert (np.diff(found.uniform) >= 0).all()
    assert (found.times[0], found.times[-1]) == (1, 0)
    expected = (1 - found.times) * 9.0  # N (K-1) / K, as the paper prints
    # 1,000 rows of 10 positions: the mean distance has a standard deviation of at most 0.05.
    assert np.abs(found.uniform - expected).max() < 0.25
    assert found.backward[-1] < found.uniform[-1] - 2
