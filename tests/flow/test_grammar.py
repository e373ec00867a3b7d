"""`flow.grammar` beside the law of all rows, one by one."""

import itertools
from dataclasses import replace

import pytest
import torch

from pairflow.flow.corruption import Uniform
from pairflow.flow.grammar import Grammar
from pairflow.flow.plan import FREE, SamplingPlan
from pairflow.flow.samplers import Sampler, euler

N, K = 4, 4
ROWS = torch.tensor([*itertools.product(range(K), repeat=N)])
# Brackets: 0 opens, 1 closes, 2 and 3 are other symbols of one class; all brackets are closed at the end.
CLASSES, STATES = torch.tensor([0, 1, 2, 2]), torch.tensor([[1, -1, 0], [2, 0, 1], [-1, 1, 2]])
BALANCED = Grammar(N, CLASSES, STATES, torch.tensor([True, False, False]))


def is_balanced(row):
    depth = 0
    for symbol in row.tolist():
        depth += (symbol == 0) - (symbol == 1)
        if not 0 <= depth <= 2:
            return False
    return depth == 0


ACCEPTED = torch.tensor([is_balanced(row) for row in ROWS])


def random_law(seed, rows=1):
    return torch.rand((rows, N, K), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** 3


def law_of_rows(p):
    """The probability of each row, of those that the grammar accepts."""
    weights = p[torch.arange(N), ROWS].prod(dim=1) * ACCEPTED
    return weights / weights.sum()


def test_rows_are_drawn_by_the_law_of_accepted_rows():
    p, count = random_law(0), 40_000
    drawn = BALANCED.draw(p.expand(count, -1, -1), torch.Generator().manual_seed(1))
    counts = torch.bincount(drawn @ torch.tensor([64, 16, 4, 1]), minlength=K**N).double()
    expected = law_of_rows(p[0])
    assert counts[~ACCEPTED].sum() == 0
    assert ((counts / count - expected).abs() <= 5 * (expected / count).sqrt() + 1e-12).all()


def test_the_mode_is_the_likeliest_accepted_row():
    p = random_law(2, 50)
    best = torch.stack([ROWS[law_of_rows(one).argmax()] for one in p])
    assert torch.equal(BALANCED.mode(p), best)
    assert torch.equal(BALANCED.mode(p.reshape(1, -1, K)), best)  # rows one after another


def test_without_an_accepted_row_positions_are_independent():
    p = random_law(3)
    p[0, 0, [0, 2, 3]] = 0  # begins with a closing bracket
    drawn = BALANCED.draw(p.expand(2000, -1, -1), torch.Generator().manual_seed(4))
    assert (drawn[:, 0] == 1).all()
    share = torch.stack([(drawn[:, 1:] == symbol).double().mean(0) for symbol in range(K)], dim=1)
    assert torch.allclose(share, p[0, 1:] / p[0, 1:].sum(-1, keepdim=True), atol=0.05)
    assert torch.equal(BALANCED.mode(p), p.argmax(-1))


def flat(x_t, kappa, where=None):
    logits = random_law(5).log().expand(len(x_t), -1, -1).float()
    return logits.log_softmax(-1) if where is None else logits.log_softmax(-1)[where]


@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("sampler", [euler, Uniform(K).sampler("ancestral")])
def test_the_last_update_and_the_greedy_tail_make_only_accepted_rows(sampler: Sampler, rows):
    noise = Uniform(K).source((300, N), torch.Generator().manual_seed(6))
    plan = SamplingPlan(steps=3, prediction="posterior", grammar=BALANCED, greedy_tail=False)
    drawn = sampler(flat, noise, plan, generator=torch.Generator().manual_seed(7), rows=rows)
    assert all(map(is_balanced, drawn))
    assert len(drawn.unique(dim=0)) > 10
    best = sampler(flat, noise, replace(plan, greedy_tail=True), rows=rows)
    expected = BALANCED.mode(flat(noise[:1], None).double().softmax(-1))
    assert torch.equal(best, expected.expand_as(best))
    fixed = torch.tensor([FREE, 0, FREE, FREE])
    kept = sampler(flat, noise, replace(plan, given=fixed), rows=rows)
    assert (kept[:, 1] == 0).all()
    assert all(map(is_balanced, kept))
