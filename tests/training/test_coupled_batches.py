"""Optimal transport of tokens inside a batch: the cheapest assignment, by class, also when it resumes."""

import itertools

import numpy as np
import pytest
import torch

from pairflow.config import BaseTraining, parse_method
from pairflow.flow.corruption import Uniform
from pairflow.flow.couple.independent import Independent
from pairflow.flow.couple.transport import Transport, minibatch_ot
from pairflow.training.objectives import Batches, FlowObjective, Labels, random_generator

CPU, K, N, BATCH, SEED = torch.device("cpu"), 5, 8, 3, 3
X1 = np.random.default_rng(0).integers(0, K, (13, N)).astype(np.uint8)
CLASSES = np.arange(13) % 2


def objective(pool: int | None, labels: np.ndarray | None = None) -> FlowObjective:
    coupling = Transport(pool // BATCH) if pool else Independent()
    known = None if labels is None else Labels(labels, 2, SEED, CPU)
    return FlowObjective(X1, None, Uniform(K), BATCH, "nelbo", SEED, CPU, labels=known, coupling=coupling)


def sources(first: int, count: int) -> np.ndarray:
    """The sources that some iterations draw, however their rows are chosen."""
    generators = [random_generator(CPU, SEED, "noise", first + number) for number in range(count)]
    return torch.cat([Uniform(K).source((BATCH, N), generator, CPU) for generator in generators]).numpy()


def mismatches(x0: np.ndarray, rows) -> int:
    return int((x0 != X1[np.asarray(rows.tolist())]).sum())


@pytest.mark.parametrize("labels", [None, CLASSES])
@pytest.mark.parametrize("pool", [3, 6])
def test_a_pool_has_the_fewest_mismatches_that_its_classes_allow(pool, labels):
    paired, plain = objective(pool, labels), Batches(len(X1), BATCH, SEED, CPU)
    count = pool // BATCH
    for first in (0, count, 4 * count):
        rows = torch.cat([paired.batches(first + number) for number in range(count)]).numpy()
        members = torch.cat([plain(first + number) for number in range(count)]).numpy()
        assert sorted(rows) == sorted(members)
        kept = np.zeros(len(members), int) if labels is None else labels[members]
        if labels is not None:
            assert np.array_equal(labels[rows], kept)  # sources know nothing of the classes
        x0 = sources(first, count)
        orders = (list(order) for order in itertools.permutations(range(len(members))))
        costs = [mismatches(x0, members[order]) for order in orders if np.array_equal(kept[order], kept)]
        assert mismatches(x0, rows) == min(costs)


def test_a_larger_pool_brings_sources_nearer():
    def cost(pool):
        return sum(mismatches(sources(number, 1), objective(pool).batches(number)) for number in range(12))

    assert cost(36) < cost(12) < cost(3) < cost(None)


def test_a_training_that_resumes_has_the_same_pairs_and_losses():
    network = lambda x_t, sigma: torch.zeros(*x_t.shape, K)  # noqa: E731
    calm, resumed = objective(6), objective(6)
    expected = [calm(network, iteration).item() for iteration in range(9)]
    assert [resumed(network, iteration).item() for iteration in (7, 1, 8)] == [expected[i] for i in (7, 1, 8)]


def test_of_equal_costs_no_row_is_preferred_by_its_number():
    """All sources are as far from all rows, so that any order will do: each row meets each place as often."""
    rows, counts = np.eye(4, dtype=np.uint8) + 1, np.zeros((4, 4))
    generator = np.random.default_rng(1)
    for _ in range(4000):
        members = generator.permutation(4)  # as the batches of a training are drawn
        counts[np.arange(4), members[minibatch_ot(np.zeros((4, 4), np.uint8), rows[members])]] += 1
    # Each count is binomial (4,000 trials, 1/4): five standard deviations are 137.
    assert np.abs(counts - 1000).max() < 137


def test_ot_is_a_base_of_both_flows_that_every_distillation_of_tokens_continues():
    assert parse_method("ot").flows == ("discrete", "continuous")
    assert parse_method("ot").coupling is None
    for name in ("ot+dcd", "ot+redi", "ot+redi+redi"):
        assert parse_method(name).flows == ("discrete",)
    how = {"batch_size": 4, "iterations": 1, "learning_rate": 1e-3}
    assert [BaseTraining(**how, pool=pool).pooled_batches for pool in (None, 4, 12)] == [1, 1, 3]
