"""Optimal transport inside a batch, of tokens and of numbers: the cheapest assignment, by class; resuming."""

import itertools

import numpy as np
import pytest
import torch

from pairflow.config import BASES
from pairflow.flow.continuous import velocity_loss
from pairflow.flow.corruption import Uniform
from pairflow.flow.couple import COUPLINGS, Independent, Transport, minibatch_ot
from pairflow.training.objectives import Batches, FlowObjective, Labels, PairObjective
from pairflow.training.velocity import VelocityObjective

CPU, K, N, BATCH, SEED, ROWS = torch.device("cpu"), 5, 8, 3, 3, 13
RANDOM = np.random.default_rng(0)
X1 = {
    "tokens": RANDOM.integers(0, K, (ROWS, N)).astype(np.uint8),
    "numbers": RANDOM.normal(size=(ROWS, 2)).astype(np.float32),
}
CLASSES = np.arange(ROWS) % 2


def objective(flow: str, pool: int | None, labels: np.ndarray | None = None) -> PairObjective:
    coupling = Transport(pool // BATCH) if pool else Independent()
    if flow == "numbers":
        return VelocityObjective(X1[flow], None, BATCH, SEED, CPU, coupling)
    known = None if labels is None else Labels(labels, (2,), SEED, CPU)
    shared = {"labels": known, "coupling": coupling}
    return FlowObjective(X1[flow], None, Uniform(K), BATCH, "nelbo", SEED, CPU, **shared)


def network(flow: str):
    """One that predicts each symbol alike, or that nothing moves."""
    return lambda x_t, t: torch.zeros_like(x_t) if flow == "numbers" else torch.zeros(*x_t.shape, K)


def sources(flow: str, first: int, count: int) -> np.ndarray:
    """The sources that some iterations draw, however their rows are chosen."""
    drawn = objective(flow, None)
    return torch.cat([drawn.draw(drawn.generator(first + number)) for number in range(count)]).numpy()


def cost(flow: str, x0: np.ndarray, rows) -> float:
    """Mismatches of tokens, or squared distances."""
    x1 = X1[flow][np.asarray(rows)]
    return float((x0 != x1).sum() if flow == "tokens" else ((x0 - x1) ** 2).sum())


@pytest.mark.parametrize(("flow", "labels"), [("tokens", None), ("tokens", CLASSES), ("numbers", None)])
@pytest.mark.parametrize("pool", [3, 6])
def test_the_batches_of_a_pool_share_the_cheapest_assignment_that_its_classes_allow(flow, pool, labels):
    paired, plain = objective(flow, pool, labels), Batches(ROWS, BATCH, SEED, CPU)
    count = pool // BATCH
    for first in (0, count, 4 * count):
        rows = torch.cat([paired.batches(first + number) for number in range(count)]).numpy()
        members = torch.cat([plain(first + number) for number in range(count)]).numpy()
        assert sorted(rows) == sorted(members)
        kept = np.zeros(len(members), int) if labels is None else labels[members]
        if labels is not None:
            assert np.array_equal(labels[rows], kept)  # sources know nothing of the classes
        x0 = sources(flow, first, count)
        orders = (list(order) for order in itertools.permutations(range(len(members))))
        costs = [cost(flow, x0, members[order]) for order in orders if np.array_equal(kept[order], kept)]
        assert cost(flow, x0, rows) == pytest.approx(min(costs))


@pytest.mark.parametrize("flow", X1)
def test_a_larger_pool_brings_sources_nearer(flow):
    def total(pool):
        rows = objective(flow, pool).batches
        return sum(cost(flow, sources(flow, number, 1), rows(number)) for number in range(12))

    assert total(36) < total(12) < total(3) < total(None)


@pytest.mark.parametrize("flow", X1)
@pytest.mark.parametrize("pool", [None, 3, 6])
def test_a_training_that_resumes_and_one_in_slices_have_the_same_pairs_and_losses(flow, pool):
    calm, resumed = objective(flow, pool), objective(flow, pool)
    expected = [calm(network(flow), iteration).item() for iteration in range(9)]
    again = [resumed(network(flow), iteration).item() for iteration in (7, 1, 8)]
    assert again == [expected[iteration] for iteration in (7, 1, 8)]
    rows = [slice(row, row + 1) for row in range(BATCH)]
    parts = [objective(flow, pool)(network(flow), 4, row).item() for row in rows]
    assert np.mean(parts) == pytest.approx(expected[4])
    if flow == "numbers":
        x0, x1 = sources(flow, 4, 1), X1[flow][objective(flow, pool).batches(4)]
        still = velocity_loss(torch.zeros(BATCH, 2), torch.from_numpy(x0), torch.from_numpy(x1))
        assert expected[4] == still.mean().item()


def test_of_equal_costs_no_row_is_preferred_by_its_number():
    """All sources are as far from all rows, so that any order will do: each row meets each place as often."""
    rows, counts = np.eye(4, dtype=np.uint8) + 1, np.zeros((4, 4))
    generator = np.random.default_rng(1)
    for _ in range(4000):
        members = generator.permutation(4)  # as the batches of a training are drawn
        counts[np.arange(4), members[minibatch_ot(np.zeros((4, 4), np.uint8), rows[members])]] += 1
    # Each count is binomial (4,000 trials, 1/4): five standard deviations are 137.
    assert np.abs(counts - 1000).max() < 137


def test_every_coupling_of_a_method_is_in_the_list():
    drawn = [base.couple for base in BASES.values() if not base.balanced]
    assert {*drawn} == {*COUPLINGS}
