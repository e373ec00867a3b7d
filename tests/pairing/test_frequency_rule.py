"""Algorithm 1 with noise by frequency: its rule, and the CPU engine, which gives the same bytes."""

import numpy as np
import pytest

import pairflow
from pairflow import InputError, rng
from pairflow.pairing import frequency_rule, local_consensus
from pairflow.pairing.cpu import frequencies as engine
from pairflow.pairing.prior import frequencies


def skewed(rows, length, vocabulary_size):
    """Rows (M, N) with common and rare symbols, one column that never varies, and duplicates."""
    generator = np.random.default_rng(0)
    share = 1 / np.arange(1, vocabulary_size + 1) ** 1.3
    data = generator.choice(vocabulary_size, (rows, length), p=share / share.sum())
    data[rows // 2 :, : length // 2] = data[: rows - rows // 2, : length // 2]  # rows with much in common
    data[:, 1], data[-1] = 2, data[0]
    return data.astype(np.uint16)


def test_each_step_takes_the_closed_form_backward_velocity():
    data, steps, seed = skewed(80, 6, 9), 7, 11
    rows, prior = np.arange(40), frequencies(skewed(80, 6, 9), 9)
    z = data[rows].astype(np.int64)
    for step in range(steps, 0, -1):
        t = step / steps
        consensus = local_consensus(z, data, t, vocabulary_size=9, prior=prior)
        u, v = rng.two_uniforms(seed, rows, step, 6)
        assert np.array_equal(u, rng.draws(seed, rows, step, 6)[0])
        leaves = u < consensus / (steps * (t + (1 - t) * prior[np.arange(6), z]))
        drawn = (v[..., None] >= prior.cumsum(axis=1)[:, :-1]).sum(axis=2)
        z = np.where(leaves, drawn, z)
    settings = {"vocabulary_size": 9, "steps": steps, "seed": seed, "noise": "frequencies"}
    for backend in ("reference", "cpu"):
        sources = pairflow.pair(data, **settings, backend=backend, progress=False)
        assert sources.dtype == data.dtype
        assert np.array_equal(sources[rows], z)


def test_the_rule_is_exact_to_its_stated_digits():
    data = skewed(500, 20, 60)
    prior, z = frequencies(data, 60), skewed(520, 20, 60)[-1]
    likely = prior[np.arange(20), z]
    for t in (0.05, 0.5, 0.95):
        gains = frequency_rule.match_gains(likely, t)
        np.testing.assert_allclose(gains / 2**40, np.log2(1 + t / ((1 - t) * likely)), rtol=0, atol=1e-12)
        exact = local_consensus(z[None], data, t, vocabulary_size=60, prior=prior)[0]
        kept = frequency_rule.local_consensus(z, data, gains, np.arange(20))
        assert np.abs(kept - exact).max() < 1e-9
    below = np.arange(0, 3 << 40, 12345678901)
    np.testing.assert_allclose(frequency_rule.key_weights(-below), np.exp2(-below / 2**40), rtol=1e-15)


@pytest.mark.parametrize(("rows", "length", "vocabulary_size"), [(700, 30, 300), (3, 5, 3), (300, 13, 5)])
def test_the_engine_gives_the_bytes_of_the_rule(monkeypatch, rows, length, vocabulary_size):
    data = skewed(rows, length, vocabulary_size)
    queries, settings = np.arange(rows)[:60], {"prior": frequencies(data, vocabulary_size), "steps": 9}
    expected = frequency_rule.pair_rows(data, data[queries], queries, **settings, seed=5)
    for threads in (1, 2):
        made = engine.pair_rows(data, data[queries], queries, **settings, seed=5, threads=threads)
        assert np.array_equal(made, expected)
    make_law = engine._law
    monkeypatch.setattr(engine, "_law", lambda *facts: make_law(*facts)._replace(error=0.3))
    made = engine.pair_rows(data, data[queries], queries, **settings, seed=5)  # now the rule decides often
    assert np.array_equal(made, expected)


def test_the_engine_knows_its_error():
    data = skewed(3000, 30, 300)
    prior, steps = frequencies(data, 300), 20
    keys = engine._prepare(data, 300)
    law = engine._law(frequency_rule.BackwardSteps(data, prior, steps, 0), len(keys.columns), len(data))
    work = engine._workspace(*data.shape, len(keys.columns))
    work.open[: len(keys.columns)] = np.arange(len(keys.columns))
    assert law.error < 2e-4
    for step, z in zip((1, 4, 10, 19), skewed(5000, 30, 300)[-4:].astype(np.int64), strict=True):
        engine._match(keys, z, work)
        best = engine._score(keys, law, z, step, work)
        engine._agree(work, best, np.float32(-1 / law.scale), len(keys.columns))
        exact = local_consensus(z[None], data, step / steps, vocabulary_size=300, prior=prior)[0]
        assert np.abs(work.sums[: len(keys.columns)] - exact[keys.places]).max() < law.error


def test_shards_and_subsets_pair_by_the_frequencies_of_all_rows():
    data = skewed(90, 8, 12)
    settings = {"vocabulary_size": 12, "subsets": 3, "seed": 1, "noise": "frequencies", "progress": False}
    whole = pairflow.pair(data, **settings, backend="reference")
    assert np.array_equal(pairflow.pair(data, **settings), whole)
    assert np.array_equal(pairflow.pair(data, **settings, rows=(20, 47)), whole[20:47])
    uniform = pairflow.pair(data, **settings | {"noise": "uniform"}, backend="reference")
    assert (whole != uniform).mean() > 0.1


def test_what_noise_by_frequency_refuses():
    data, settings = skewed(9, 4, 5), {"vocabulary_size": 5, "progress": False}
    with pytest.raises(InputError, match='backend: "gpu" has no noise by frequency'):
        pairflow.pair(data, **settings, noise="frequencies", backend="gpu")
    with pytest.raises(InputError, match="noise: expected one of uniform, frequencies, found 'masks'"):
        pairflow.pair(data, **settings, noise="masks")


def test_a_lone_data_point_is_forgotten():
    """With one key, w_i = [z^i = d^i]: over many rows the sources have the law of the noise, for any T."""
    data, prior = np.array([[0, 1, 2]]), np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    queries, numbers = np.repeat(data, 3000, axis=0), np.arange(3000)
    sources = engine.pair_rows(data, queries, numbers, prior=prior, steps=5, seed=0)
    shares = np.stack([np.bincount(column, minlength=3) for column in sources.T]) / 3000
    assert np.abs(shares - prior).max() < 0.03
