"""Noising and the posteriors of `pairflow.flow.posterior`, against brute-force enumeration in float64."""

import itertools

import pytest
import torch

from pairflow.errors import InputError
from pairflow.flow.corruption import Frequencies, interpolate, stratified_times
from pairflow.flow.posterior import (
    ancestral_posterior,
    leave_one_out_to_posterior,
    posterior_to_leave_one_out,
)

K, N = 3, 2
DATA = torch.tensor([[0, 1], [2, 2], [2, 0], [2, 1]])
STATES = torch.tensor(list(itertools.product(range(K), repeat=N)))  # every x_t
PI = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.35, 0.6]], dtype=torch.float64)  # frequencies, by position


def exact_denoisers(alpha, pi):
    """Posterior and leave-one-out (K^N, N, K) at every state, by Bayes over the data points."""
    match = (STATES[:, None] == DATA).double()  # (S, M, N)
    noise = 1 / K if pi is None else pi[torch.arange(N), STATES][:, None]  # (S, 1, N)
    likelihood = alpha * match + (1 - alpha) * noise
    onehot = torch.nn.functional.one_hot(DATA, K).double()  # (M, N, K)
    posterior = torch.einsum("sm,mnk->snk", likelihood.prod(-1), onehot)
    others = likelihood.flip(-1)  # with two positions, "all but i" is the other one
    leave_one_out = torch.einsum("smn,mnk->snk", others, onehot)
    return posterior / posterior.sum(-1, keepdim=True), leave_one_out / leave_one_out.sum(-1, keepdim=True)


@pytest.mark.parametrize("pi", [None, PI], ids=["uniform", "frequencies"])
@pytest.mark.parametrize("alpha", [1e-3, 0.4, 0.999])
def test_the_two_denoisers_convert_into_each_other(alpha, pi):
    posterior, leave_one_out = exact_denoisers(alpha, pi)
    converted = leave_one_out_to_posterior(leave_one_out.log(), STATES, alpha, pi).exp()
    alphas = torch.full((len(STATES),), alpha, dtype=torch.float64)
    back = posterior_to_leave_one_out(posterior.log(), STATES, alphas, pi).exp()
    torch.testing.assert_close(converted, posterior, rtol=0, atol=1e-12)
    torch.testing.assert_close(back, leave_one_out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pi", [None, PI[:1]], ids=["uniform", "frequencies"])
@pytest.mark.parametrize(("a", "b"), [(1e-3, 0.2), (0.3, 0.5), (0.5, 0.5), (0.9, 0.999)])
def test_the_ancestral_posterior_is_bayes(a, b, pi):
    torch.manual_seed(0)
    x = torch.rand(K, 1, K, dtype=torch.float64).softmax(-1)  # the prediction of x1, at each value of x_t
    x_t = torch.arange(K)[:, None]
    keep, noise = a / b, torch.full((K,), 1 / K, dtype=torch.float64) if pi is None else pi[0]
    for z in range(K):
        step = (1 - keep) * noise[z].repeat(K)  # q(x_t = z | x_s)
        step[z] += keep
        prior = b * x[z, 0] + (1 - b) * noise  # q(x_s) = sum over x1 of x(x1) q(x_s | x1)
        expected = step * prior / (step * prior).sum()
        actual = ancestral_posterior(x, x_t, a, b, pi)[z, 0]
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-14)


def test_sources_by_frequency_are_drawn_by_the_inverse_of_the_cumulative_frequencies():
    noise = Frequencies(PI)
    u = torch.rand(9000, N, generator=torch.Generator().manual_seed(3), dtype=PI.dtype)
    x0 = noise.source((9000, N), torch.Generator().manual_seed(3))
    assert torch.equal(x0, (u[..., None] >= PI.cumsum(-1)[:, :-1]).sum(-1))
    share = torch.nn.functional.one_hot(x0, K).double().mean(0)
    assert (share - PI).abs().max() < 0.02
    for wrong in (PI[0], PI * 2, PI - 0.05):
        with pytest.raises(InputError, match=r"pi: expected positive numbers \(N, K\) with a sum of 1"):
            Frequencies(wrong)
    with pytest.raises(InputError, match=r"source: expected shape \(4, 2\), found \(4, 3\)"):
        noise.source((4, 3))


def test_interpolation_keeps_each_row_its_own_share():
    x0, x1 = torch.zeros(3, 40_000, dtype=torch.long), torch.ones(3, 40_000, dtype=torch.long)
    kappa = torch.tensor([0.0, 0.3, 1.0])
    x_t = interpolate(x0, x1, kappa, torch.Generator().manual_seed(0))
    share = x_t.double().mean(-1)
    assert share[0] == 0
    assert abs(share[1] - 0.3) < 4 * (0.3 * 0.7 / 40_000) ** 0.5
    assert share[2] == 1
    assert torch.equal(x_t, interpolate(x0, x1, kappa, torch.Generator().manual_seed(0)))


def test_times_are_stratified_and_stay_off_the_data():
    t = stratified_times(1000, torch.Generator().manual_seed(0))
    strata = t / (1 - 1e-3) * 1000
    assert torch.equal(strata.floor(), torch.arange(1000.0))
    assert len((strata - strata.floor()).mul(1e3).round().unique()) > 500  # each row has its own u
    assert t.min() >= 0
    assert 1 - t.max() >= 1e-3
