"""The bound on the likelihood, for a small language of which the likelihood is known.

Its sentences are a subject, a verb and an object of three words each; the last symbol, a full stop, occurs in
none. They have the probabilities of a grammar: the verb depends on the subject, the object on the verb.
"""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pairflow.flow.corruption import Absorbing, Frequencies, Uniform
from pairflow.flow.posterior import leave_one_out_to_posterior
from pairflow.training.bound import LARGEST_W, bound_row, compare_classes, stratified_pairs
from pairflow.training.objectives import Validator

K, N = 4, 3
VERBS = {0: {0: 0.5, 1: 0.5}, 1: {2: 1.0}, 2: {1: 0.25, 2: 0.75}}
SENTENCES = torch.tensor(list(itertools.product(range(3), repeat=N)))
WEIGHTS = torch.tensor(
    [VERBS[one].get(two, 0) * VERBS[two].get(three, 0) / 3 for one, two, three in SENTENCES.tolist()],
    dtype=torch.float64,
)
ENTROPY = -torch.special.xlogy(WEIGHTS, WEIGHTS).sum().item() / N  # nats per token
UNIFORM, MASKS = Uniform(K), Absorbing(K)
FREQUENCIES = Frequencies(torch.tensor([[4, 3, 2, 1]] * 2 + [[1, 1, 3, 5]]).double() / 10)


def likelihood(corruption, x_t, alpha):
    """q(x_t^i | x1^i) of every sentence and position, (B, S, N)."""
    match = (x_t[:, None] == SENTENCES).double()
    if corruption is MASKS:
        return alpha * match + (1 - alpha) * (x_t[:, None] == MASKS.mask)
    noise = 1 / K if corruption is UNIFORM else corruption.pi[torch.arange(N), x_t][:, None]
    return alpha * match + (1 - alpha) * noise


def exact(corruption, x_t, alpha):
    """log p(x1^i | x_t), without position i of x_t except for masks. (B, N, symbols)"""
    q = likelihood(corruption, x_t, alpha)
    whole = (q.prod(-1) * WEIGHTS)[..., None].expand(q.shape)
    weights = whole if corruption is MASKS else whole / q
    one_hot = F.one_hot(SENTENCES, corruption.symbols).double()
    return torch.einsum("bsn,snk->bnk", weights / weights.sum(1, keepdim=True), one_hot).log()


def expected_bound(corruption, denoise):
    """The NELBO per token, by all x1 and x_t and a quadrature over alpha."""
    x_t = torch.tensor(list(itertools.product(range(corruption.symbols), repeat=N)))
    nodes, times = np.polynomial.legendre.leggauss(60)
    total = 0.0
    places = (nodes + 1) / 2
    for place, weight in zip(places, 3 * (1 - places) ** 2 * times / 2, strict=True):
        alpha = 1 - (1 - place) ** 3  # the integrand is logarithmic at alpha = 1
        log_p = denoise(corruption, x_t, alpha)
        q = likelihood(corruption, x_t, alpha).prod(-1)  # (B, S)
        for sentence, share, probability in zip(SENTENCES, WEIGHTS, q.T, strict=True):
            if share:
                seen = probability > 0
                x1 = sentence.expand(int(seen.sum()), N)
                bound = corruption.bound(log_p[seen], "leave_one_out", x1, x_t[seen], alpha, 1.0)
                total += weight * float(share * (probability[seen] * bound.sum(-1)).sum())
    return total / N


def softened(corruption, x_t, alpha):
    """A denoiser that is wrong: a tenth of it is spread over all symbols."""
    spread = 0.9 * exact(corruption, x_t, alpha).exp() + 0.1 / K
    if corruption is MASKS:
        seen = F.one_hot(x_t, MASKS.symbols).double()
        spread = torch.where((x_t == MASKS.mask)[..., None], spread, seen)
    return spread.log()


@pytest.mark.parametrize("corruption", [UNIFORM, FREQUENCIES, MASKS], ids=["uniform", "frequencies", "masks"])
def test_the_bound_is_the_entropy_for_the_exact_denoiser_and_above_it_for_another(corruption):
    assert expected_bound(corruption, exact) == pytest.approx(ENTROPY, rel=1e-6)
    assert expected_bound(corruption, softened) > 1.02 * ENTROPY


class Exact(nn.Module):
    """The exact denoiser as a network, which is given sigma = -log alpha, or with masks nothing."""

    def __init__(self, kind, corruption=UNIFORM):
        super().__init__()
        self.kind, self.corruption = kind, corruption

    def forward(self, x_t, sigma):
        sigma = torch.ones_like(sigma) if self.corruption is MASKS else sigma
        alpha = torch.exp(-sigma.double())
        log_p = exact(self.corruption, x_t, alpha[:, None, None])
        if self.kind == "leave_one_out":
            return log_p
        return leave_one_out_to_posterior(log_p, x_t, alpha, self.corruption.pi)


def test_the_validation_measures_this_bound_on_rows_whichever_kind_of_denoiser_it_is_given():
    """Within three standard errors, which are those of heavy tails: 4 % of the bound from 60,000 tokens."""
    drawn = torch.multinomial(WEIGHTS, 20_000, replacement=True, generator=torch.Generator().manual_seed(0))
    bounds = [
        Validator(SENTENCES[drawn].numpy(), UNIFORM, kind, None, 0, torch.device("cpu"))(Exact(kind))
        for kind in ("leave_one_out", "posterior")
    ]
    assert bounds[0] == pytest.approx(ENTROPY, abs=0.06)
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-4)


@pytest.mark.parametrize(
    ("corruption", "kind"),
    [(UNIFORM, "leave_one_out"), (UNIFORM, "posterior"), (FREQUENCIES, "posterior"), (MASKS, "posterior")],
    ids=["uniform", "posterior", "frequencies", "masks"],
)
def test_the_exact_denoiser_gives_each_row_its_own_log_probability_within_the_error(corruption, kind):
    """For the exact denoiser the bound holds with equality, for every single row."""
    deviations = []
    for sentence, probability in zip(SENTENCES.numpy(), WEIGHTS.tolist(), strict=True):
        if probability:
            bound = bound_row(Exact(kind, corruption), corruption, kind, sentence, draws=4000, seed=0)
            deviations.append((bound.value + np.log(probability)) / bound.error)
            assert bound.error < 0.1
    assert len(deviations) == 8
    assert np.abs(deviations).max() < 3.5


def test_the_error_shrinks_with_the_draws_and_is_that_of_repetitions():
    row = SENTENCES[0].numpy()

    def repeat(draws):
        given = (Exact("leave_one_out"), UNIFORM, "leave_one_out", row)
        values, errors, _ = np.array([bound_row(*given, draws=draws, seed=seed) for seed in range(60)]).T
        return values.std(ddof=1), np.sqrt((errors**2).mean())

    (few, stated_few), (many, stated_many) = repeat(16), repeat(256)
    assert stated_few == pytest.approx(few, rel=0.35)
    assert stated_many == pytest.approx(many, rel=0.35)
    assert stated_many < stated_few / 3


def test_the_interval_of_few_draws_holds_the_bound_where_two_standard_errors_do_not():
    """A few levels near the data have most of the variance, so that the error itself is uncertain."""
    network, covered, naive = Exact("leave_one_out"), [], []
    for sentence, probability in zip(SENTENCES.numpy(), WEIGHTS.tolist(), strict=True):
        for seed in range(60 if probability else 0):
            bound = bound_row(network, UNIFORM, "leave_one_out", sentence, draws=16, seed=seed)
            low, high = bound.interval
            covered.append(low <= -np.log(probability) <= high)
            naive.append(abs(bound.value + np.log(probability)) <= 1.96 * bound.error)
            assert 1 <= bound.freedom <= 8
    assert len(covered) == 480
    assert np.mean(naive) < 0.8 < 0.88 < np.mean(covered) < 0.98


def test_a_row_that_the_model_is_sure_of_has_an_interval_without_width():
    def knows(x_t, sigma):  # that every symbol is 1
        return torch.tensor([-1e9, 0.0, -1e9, -1e9, -1e9]).expand(*x_t.shape, MASKS.symbols)

    certain = bound_row(knows, MASKS, "posterior", np.array([1, 1, 1]), draws=16, seed=0)
    assert certain.interval == (certain.value, certain.value) == (0, 0)


def test_a_row_has_its_own_noise_and_padding_may_be_left_out():
    network, row = Exact("leave_one_out"), SENTENCES[0].numpy()
    bound = bound_row(network, UNIFORM, "leave_one_out", row, draws=64, seed=0)
    assert bound == bound_row(network, UNIFORM, "leave_one_out", row.astype(np.uint8), draws=64, seed=0)
    assert bound != bound_row(network, UNIFORM, "leave_one_out", row, draws=64, seed=1)
    text = bound_row(network, UNIFORM, "leave_one_out", row, draws=64, seed=0, padding=int(row[-1]))
    assert text.value < bound.value


def test_each_stratum_has_two_places():
    places = stratified_pairs(8, torch.Generator().manual_seed(0)).view(2, 8)
    assert torch.equal((places / LARGEST_W * 8).floor(), torch.arange(8.0).double().expand(2, 8))


def echo(shift, symbols, x_t, sigma, label=None):
    """Predicts the symbol `shift` after the label with probability 0.9; without a shift it ignores labels."""
    follows = 0.0 if shift is None else F.one_hot((label + shift) % 3, symbols) * 27.0
    return (torch.ones(symbols) + follows).log().expand(*x_t.shape, symbols)


@pytest.mark.parametrize("corruption", [UNIFORM, MASKS])
@pytest.mark.parametrize(("shift", "share"), [(0, 0.75), (1, 0.25), (2, 0), (None, 1 / 3)])
def test_held_out_rows_are_likelier_under_their_class_if_the_network_follows_it(corruption, shift, share):
    """Rows of one symbol, which is their class, or for a quarter the next class; the last have no class."""
    rows = np.repeat(np.arange(3), 8)[:, None].repeat(N, axis=1)
    labels = rows[:, 0].copy()
    labels[::4] = (labels[::4] - 1) % 3
    rows, labels = np.concatenate([rows, rows[:5]]), np.append(labels, [3] * 5)
    compare = partial(compare_classes, partial(echo, shift, corruption.symbols), corruption, rows)
    found = compare(labels, 3, prediction="leave_one_out", seed=0)
    known = {"likelier_in_class": share, "likelier_by_chance": 1 / 3, "likelier_rows": 24}
    assert found == pytest.approx(known)
    assert compare(np.full(29, 3), 3, prediction="leave_one_out", seed=0) == {}
