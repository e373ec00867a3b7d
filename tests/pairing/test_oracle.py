import itertools

import numpy as np
import pytest

from pairflow import InputError
from pairflow.flow.schedule import Linear
from pairflow.pairing import closed_form_denoiser, closed_form_noise_predictor, local_consensus, oracle, rule

TIMES = (1e-9, 0.05, 0.3, 0.7, 0.95, 1 - 1e-9)
SIZES = [(3, 3, 3), (5, 4, 3), (4, 2, 5), (7, 5, 2), (6, 3, 4)]  # M, N, K


def random_data(rows, length, vocabulary_size, seed=0):
    return np.random.default_rng(seed).integers(0, vocabulary_size, (rows, length))


def all_states(length, vocabulary_size):
    return np.array(list(itertools.product(range(vocabulary_size), repeat=length)))


def brute_force(z, data, kappa, vocabulary_size, prior=None):
    """p(x0^i | z) and p(x1^i | z), (N, K) each, by enumerating the independent coupling."""
    sources = all_states(len(z), vocabulary_size)
    likely = 1 if prior is None else prior[np.arange(len(z)), sources].prod(axis=1)
    shows_data = kappa * (data == z)[None]  # (1, M, N)
    shows_source = (1 - kappa) * (sources == z)[:, None]  # (K^N, 1, N)
    joint = ((shows_data + shows_source).prod(axis=2).T * likely).T  # (K^N, M), up to a constant
    joint /= joint.sum()
    symbols = np.arange(vocabulary_size)
    of_source = np.einsum("s,snk->nk", joint.sum(axis=1), sources[..., None] == symbols)
    of_data = np.einsum("m,mnk->nk", joint.sum(axis=0), data[..., None] == symbols)
    return of_source, of_data


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("t", TIMES)
@pytest.mark.parametrize(("rows", "length", "vocabulary_size"), SIZES)
def test_both_closed_forms_equal_enumeration(rows, length, vocabulary_size, t, by_frequency):
    data = random_data(rows, length, vocabulary_size)
    states = all_states(length, vocabulary_size)
    prior = np.random.default_rng(2).dirichlet(np.ones(vocabulary_size), length) if by_frequency else None
    noise = closed_form_noise_predictor(states, data, t, vocabulary_size=vocabulary_size, prior=prior)
    denoiser = closed_form_denoiser(states, data, t, vocabulary_size=vocabulary_size, prior=prior)
    for state, p0, p1 in zip(states, noise, denoiser, strict=True):
        of_source, of_data = brute_force(state, data, t, vocabulary_size, prior)
        assert np.abs(p0 - of_source).max() < 1e-12
        assert np.abs(p1 - of_data).max() < 1e-12


def test_the_closed_forms_hold_on_any_schedule():
    data, z = random_data(5, 3, 4), np.array([[0, 1, 2]])
    clock = Linear(0.2)
    noise = closed_form_noise_predictor(z, data, 0.5, vocabulary_size=4, schedule=clock)
    assert np.abs(noise[0] - brute_force(z[0], data, 0.6, 4)[0]).max() < 1e-12


def test_at_the_data_a_rare_symbol_in_common_counts_more():
    data, prior = np.array([[0, 0], [1, 1]]), np.array([[0.8, 0.2], [0.5, 0.5]])
    likely = local_consensus([[0, 1]], data, 1.0, vocabulary_size=2, prior=prior)
    np.testing.assert_allclose(likely, [[(1 / 0.8) / (1 / 0.8 + 2), 2 / (1 / 0.8 + 2)]])
    near = local_consensus([[0, 1]], data, 1 - 1e-9, vocabulary_size=2, prior=prior)
    np.testing.assert_allclose(likely, near, rtol=1e-7)
    for wrong in (prior[:1], prior - prior.min(), 2 * prior):
        with pytest.raises(InputError, match=r"prior: expected \(2, 2\) probabilities above 0"):
            local_consensus([[0, 1]], data, 0.5, vocabulary_size=2, prior=wrong)


def test_without_data_in_sight_everything_counts_equally():
    data, z = random_data(50, 6, 7), random_data(20, 6, 7, seed=1)
    found = local_consensus(z, data, 0.0, vocabulary_size=7)
    np.testing.assert_allclose(found, (data == z[:, None]).mean(axis=1))
    noise = closed_form_noise_predictor(z, data, 0.0, vocabulary_size=7)
    assert np.array_equal(noise, z[..., None] == np.arange(7))  # at t = 0, z is the source


def test_at_the_data_only_the_nearest_count_equally():
    data = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    z = np.array([[0, 0, 1]])  # at distance 1 from the first three
    assert local_consensus(z, data, 1.0, vocabulary_size=2).tolist() == [[2 / 3, 2 / 3, 2 / 3]]
    assert closed_form_denoiser(data, data, 1.0, vocabulary_size=2).argmax(axis=2).tolist() == data.tolist()
    at_data = closed_form_noise_predictor(data, data, 1.0, vocabulary_size=2)
    assert np.array_equal(at_data, np.full((4, 3, 2), 0.5))  # a source is told by nothing: uniform


def test_chunks_do_not_change_the_result(monkeypatch):
    data, z = random_data(50, 6, 7), random_data(20, 6, 7, seed=1)
    whole = local_consensus(z, data, 0.4, vocabulary_size=7)
    monkeypatch.setattr(oracle, "_CHUNK", 1000)
    np.testing.assert_allclose(local_consensus(z, data, 0.4, vocabulary_size=7), whole, rtol=1e-14)


def test_kept_levels_are_exact_to_the_stated_tolerance():
    data, z = random_data(2000, 40, 5), random_data(20, 40, 5, seed=1)
    tables = rule.level_tables(10, 40, 5)
    for step in range(1, 11):
        exact = local_consensus(z, data, step / 10, vocabulary_size=5)
        kept = np.stack([oracle._trajectory_consensus(state, data, tables[step - 1]) for state in z])
        assert np.abs(kept - exact).max() < 2e-9


def test_level_weights_stop_where_the_rest_cannot_matter():
    table = rule.level_tables(2, 6, 40)[0]  # t = 1/2: gamma = 41
    weights = np.zeros(7, dtype=np.int64)
    assert rule.level_weights(np.array([1, 0, 0, 0, 0, 0, 1]), table, weights) == 6  # 41^-6 < 1e-9 < 41^-5
    assert weights[0] == 2**51  # the nearest level, with one key
    assert weights[1] == 2**51 // 41
    assert rule.level_weights(np.array([0, 3])[1:], table, weights) == 1
    assert weights[0] == 2**50  # a total of 3 is 0.75 * 2^2


def test_rates_and_tables():
    assert rule.step_rates(4, 3).tolist() == [0.25 * 2 / (1 + 2 * t) for t in (0.25, 0.5, 0.75, 1.0)]
    tables = rule.level_tables(2, 3, 40)
    assert tables[1].tolist() == [1, 0, 0, 0]
    np.testing.assert_allclose(tables[0], 41.0 ** -np.arange(4), rtol=1e-15)


@pytest.mark.parametrize(
    ("z", "data", "t", "message"),
    [
        ([[0, 1]], [[0, 1, 1]], 0.5, r"z, data: expected two arrays .* shapes \(1, 2\) and \(1, 3\)"),
        (np.ma.masked_array([[0, 1]], [[True, False]]), [[0, 1]], 0.5, "z: expected an array without masked"),
        ([[0, 1]], [[0, 1]], 1.5, r"t: expected a time in \[0, 1\], found 1.5"),
    ],
)
def test_bad_input(z, data, t, message):
    with pytest.raises(InputError, match=message):
        local_consensus(z, data, t, vocabulary_size=2)


def test_a_small_integer_type_for_the_size_of_the_vocabulary_wraps_nowhere():
    """K = tokens.max() + 1 has the tokens' own type, here of 8 bits."""
    data = np.array([[0, 199], [7, 3]], np.uint8)
    for field in (local_consensus, closed_form_denoiser, closed_form_noise_predictor):
        small, plain = (field(data, data, 0.5, vocabulary_size=size) for size in (data.max() + 1, 200))
        np.testing.assert_array_equal(small, plain)
    with pytest.raises(InputError, match=r"vocabulary_size: expected an integer in 2\.\.65536, found 200\.0"):
        local_consensus(data, data, 0.5, vocabulary_size=200.0)


def test_a_lone_data_point_forgets_itself():
    """With M = 1, w_i = [z^i = d^i]: over many rows the end states are uniform at every position."""
    data = np.array([[0, 1, 2, 3]])
    queries = np.repeat(data, 2000, axis=0)
    sources = oracle.pair_rows(data, queries, np.arange(2000), vocabulary_size=4, steps=20, seed=0)
    counts = np.stack([np.bincount(column, minlength=4) for column in sources.T])
    assert np.abs(counts / 2000 - 0.25).max() < 0.04
