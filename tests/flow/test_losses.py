"""The losses of `pairflow.flow.losses`: known values, the small-step KL, and what they are minimised by."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pairflow.flow import losses
from pairflow.flow.corruption import Absorbing, Frequencies, Uniform
from pairflow.flow.losses import absorbing_nelbo, frequency_nelbo, uniform_nelbo
from pairflow.flow.posterior import ancestral_posterior, leave_one_out_to_posterior


def random_batch(vocabulary_size, dtype=torch.float64):
    torch.manual_seed(0)
    log_probabilities = (3 * torch.randn(400, 5, vocabulary_size, dtype=dtype)).log_softmax(-1)
    x1 = torch.randint(vocabulary_size, (400, 5))
    alpha = torch.rand(400, dtype=dtype) * 0.998 + 1e-3
    x_t = torch.where(torch.rand(400, 5) < alpha[:, None], x1, torch.randint(vocabulary_size, (400, 5)))
    return log_probabilities, x1, x_t, alpha


LOSSES = [("uniform", 2), ("uniform", 7), ("uniform", 40), ("frequencies", 7)]


def nelbo_of(noise, vocabulary_size):
    """The NELBO of a noise, and its law pi (N, K)."""
    if noise == "uniform":
        equal = torch.full((5, vocabulary_size), 1 / vocabulary_size, dtype=torch.float64)
        return partial(uniform_nelbo, alpha_derivative=0.999), equal
    pi = (2 * torch.randn(5, vocabulary_size, dtype=torch.float64)).softmax(-1)
    return partial(frequency_nelbo, alpha_derivative=0.999, pi=pi), pi


@pytest.mark.parametrize(("noise", "vocabulary_size"), LOSSES)
def test_nelbo_is_the_equation_and_never_negative(noise, vocabulary_size):
    """The equation of the docstring of `frequency_nelbo`, term by term; with pi = 1 / K it is the other."""
    log_p, x1, x_t, alpha = batch = random_batch(vocabulary_size)
    loss, pi = nelbo_of(noise, vocabulary_size)
    nelbo, level = loss(*batch), alpha[:, None, None]
    xbar, q = (level * p + (1 - level) * pi for p in (F.one_hot(x1, vocabulary_size), log_p.exp()))
    pi_i = pi.expand(q.shape).gather(-1, x_t[..., None])[..., 0]
    a, b = (p / p.gather(-1, x_t[..., None]) for p in (xbar, q))
    expected = 0.999 / alpha[:, None] * pi_i * (a * (a / b).log() - a + b).sum(-1)
    torch.testing.assert_close(nelbo, expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(frequency_nelbo(*batch, 0.999, pi), nelbo)
    assert (nelbo >= 0).all()
    single = loss(log_p.float(), x1, x_t, alpha.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), nelbo, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("noise", ["uniform", "frequencies"])
def test_nelbo_vanishes_at_the_truth_with_finite_gradients(noise):
    _, x1, x_t, alpha = random_batch(7, torch.float32)
    loss, _ = nelbo_of(noise, 7)
    truth = F.one_hot(x1, 7).double().log()  # minus infinity off x1
    assert loss(truth, x1, x_t, alpha.double()).abs().max() < 1e-9
    logits = (200.0 * F.one_hot(x1, 7)).requires_grad_()
    at_truth = loss(logits.log_softmax(-1), x1, x_t, alpha)
    at_truth.mean().backward()
    assert at_truth.abs().max() < 1e-3
    assert logits.grad.isfinite().all()


def test_nelbo_is_the_limit_of_the_kl_over_a_small_step():
    log_probabilities, x1, x_t, alpha = random_batch(7)
    alpha = 0.1 + 0.8 * alpha
    nelbo = uniform_nelbo(log_probabilities, x1, x_t, alpha, 0.999)
    gaps = []
    for step in (1e-4, 1e-5):
        less_noisy = alpha + 0.999 * step
        truth = ancestral_posterior(F.one_hot(x1, 7), x_t, alpha, less_noisy)
        model = ancestral_posterior(log_probabilities.exp(), x_t, alpha, less_noisy)
        kl = (torch.special.xlogy(truth, truth) - torch.special.xlogy(truth, model)).sum(-1)
        gaps.append((kl / step - nelbo).abs().mean() / nelbo.mean())
    assert gaps[1] < 1e-3
    assert 8 < gaps[0] / gaps[1] < 12  # the gap is of the order of the step


K, ALPHA = 3, 0.35
DATA = torch.tensor([[0, 1], [2, 2], [2, 0], [2, 1]])
STATES = torch.tensor(list(itertools.product(range(K), repeat=2)))


PI = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.35, 0.6]], dtype=torch.float64)
EQUAL = torch.full((2, K), 1 / K, dtype=torch.float64)
NOISES = {"uniform": (Uniform(K), EQUAL), "frequencies": (Frequencies(PI), PI)}


def likelihood(x_t, x1, pi):
    return ALPHA * (x_t == x1).double() + (1 - ALPHA) * pi[torch.arange(2), x_t]


def every_pair(pi):
    """All (x1, x_t) of a tiny data set with their probabilities: (P, 2), (P, 2), (P,)."""
    x1 = DATA.repeat_interleave(len(STATES), 0)
    x_t = STATES.repeat(len(DATA), 1)
    return x1, x_t, likelihood(x_t, x1, pi).prod(-1) / len(DATA)


def exact_leave_one_out(pi):
    """log p(x1^i | the other position of x_t), (states, 2, K)."""
    weights = likelihood(STATES[:, None], DATA, pi).flip(-1)  # (S, M, 2): of the other position
    sums = torch.einsum("smn,mnk->snk", weights, F.one_hot(DATA, K).double())
    return (sums / weights.sum(1)[..., None]).log()


def expected_loss(loss, log_probabilities, pi):
    x1, x_t, weight = every_pair(pi)
    per_token = loss(log_probabilities[x_t @ torch.tensor([K, 1])], x1, x_t, ALPHA, 1.0)
    return (weight[:, None] * per_token).sum()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", ["nelbo", "cross_entropy"])
def test_each_loss_is_minimised_by_the_denoiser_that_it_is_said_to_learn(name, noise):
    corruption, pi = NOISES[noise]
    leave_one_out = exact_leave_one_out(pi)
    posterior = leave_one_out_to_posterior(leave_one_out, STATES, ALPHA, pi)
    exact = {"leave_one_out": leave_one_out, "posterior": posterior}
    loss, learns = corruption.losses[name]
    (other,) = set(exact) - {learns}
    best = expected_loss(loss, exact[learns], pi)
    assert best < expected_loss(loss, exact[other], pi) - 1e-3
    torch.manual_seed(0)
    for _ in range(20):
        nearby = (exact[learns].exp() + 0.01 * torch.rand(len(STATES), 2, K)).log()
        assert best < expected_loss(loss, nearby.log_softmax(-1), pi)
    logits = exact[learns].clamp(min=-700).requires_grad_()  # the first position never holds 1: log 0
    expected_loss(loss, logits.log_softmax(-1), pi).backward()
    assert logits.grad.abs().max() < 1e-10


NINE = torch.tensor([[0, 1], [2, 2], [1, 0]])[torch.tensor([0, 0, 1, 2, 0, 1, 2, 1, 1])]  # paired with STATES


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", [0.1, 0.35, 0.9])
def test_for_pairs_the_nelbo_learns_what_converts_into_their_exact_posterior(alpha, noise):
    """Minimised over the predictions at all nine states; this is not the pairs' leave-one-out."""
    corruption, pi = NOISES[noise]
    held = alpha * (STATES[:, None] == NINE) + (1 - alpha) * (STATES[:, None] == STATES).double()  # (S, M, N)
    onehot = F.one_hot(NINE, K).double()

    def mean_over_pairs(weights):  # (S, M, N) -> (S, N, K)
        return torch.einsum("smn,mnk->snk", weights / weights.sum(1, keepdim=True), onehot)

    joint = held.prod(-1)  # of state and pair
    posterior = mean_over_pairs(joint[..., None].expand_as(held))
    leave_one_out = mean_over_pairs(held.flip(-1))
    state, pair = joint.nonzero(as_tuple=True)
    logits = torch.zeros(posterior.shape, dtype=torch.float64, requires_grad=True)
    tolerances = {"tolerance_grad": 1e-9, "tolerance_change": 1e-14}
    optimiser = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe", **tolerances)

    def expected_nelbo():
        optimiser.zero_grad()
        batch = (logits.log_softmax(-1)[state], NINE[pair], STATES[state])
        nelbo = corruption.losses["nelbo"].function(*batch, alpha, 1.0)
        mean = (joint[state, pair, None] * nelbo).sum()
        mean.backward()
        return mean

    optimiser.step(expected_nelbo)
    learnt = logits.detach().log_softmax(-1)
    ratio = posterior / (1 - alpha + alpha / pi * F.one_hot(STATES, K))
    close = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(learnt.exp(), ratio / ratio.sum(-1, keepdim=True), **close)
    converted = leave_one_out_to_posterior(learnt, STATES, alpha, pi).exp()
    torch.testing.assert_close(converted, posterior, **close)
    assert (learnt.exp() - leave_one_out).abs().max() > 0.5


def test_the_mdlm_loss_of_the_exact_denoiser_is_the_entropy_of_the_data():
    """The bound is tight where the denoiser is exact, whatever the order in which positions are unmasked."""
    data = torch.tensor([[0, 1, 1], [2, 2, 0], [2, 2, 1], [1, 0, 0], [2, 2, 1]])  # no symbol is 3, the mask
    entropy = -(0.2 * math.log(0.2)) * 3 - 0.4 * math.log(0.4)  # one row of five comes twice
    shows = torch.tensor(list(itertools.product([False, True], repeat=3)))  # (8, N)
    states = torch.where(shows[:, None], data, 3).flatten(0, 1)  # (8 * 5, N)
    fits = ((states[:, None] == data) | (states[:, None] == 3)).all(-1).double()  # (8 * 5, 5)
    exact = torch.einsum("sm,mnk->snk", fits / fits.sum(1, keepdim=True), F.one_hot(data, 4).double()).log()
    shown, total = shows.sum(1).double(), 0.0
    nodes, weights = np.polynomial.legendre.leggauss(8)
    for alpha, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        probability = alpha**shown * (1 - alpha) ** (3 - shown)  # (8,), of what a state shows
        loss = absorbing_nelbo(exact, data.repeat(8, 1), states, alpha, 1.0).sum(1).view(8, 5).mean(1)
        total += weight * float(probability @ loss)
    assert total == pytest.approx(entropy, rel=1e-12)


def test_the_mdlm_loss_is_zero_where_nothing_is_masked():
    x1, half = torch.tensor([[0, 1]]), torch.tensor([0.5])
    log_p = Absorbing(3, mask=2).log_probabilities(lambda x, _: torch.randn(1, 2, 3), x1, half)
    assert absorbing_nelbo(log_p, x1, x1, half, 1.0).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("alpha", ["rows", 0.3])
def test_a_large_nelbo_is_computed_in_parts_to_the_same_bits(monkeypatch, alpha):
    *batch, alphas = random_batch(40, torch.float32)
    logits = batch[0].clone().requires_grad_()
    level = alphas if alpha == "rows" else alpha

    def value_and_gradient():
        nelbo = uniform_nelbo(logits.log_softmax(-1), *batch[1:], level, 0.999)
        return nelbo.detach(), *torch.autograd.grad(nelbo.mean(), logits)

    whole = value_and_gradient()
    monkeypatch.setattr(losses, "NELBO_VALUES", 150 * 5 * 40)  # 150 of 400 rows
    for part, expected in zip(value_and_gradient(), whole, strict=True):
        assert torch.equal(part, expected)
