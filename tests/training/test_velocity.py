"""Minibatch optimal transport in training: which rows an iteration has, and what shares an assignment."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from pairflow.flow.continuous import velocity_loss
from pairflow.flow.couple.independent import Independent
from pairflow.flow.couple.transport import Transport
from pairflow.training.objectives import Batches, random_generator
from pairflow.training.velocity import VelocityObjective

CPU = torch.device("cpu")
X1 = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
BATCH, SEED = 2, 3


class Still(nn.Module):
    """Predicts that nothing moves."""

    def forward(self, x, t):
        return torch.zeros_like(x)


def objective(pool: int | None) -> VelocityObjective:
    coupling = Transport(pool // BATCH) if pool else Independent()
    return VelocityObjective(X1, None, BATCH, SEED, CPU, coupling)


def noise(iteration: int) -> np.ndarray:
    """The sources that an iteration draws, however its rows are chosen."""
    return torch.randn((BATCH, 2), generator=random_generator(CPU, SEED, "noise", iteration)).numpy()


@pytest.mark.parametrize("pool", [2, 6])
def test_the_batches_of_a_pool_share_the_cheapest_assignment(pool):
    paired, plain = objective(pool), Batches(len(X1), BATCH, SEED, CPU)
    for first in (0, pool // BATCH):  # two pools
        iterations = range(first, first + pool // BATCH)
        x0 = np.concatenate([noise(iteration) for iteration in iterations])
        rows = torch.cat([paired.batches(iteration) for iteration in iterations]).numpy()
        members = torch.cat([plain(iteration) for iteration in iterations]).numpy()
        assert sorted(rows) == sorted(members)
        costs = [((x0 - X1[list(order)]) ** 2).sum() for order in itertools.permutations(members)]
        assert ((x0 - X1[rows]) ** 2).sum() == pytest.approx(min(costs))


def test_a_larger_pool_brings_sources_nearer():
    def cost(pool):
        rows = objective(pool).batches
        return sum(((noise(number) - X1[rows(number)]) ** 2).sum() for number in range(6))

    assert cost(12) < cost(6) < cost(2) < cost(None)


@pytest.mark.parametrize("pool", [None, 2, 6])
def test_the_loss_is_that_of_its_rows_and_a_training_that_resumes_has_it_again(pool):
    calm, resumed = objective(pool), objective(pool)
    expected = [calm(Still(), iteration).item() for iteration in range(9)]
    assert [resumed(Still(), iteration).item() for iteration in (7, 1, 8)] == [expected[i] for i in (7, 1, 8)]
    generator = random_generator(CPU, SEED, "noise", 4)
    x0 = torch.randn((BATCH, 2), generator=generator)
    x1 = torch.from_numpy(X1)[objective(pool).batches(4)]
    assert expected[4] == velocity_loss(torch.zeros_like(x0), x0, x1).mean().item()


def test_a_pool_is_assigned_once_however_many_slices_a_batch_has():
    whole, sliced = objective(6), objective(6)
    halves = [sliced(Still(), 4, slice(row, row + 1)).item() for row in range(BATCH)]
    assert np.mean(halves) == pytest.approx(whole(Still(), 4).item())
