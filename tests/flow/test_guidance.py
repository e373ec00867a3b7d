"""Classifier-free guidance, given the exact denoisers of a tiny data set with labels.

The reference enumerates: Bayes' rule over the data points gives a position's reverse transition, once with
all data points and once with those of a label, and the guided one is their power law. With masks the law is
that of the symbol which a mask turns into.
"""

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from pairflow.flow.corruption import Absorbing, Uniform
from pairflow.flow.plan import LAST_TIME, SamplingPlan
from pairflow.flow.samplers import FREE, ancestral, euler, unmask
from pairflow.flow.schedule import DIFFUSION, Linear

K, MASK = 4, 3
DATA = torch.tensor([[0, 1], [2, 2], [1, 0], [2, 2], [0, 2], [1, 1]])
OF_LABEL = DATA[torch.tensor([True, True, False, True, False, True])]  # those of the label y
WEIGHTS = (0.5, 2.0, 3.5)
FROM_NOISE = Linear(0.0)  # kappa(0) = 0, so that one step starts from noise that knows nothing
STATES = torch.tensor(list(itertools.product(range(K), repeat=2)))


def noised(x1, alpha, masked):
    """q(x_t | x1) for every x_t: (..., K)."""
    noise = F.one_hot(torch.tensor(MASK), K).double() if masked else torch.full((K,), 1 / K).double()
    return alpha * F.one_hot(x1, K).double() + (1 - alpha) * noise


def weights_of(data, x_t, alpha, masked):
    """p(data point | x_t): (B, M), and zero for states that no data point leads to."""
    seen = noised(data, alpha, masked)[None].expand(len(x_t), -1, -1, -1)  # (B, M, N, K)
    index = x_t[:, None, :, None].expand(-1, len(data), -1, 1)
    likelihood = seen.gather(-1, index)[..., 0].prod(-1)
    return likelihood / likelihood.sum(1, keepdim=True).clamp(min=1e-300)


def posterior(data, masked):
    """The exact posterior denoiser, in float64."""

    def denoise(x_t, kappa):
        weights = weights_of(data, x_t, kappa.double()[0], masked)
        return torch.einsum("bm,mnk->bnk", weights, F.one_hot(data, K).double()).log()

    return denoise


def reverse(data, x_t, alpha_t, alpha_s, masked):
    """p(x_s^i | x_t) by enumeration: the sum over data points of p(x1 | x_t) q(x_s^i | x_t^i, x1^i)."""
    step = alpha_t / alpha_s
    forward = torch.stack([noised(torch.tensor(k), step, masked) for k in range(K)])  # (x_s, x_t)
    if masked:
        forward[MASK] = F.one_hot(torch.tensor(MASK), K).double()  # a mask stays one
    before = noised(data, alpha_s, masked)  # (M, N, x_s)
    bridge = before[None] * forward.T[x_t][:, None]  # (B, M, N, x_s)
    bridge = bridge / bridge.sum(-1, keepdim=True).clamp(min=1e-300)
    return torch.einsum("bm,bmnk->bnk", weights_of(data, x_t, alpha_t, masked), bridge)


def power_law(conditional, unconditional, weight):
    guided = conditional**weight * torch.where(unconditional > 0, unconditional ** (1 - weight), 0.0)
    return guided / guided.sum(-1, keepdim=True)


def transition(sampler, x_t, alpha_t, alpha_s, denoisers, weight=1.0, prediction="posterior"):
    """The law of x_s, by the conditional denoiser and, with another weight than 1, the unconditional one."""
    plan = SamplingPlan(steps=1, prediction=prediction, guidance=weight, schedule=FROM_NOISE)
    kappa = torch.full((len(x_t),), alpha_t)
    return sampler.transition(x_t, [denoise(x_t, kappa) for denoise in denoisers], alpha_t, alpha_s, plan)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_guided_transition_is_the_power_law_of_the_exact_reverse_transitions(weight):
    denoisers = [posterior(OF_LABEL, False), posterior(DATA, False)]
    for alpha_t, alpha_s in ((0.25, 0.5), (0.5, 0.875)):  # exact in float32
        q = transition(ancestral, STATES, alpha_t, alpha_s, denoisers, weight)
        parts = [reverse(data, STATES, alpha_t, alpha_s, False) for data in (OF_LABEL, DATA)]
        torch.testing.assert_close(q, power_law(*parts, weight), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_with_masks_guidance_changes_the_symbols_and_not_when_they_appear(weight):
    """Given that it loses its mask, a position is drawn from the power law of the exact transitions."""
    x_t = STATES[weights_of(OF_LABEL, STATES, 0.5, True).sum(1) > 0]  # in which noised data points can be
    denoisers = [posterior(OF_LABEL, True), posterior(DATA, True)]
    for alpha_t, alpha_s in ((0.25, 0.5), (0.5, 0.875)):
        q = transition(unmask, x_t, alpha_t, alpha_s, denoisers, weight)
        parts = [reverse(data, x_t, alpha_t, alpha_s, True) for data in (OF_LABEL, DATA)]
        torch.testing.assert_close(q[..., MASK], parts[0][..., MASK], rtol=1e-12, atol=1e-14)
        shown = [F.normalize(part[..., :MASK], p=1, dim=-1) for part in parts]
        guided = F.normalize(q[..., :MASK], p=1, dim=-1)
        torch.testing.assert_close(guided, power_law(*shown, weight), rtol=1e-12, atol=1e-14)


def share_of_the_class(guides_symbols, weight):
    """How many whole rows that are drawn in two steps occur with the label.

    The denoisers are defined for rows that no data point leads to, as a network's are.
    """

    def read(data):
        def network(x_t, sigma):
            return (posterior(data, True)(x_t, torch.full((1,), 0.5)).exp() + 1e-12).log()

        return partial(Absorbing(K, MASK).log_probabilities, network)

    sampler = replace(unmask, guides_symbols=guides_symbols)
    law = law_after(sampler, 2, True, [read(OF_LABEL), read(DATA)], weight)
    return law[(STATES[:, None] == OF_LABEL).all(-1).any(-1)].sum()


def test_guiding_the_symbols_of_masks_keeps_more_rows_right_than_guiding_their_transitions():
    """Transitions that are guided unmask more at once, while less is known of the other positions."""
    assert share_of_the_class(True, 3.5) > share_of_the_class(False, 3.5) + 0.01


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_euler_update_is_guided_in_its_own_transitions(weight):
    alpha_t, alpha_s = 0.25, 0.5
    denoisers = [posterior(OF_LABEL, False), posterior(DATA, False)]
    q = transition(euler, STATES, alpha_t, alpha_s, denoisers, weight)
    leave, stay = (alpha_s - alpha_t) / (1 - alpha_t), F.one_hot(STATES, K).double()
    kappa = torch.full((len(STATES),), alpha_t)
    parts = [(1 - leave) * stay + leave * denoise(STATES, kappa).exp() for denoise in denoisers]
    torch.testing.assert_close(q, power_law(*parts, weight), rtol=1e-12, atol=1e-14)


def law_after(sampler, steps, masked, denoisers, weight=1.0):
    """Probability of every state after the updates, carried through the sampler's transitions."""
    probability = (STATES == MASK).all(-1).double() if masked else torch.full((K**2,), K**-2.0).double()
    for t, s in itertools.pairwise(SamplingPlan(steps=steps, prediction="posterior").times):
        q = transition(sampler, STATES[probability > 0], t, s, denoisers, weight)
        step = torch.stack([q[:, i, STATES[:, i]] for i in range(2)]).prod(0)
        probability = probability[probability > 0] @ step
    return probability


CASES = {"ancestral": (ancestral, False), "euler": (euler, False), "mdlm": (unmask, True)}


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_weight_0_is_the_unconditional_sampler_and_weight_1_the_conditional_one(name, steps):
    sampler, masked = CASES[name]
    conditional, unconditional = (posterior(data, masked) for data in (OF_LABEL, DATA))

    def rows(denoise, weight=1.0, plain=None):
        plan = SamplingPlan(steps=steps, prediction="posterior", guidance=weight)
        x0 = torch.full((500, 2), MASK) if masked else STATES.repeat(32, 1)
        return sampler(denoise, x0, plan, unconditional=plain, generator=torch.Generator().manual_seed(0))

    drawn = [rows(conditional, weight, unconditional) for weight in (0.0, 1.0)]
    assert torch.equal(drawn[0], rows(unconditional))
    assert torch.equal(drawn[1], rows(conditional))
    assert not torch.equal(*drawn)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", CASES)
def test_one_step_draws_every_position_from_the_power_law_of_its_marginals(name, weight):
    """Up to the noise that is left at the last time. The positions are independent in one step."""
    sampler, masked = CASES[name]
    law = law_after(sampler, 1, masked, [posterior(data, masked) for data in (OF_LABEL, DATA)], weight)
    marginals = [F.one_hot(data, K).double().mean(0) for data in (OF_LABEL, DATA)]  # (N, K)
    each = power_law(*marginals, weight)
    expected = each[0, STATES[:, 0]] * each[1, STATES[:, 1]]
    torch.testing.assert_close(law, expected, rtol=0, atol=1e-2 if weight < 1 else 1e-4)


def counted(denoise, calls, name):
    def call(x_t, kappa):
        calls.append(name)
        return denoise(x_t, kappa)

    return call


@pytest.mark.parametrize(("weight", "names"), [(0.0, {"u"}), (1.0, {"c"}), (2.0, {"c", "u"})])
def test_a_denoiser_whose_exponent_is_zero_is_not_called(weight, names):
    calls = []
    conditional = counted(posterior(OF_LABEL, False), calls, "c")
    unconditional = counted(posterior(DATA, False), calls, "u")
    plan = SamplingPlan(steps=3, prediction="posterior", guidance=weight)
    ancestral(conditional, STATES, plan, unconditional=unconditional)
    assert set(calls) == names
    assert len(calls) == 4 * len(names)  # 3 steps and the greedy tail


def test_the_greedy_tail_takes_the_mode_of_the_guided_prediction():
    plan = SamplingPlan(steps=2, prediction="posterior", guidance=2.0)
    draw = partial(ancestral, posterior(OF_LABEL, False), STATES, unconditional=posterior(DATA, False))
    last, greedy = (
        draw(replace(plan, greedy_tail=tail), generator=torch.Generator().manual_seed(0))
        for tail in (False, True)
    )
    kappa = torch.full((len(last),), float(DIFFUSION.kappa(torch.tensor(LAST_TIME))))
    parts = [posterior(data, False)(last, kappa).exp() for data in (OF_LABEL, DATA)]
    assert torch.equal(greedy, power_law(*parts, 2.0).argmax(-1))


def test_guidance_respects_what_the_conditional_denoiser_allows():
    """A trained network may contradict itself; exact denoisers do not."""
    allow = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]])  # conditional, unconditional
    denoisers = [lambda x_t, kappa, p=p: p.double().expand(len(x_t), 2, K).log() for p in allow]
    q = transition(euler, STATES[:1] + MASK, 0.25, 0.5, denoisers, 2.0)
    torch.testing.assert_close(q[0, 0], F.one_hot(torch.tensor(0), K).double())


@pytest.mark.parametrize("corruption", [Uniform(K), Absorbing(K, MASK)], ids=["uniform", "absorbing"])
def test_a_corruption_guides_towards_a_label_and_keeps_given_symbols(corruption):
    def likes_0(x_t, sigma, label=None):
        logits = [0.0, 0.0, 0.0, 0.0] if label is None else [3.0, 0.0, 0.0, 0.0]
        return torch.tensor(logits).expand(*x_t.shape, K)

    x0 = corruption.source((4000, 2), torch.Generator().manual_seed(0))
    asked = {"given": torch.tensor([FREE, 2]), "labels": torch.tensor(1), "greedy_tail": False}
    shares = []
    for weight in (0.0, 1.0, 2.0):
        plan = SamplingPlan(steps=1, prediction="posterior", guidance=weight, **asked)
        x = corruption.sample(likes_0, x0, plan, torch.Generator().manual_seed(1))
        assert (x[:, 1] == 2).all()
        shares.append((x[:, 0] == 0).double().mean())
    assert shares[0] < 0.4 < 0.8 < shares[1] < shares[2]


# Two labels of each row: whether the first symbol is 0, and whether the second one is 1. `SQUARE` are all
# rows of three symbols, whose positions are independent; in DATA the labels depend on one another.
SQUARE = torch.tensor(list(itertools.product(range(3), repeat=2)))
ANY = 2  # no label


def having(data, first, second):
    """The rows with the labels that are asked for."""
    own = torch.stack([data[:, 0] == 0, data[:, 1] == 1], dim=1).long()
    asked = torch.tensor([first, second])
    return data[((own == asked) | (asked == ANY)).all(1)]


@pytest.mark.parametrize("weight", [1.0, *WEIGHTS])
def test_several_labels_multiply_the_ratios_of_one_after_another(weight):
    """p(x | y, z) / p(x) is p(x | y) / p(x) times p(x | y, z) / p(x | y). The last factor is p(x | z) / p(x)
    only if the labels are independent. An exact conditional network is asked for both at once."""
    alpha_t, alpha_s = 0.25, 0.5

    def network(x_t, sigma, label=None):  # the exact denoiser of the rows with a label
        data_of = having(data, *(label[0].tolist() if label is not None else (ANY, ANY)))
        return posterior(data_of, False)(x_t, (-sigma).exp())

    for data, independent in ((SQUARE, True), (DATA, False)):
        corruption = Uniform(K)
        denoisers = [corruption.denoiser(network, label) for label in (torch.tensor([[1, 1]]), None)]
        q = transition(ancestral, STATES, alpha_t, alpha_s, denoisers[: 1 if weight == 1 else 2], weight)
        none, first, second, both = (
            reverse(having(data, *labels), STATES, alpha_t, alpha_s, False)
            for labels in ((ANY, ANY), (1, ANY), (ANY, 1), (1, 1))
        )
        chained = F.normalize(none * (first / none * both / first) ** weight, p=1, dim=-1)
        torch.testing.assert_close(q, chained, rtol=0, atol=1e-6)
        separate = F.normalize(none * (first / none * second / none) ** weight, p=1, dim=-1)
        assert torch.allclose(q, separate, rtol=0, atol=1e-6) == independent
