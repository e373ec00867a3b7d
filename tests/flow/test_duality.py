"""The diffusion transformation against integrals and Monte Carlo, the shared noise against real Gaussians."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import chi2_contingency, kstest

from pairflow.flow.duality import Transformation, shared_noise, transform

DRAWS = 1_000_000
GAMMAS = (-3.0, -2.0, -1.0, 0.5)


def keeps(gamma, vocabulary_size):
    """P: the probability that the argmax is x1."""
    return (transform(gamma, vocabulary_size) * (vocabulary_size - 1) + 1) / vocabulary_size


@pytest.fixture(scope="module")
def computed():
    return {k: Transformation.compute(k) for k in (2, 3, 40, 256, 30_522, 65_536)}


@pytest.mark.parametrize(
    ("vocabulary_size", "gamma", "expected"),
    [(40, -1.0, 0.327246), (40, -2.0, 0.697973), (2, -1.0, 0.878157)],
)
def test_known_values_of_p(vocabulary_size, gamma, expected):
    assert keeps(gamma, vocabulary_size) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize("vocabulary_size", [2, 3, 40, 256, 30_522, 65_536])
def test_the_quadrature_agrees_with_a_trapezoid_sum_of_the_definition(vocabulary_size):
    """P of the definition: the trapezoid rule converges exponentially on what decays at both ends."""
    gamma = np.linspace(-12, 12, 49)
    x, h = np.linspace(-12, 12, 3073, retstep=True)
    u = x[:, None]
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    p = h * (density * ndtr(u + np.exp(-gamma / 2)) ** (vocabulary_size - 1)).sum(0)
    np.testing.assert_allclose(keeps(gamma, vocabulary_size), p, rtol=0, atol=1e-10)


def test_t_falls_from_one_to_the_level_of_chance(computed):
    for vocabulary_size, t in computed.items():
        assert (np.diff(t.alpha) <= 0).all()
        assert t.alpha[0] == pytest.approx(1.0, abs=1e-12)
        assert t.alpha.max() <= 1.0
        p = (t.alpha[-1] * (vocabulary_size - 1) + 1) / vocabulary_size
        assert 1.0 < p * vocabulary_size < 1.02
        between = t(np.random.default_rng(0).uniform(-12, 12, 5000).astype(np.float32))
        assert between.dtype == np.float64
        assert (between >= t.alpha[-1]).all()
        assert (between <= 1.0).all()


def test_between_the_points_of_the_table_the_error_is_below_1e_7(computed):
    for vocabulary_size, t in computed.items():
        step = t.gamma[1] - t.gamma[0]
        for share in (0.21, 0.5, 0.79):  # where a cubic with slopes that are off errs most
            gamma = t.gamma[:-1] + share * step
            np.testing.assert_allclose(t(gamma), transform(gamma, vocabulary_size), rtol=0, atol=1e-7)


def test_beyond_its_ends_the_table_holds(computed):
    t = computed[40]
    assert t([-20.0, 20.0]).tolist() == [t.alpha[0], t.alpha[-1]]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("vocabulary_size", [2, 40, 30_522, 65_536])
def test_shared_noise_has_the_right_marginals(vocabulary_size, device):
    """x1 with probability P, the other symbols alike."""
    x1 = torch.full((4, DRAWS // 4), vocabulary_size // 3, device=device)
    noise = shared_noise(x1, vocabulary_size, torch.Generator(device).manual_seed(1))
    state = noise.state(x1, torch.tensor(GAMMAS, dtype=torch.float64, device=device))
    for row, level in zip(state, GAMMAS, strict=True):
        p = keeps(level, vocabulary_size)
        assert abs((row == x1[0]).double().mean().item() - p) < 3 * math.sqrt(p * (1 - p) / (DRAWS // 4))
    assert not (noise.other == x1).any()
    others = vocabulary_size - 1
    rank = noise.other - (noise.other > x1).long()  # of `other` among the symbols that are not x1
    assert rank.min() >= 0
    assert rank.max() < others
    cells = min(others, 20)
    counts = np.bincount((rank.flatten() * cells // others).cpu().numpy(), minlength=cells)
    sizes = np.bincount(np.arange(others) * cells // others)
    expected = DRAWS * sizes / others
    assert ((counts - expected) ** 2 / expected).sum() < cells + 4 * math.sqrt(2 * cells)


@pytest.mark.parametrize("vocabulary_size", [2, 40, 30_522, 65_536])
def test_the_threshold_has_the_law_of_a_maximum_less_a_normal_number(vocabulary_size):
    x1 = torch.zeros(1, 20_000, dtype=torch.long)
    noise = shared_noise(x1, vocabulary_size, torch.Generator().manual_seed(2))
    grid = np.linspace(-8, 12, 4001)
    u = np.linspace(-9, 9, 1501)[:, None]
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi) * (u[1] - u[0])
    law = (density * ndtr(u + grid) ** (vocabulary_size - 1)).sum(0)
    actual = kstest(noise.threshold[0].numpy(), lambda x: np.interp(x, grid, law))
    assert actual.pvalue > 1e-3


def test_states_at_three_levels_have_the_joint_law_of_one_gaussian():
    vocabulary_size, gammas, draws = 3, (-2.0, -0.5, 1.5), 400_000
    x1 = torch.ones(1, draws, dtype=torch.long)
    noise = shared_noise(x1, vocabulary_size, torch.Generator().manual_seed(3))
    ours = [noise.state(x1, torch.tensor([gamma]))[0] for gamma in gammas]
    eps = torch.randn(draws, vocabulary_size, generator=torch.Generator().manual_seed(4))
    onehot = torch.tensor([0.0, 1.0, 0.0])
    direct = [(math.exp(-gamma / 2) * onehot + eps).argmax(-1) for gamma in gammas]
    counts = torch.stack([torch.bincount(9 * a + 3 * b + c, minlength=27) for a, b, c in (ours, direct)])
    possible = counts.sum(0) > 0
    assert possible.sum() == 1 + 2 * 3  # x1 at all levels, or one other symbol from some level on
    assert chi2_contingency(counts[:, possible].numpy()).pvalue > 1e-3


def test_two_symbols_have_a_closed_form():
    gamma = np.linspace(-12, 12, 97)
    closed = 2 * ndtr(np.exp(-gamma / 2) / math.sqrt(2)) - 1
    np.testing.assert_allclose(transform(gamma, 2), closed, rtol=0, atol=1e-12)


def test_less_noise_is_never_further_from_the_data():
    """Where the less noisy state is not x1, the noisier state is the same other symbol."""
    generator = torch.Generator().manual_seed(5)
    x1 = torch.randint(40, (64, 500), generator=generator)
    noise = shared_noise(x1, 40, generator)
    for less, more in itertools.pairwise(torch.linspace(-2, 6, 9)):
        clean, noisy = (noise.state(x1, gamma.expand(64)) for gamma in (less, more))
        lost = clean != x1
        assert torch.equal(clean[lost], noisy[lost])
        assert (noisy[~lost] != x1[~lost]).any()
