"""Semidiscrete transport: engine against oracle, the law by enumeration, the balance of the rows."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import chisquare

import pairflow
from pairflow import InputError, rng
from pairflow.pairing import oracle, transport
from pairflow.pairing.cpu.posterior import Posterior
from pairflow.pairing.gpu.posterior import TorchPosterior
from pairflow.pairing.posterior import UNITS

CASES = {  # M, N, K, buckets
    "bitmaps": (700, 16, 24, 9),
    "binary": (900, 40, 2, 12),
    "blocks of one bucket": (3000, 16, 24, 2),
    "lists": (3000, 6, 30_000, 2),
    "many buckets": (300, 12, 5, 60),
    "one row": (1, 4, 3, 1),
}


def clustered(rows, length, size, seed=0):
    """Rows (M, N) around a few centres, as data are."""
    generator = np.random.default_rng(seed)
    centres = generator.integers(size, size=(max(1, rows // 30), length))
    tokens = centres[generator.integers(len(centres), size=rows)]
    redrawn = generator.random(tokens.shape) < (0.4 if size < 1000 else 0.9)
    tokens[redrawn] = generator.integers(size, size=redrawn.sum())
    return tokens.astype(np.min_scalar_type(size - 1))


def setting(case):
    """Rows (M, N), their buckets (M,), K, and sources (S, N) with their numbers (S,)."""
    rows, length, size, count = CASES[case]
    buckets = np.random.default_rng(1).integers(count, size=rows)
    numbers = np.arange(5, 45)
    sources = rng.uniform_tokens(7, numbers, length, size)
    return clustered(rows, length, size), buckets - buckets.min(), size, sources, numbers


@pytest.mark.parametrize("tau", [0.1, 0.3, 2.0])
@pytest.mark.parametrize("case", CASES)
def test_engine_draws_the_rows_of_the_oracle(case, tau):
    data, buckets, size, sources, numbers = setting(case)
    law = Posterior(data, buckets, size, tau)
    assert law.keys.listed == (case in ("lists", "one row"))
    drawn, _ = law.draw(sources, numbers, 3, draws=6, threads=2)
    expected = oracle.draw_rows(sources, numbers, data, buckets, tau=tau, seed=3, draws=6)
    np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("tau", [0.1, 2.0])
@pytest.mark.parametrize("case", CASES)
def test_torch_draws_the_rows_and_entropies_of_the_cpu_engine(case, tau, device):
    data, buckets, size, sources, numbers = setting(case)
    law = TorchPosterior(data, buckets, size, tau, torch.device(device))
    assert law.product == (case != "lists")
    expected = Posterior(data, buckets, size, tau).draw(sources, numbers, 3, draws=6)
    for found, one in zip(law.draw(sources, numbers, 3, draws=6), expected, strict=True):
        np.testing.assert_array_equal(found, one)


def all_states(length, size):
    return np.array([*itertools.product(range(size), repeat=length)], np.uint8)


def exact_law(states, data, potentials, tau):
    """P(m | z) (S, M) of the definition; potentials in tau."""
    distances = (states[:, None] != data).sum(axis=2)
    scores = np.exp(potentials - distances / tau)
    return scores / scores.sum(axis=1, keepdims=True)


def test_draws_and_entropies_follow_the_definition():
    data = clustered(9, 3, 4)
    buckets = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3])
    source, draws = np.array([[1, 2, 3]], np.uint8), 40_000
    drawn, entropies = Posterior(data, buckets, 4, 0.5).draw(source, np.array([0]), 1, draws=draws)
    [law] = exact_law(source, data, -buckets / UNITS, 0.5)
    assert chisquare(np.bincount(drawn[0], minlength=9), law * draws).pvalue > 1e-3
    assert entropies[0] == pytest.approx(-(law * np.log(law)).sum())


@pytest.fixture(scope="module")
def small():
    """A coupling of 40 rows, two of which are equal, whose sources can all be listed."""
    data = clustered(40, 5, 4)
    data[7] = data[3]
    return pairflow.transport(data, vocabulary_size=4, tau=0.25, progress=False)


def test_all_rows_are_equally_likely(small):
    law = exact_law(all_states(5, 4), small.data, small.potentials / UNITS, 0.25)
    shares = law.mean(axis=0) * 40
    np.testing.assert_allclose(shares, 1, atol=0.3)
    assert small.balance.reached
    assert small.balance.spread == pytest.approx(1 + transport.HITS * shares.var(), abs=0.02)


def test_measures_agree_with_the_enumeration(small):
    states = all_states(5, 4)
    law = exact_law(states, small.data, small.potentials / UNITS, 0.25)
    distances = (states[:, None] != small.data).sum(axis=2)
    balance = small.measured()
    assert balance.distance == pytest.approx((law * distances).sum() / len(states), abs=0.02)
    entropy = -(law * np.log(law)).sum() / len(states)
    assert balance.information == pytest.approx(math.log(40) - entropy, abs=0.02)
    assert balance.information < math.log(40)


def test_a_measurement_ends_early_only_if_the_rows_are_clearly_not_balanced(small, monkeypatch):
    monkeypatch.setattr(transport, "_BLOCK", 5 * 2000)  # tokens: 100 blocks of 2,000 sources
    blocks = []
    whole = small.measured(until_clear=True, after_block=lambda: blocks.append(1))
    assert (whole.spread, len(blocks)) == (small.balance.spread, 100)
    equal = replace(small, potentials=np.zeros_like(small.potentials))
    full, early = (equal.measured(until_clear=clear, after_block=blocks.clear) for clear in (False, True))
    assert not early.reached
    assert early.spread == pytest.approx(full.spread, rel=0.2)
    assert early != full


def test_a_low_temperature_comes_near_to_optimal_transport():
    """1,024 states to 32 rows, 32 each: the least mean distance is known."""
    data = clustered(32, 5, 4, seed=2)
    states = all_states(5, 4)
    costs = np.repeat((states[:, None] != data).sum(axis=2), 32, axis=1)
    least = costs[linear_sum_assignment(costs)].mean()
    near = pairflow.transport(data, vocabulary_size=4, tau=0.05, progress=False)
    far = pairflow.transport(data, vocabulary_size=4, tau=100, progress=False)
    assert near.balance.distance == pytest.approx(least, rel=0.06)
    assert far.balance.distance == pytest.approx(5 * 3 / 4, rel=0.05)
    assert far.balance.information == pytest.approx(0, abs=0.01)


def test_pairs_depend_on_nothing_but_rows_temperature_and_seed(small):
    x0, x1 = small.draw(30, threads=1)
    later = small.draw(10, first=20, threads=2)
    np.testing.assert_array_equal(x0[20:], later[0])
    np.testing.assert_array_equal(x1[20:], later[1])
    again = pairflow.transport(small.data.tolist(), vocabulary_size=4, tau=0.25, threads=1, progress=False)
    np.testing.assert_array_equal(again.potentials, small.potentials)


of_tokens = partial(pairflow.transport, vocabulary_size=4, progress=False)
of_points = partial(pairflow.transport_continuous, progress=False)


@pytest.mark.parametrize(
    ("transport", "data", "changed", "message"),
    [
        (of_tokens, [[1, 2], [1, 2]], {}, "tokens: expected at least two different rows, found only one"),
        (of_tokens, [[0, 1], [1, 2]], {"tau": 0}, "tau: expected a number from 0.01 to 100, found 0"),
        (of_tokens, [[0, 9]], {}, "tokens: row 0, position 1: expected a token in 0..3, found 9"),
        (of_points, [[1.0], [1.0]], {}, "data: expected at least two different rows, found only one"),
        (of_points, [[1], [2]], {}, "data: expected a floating-point dtype, found int64"),
        (of_points, [[0.0]], {"device": "tpu"}, 'device: expected "auto", "cpu" or "cuda", found \'tpu\''),
    ],
)
def test_refusals(transport, data, changed, message):
    with pytest.raises(InputError) as error:
        transport(data, **changed)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0], "sources: expected 5 positions, found 4"),
        ([], "numbers: expected 1 integers from 0 on, one for each source"),
        ([0.5], "numbers: expected 1 integers from 0 on, one for each source"),
    ],
)
def test_sources_and_numbers_that_cannot_be_are_refused(small, numbers, message):
    source = [0, 1, 2, 3] if message.startswith("sources") else [0, 1, 2, 3, 0]
    with pytest.raises(InputError) as error:
        small.rows([source], numbers)
    assert str(error.value) == message
    with pytest.raises(InputError, match=r"^first: expected an integer in 0\.\.\d+, found -1$"):
        small.draw(3, first=-1)
