"""Walks in which only a row's own weight counts: the lemma, and that the engine makes no wrong byte of it."""

import itertools

import numpy as np
import pytest

from pairflow.pairing import oracle
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.cpu import workspace
from pairflow.pairing.cpu.certificate import TRIES


def random_rows(rows, length, size, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(size, size=(rows, length)).astype(np.min_scalar_type(size - 1))


def with_copies(rows, length, size):
    """Rows of which each has a copy that differs in two positions."""
    data = random_rows(rows, length, size)
    data[rows // 2 :] = data[: rows // 2]
    data[rows // 2 :, :2] = (data[rows // 2 :, :2] + 1) % size
    return data


CASES = {  # data, K, and whether all walks can be proven
    "far rows": (random_rows(200, 300, 256), 256, True),
    "rows of which some are near": (random_rows(200, 40, 200), 200, None),
    "near copies": (with_copies(200, 120, 250), 250, False),
    "a row twice": (np.repeat(random_rows(100, 200, 256), 2, axis=0), 256, False),
    "constant columns": (np.pad(random_rows(100, 200, 256), ((0, 0), (3, 4))), 256, True),
}


@pytest.mark.parametrize("case", CASES)
def test_bytes_are_those_of_the_oracle(case, monkeypatch):
    data, size, proven = CASES[case]
    works, make = [], workspace.workspace
    monkeypatch.setattr(cpu, "workspace", lambda *sizes: works.append(make(*sizes)) or works[-1])
    jumps, settings = np.zeros(10, np.int64), {"vocabulary_size": size, "steps": 10, "seed": 3}
    queries, numbers = data[:60], np.arange(60)
    fast = cpu.pair_rows(data, queries, numbers, **settings, threads=1, jumps=jumps)
    states = [*oracle.backward_states(data, queries, numbers, **settings)]
    np.testing.assert_array_equal(fast, states[-1])
    expected = [(before != after).sum() for before, after in itertools.pairwise(states)]
    assert jumps.tolist() == expected[::-1]
    [work] = works
    if proven is not None:
        assert work.tries[0] == (TRIES if proven else 0)


@pytest.mark.parametrize("where", ["everywhere", "only where all keys agree"])
def test_a_query_that_is_no_key_is_never_proven(where):
    data = np.pad(random_rows(200, 300, 256), ((0, 0), (3, 4)))
    queries, numbers = random_rows(20, 307, 256, seed=1), np.arange(20)
    if where != "everywhere":
        queries[:, 3:-4] = data[:20, 3:-4]
    settings = {"vocabulary_size": 256, "steps": 10, "seed": 3}
    fast = cpu.pair_rows(data, queries, numbers, **settings, threads=1)
    np.testing.assert_array_equal(fast, oracle.pair_rows(data, queries, numbers, **settings))


def test_no_other_row_gains_on_the_way_back():
    """The lemma: as long as only positions of the own row leave, each gap only grows towards t = 1."""
    data = random_rows(50, 200, 256)
    own = data[:1].astype(np.int64)
    states = oracle.backward_states(data, data[:1], np.arange(1), vocabulary_size=256, steps=10, seed=5)
    gaps, seen = [], own
    for state in states:
        left = state != seen
        assert (seen[left] == own[left]).all()  # each position leaves the own row's symbol, and once
        gaps.append((data[1:] != state).sum(axis=1) - (own != state).sum())
        seen = state
    assert (np.diff(gaps, axis=0) <= 0).all()
    assert gaps[0].min() > gaps[-1].min()
