"""What a base model minimises: batches by (seed, iteration), fixed and fresh sources, the validation NLL."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from pairflow.flow.corruption import Absorbing, Uniform
from pairflow.training.objectives import Batches, FlowObjective, Labels, Validator

CPU = torch.device("cpu")
UNIFORM = Uniform(10)
MASKS = Absorbing(10, mask=2)


def test_every_epoch_visits_every_row_once():
    batches = Batches(rows=10, batch_size=4, seed=0, device=CPU)
    seen = torch.cat([batches(iteration) for iteration in range(5)])  # two epochs
    assert sorted(seen[:10].tolist()) == list(range(10))
    assert sorted(seen[10:].tolist()) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()


def test_a_batch_is_a_function_of_seed_and_iteration():
    first, later = Batches(7, 3, 5, CPU), Batches(7, 3, 5, CPU)
    expected = [first(iteration).tolist() for iteration in range(6)]
    assert later(5).tolist() == expected[5]
    assert later(2).tolist() == expected[2]
    assert [Batches(7, 3, 6, CPU)(iteration).tolist() for iteration in range(6)] != expected


def test_a_batch_may_be_larger_than_the_data():
    batch = Batches(rows=3, batch_size=8, seed=0, device=CPU)(1)
    assert len(batch) == 8
    assert set(batch.tolist()) == {0, 1, 2}


class Recorder(nn.Module):
    """Uniform logits; keeps the states and the labels that it was shown."""

    def __init__(self, vocabulary_size):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.states, self.labels = [], []

    def forward(self, x_t, sigma, label=None):
        self.states.append(x_t)
        self.labels.append(label)
        return self.bias.expand(*x_t.shape, -1)


def objective(x0, corruption=UNIFORM, loss="nelbo"):
    return FlowObjective(np.full((8, 50), 9), x0, corruption, 8, loss, seed=0, device=CPU)


@pytest.mark.parametrize(
    ("x0", "corruption", "source"),
    [(np.full((8, 50), 4), UNIFORM, 4), (None, MASKS, 2)],
    ids=["fixed", "masks"],
)
def test_a_fixed_source_or_the_mask_is_all_that_shows_beside_the_data(x0, corruption, source):
    network = Recorder(10)
    objective(x0, corruption)(network, 0)
    assert set(network.states[0].unique().tolist()) == {source, 9}


def test_a_fresh_source_is_uniform_and_changes_with_the_iteration():
    network = Recorder(10)
    fresh = objective(None)
    for iteration in range(2):
        fresh(network, iteration)
    fresh(network, 0)
    assert set(network.states[0].unique().tolist()) == set(range(10))
    assert not torch.equal(network.states[0], network.states[1])
    assert torch.equal(network.states[0], network.states[2])


class Knows(nn.Module):
    """Predicts symbol 9 with certainty."""

    def forward(self, x_t, sigma):
        return torch.nn.functional.one_hot(torch.full_like(x_t, 9), 10) * 200.0


def test_validation_nll_is_zero_at_the_truth_and_skips_padding():
    rows = np.full((6, 50), 9)
    assert Validator(rows, UNIFORM, "leave_one_out", None, 0, CPU)(Knows()) == pytest.approx(0.0, abs=1e-6)
    rows[:, 25:] = 3  # what the network gets wrong, were it counted
    assert Validator(rows, UNIFORM, "leave_one_out", 3, 0, CPU)(Knows()) == pytest.approx(0.0, abs=1e-6)
    assert Validator(rows, UNIFORM, "leave_one_out", None, 0, CPU)(Knows()) > 1.0


def test_ignored_padding_has_no_part_in_the_loss_and_slices_add_up_to_it():
    rows = np.full((8, 50), 9)
    rows[:3, 10:] = 3  # symbol 3 is padding, which the network gets wrong
    arguments = (None, UNIFORM, 8, "cross_entropy", 0, CPU)
    whole, ignoring = FlowObjective(rows, *arguments), FlowObjective(rows, *arguments, padding=3)
    assert ignoring(Knows(), 0).item() == pytest.approx(0.0, abs=1e-6)
    assert whole(Knows(), 0).item() > 10
    network = Recorder(10)
    nn.init.normal_(network.bias)
    ignoring(network, 0).backward()
    assert network.bias.grad[3] > 0  # nothing asks for padding
    parts = [slice(0, 2), slice(2, 8)]
    sliced = sum(ignoring(network, 0, part) * (part.stop - part.start) / 8 for part in parts)
    assert sliced.item() == pytest.approx(ignoring(network, 0).item(), rel=1e-6)


class KnowsTheNoise(nn.Module):
    """The posterior of a denoiser that knows nothing but the noise: 1 - alpha + K alpha [x = x_t]."""

    def forward(self, x_t, sigma):
        alpha = (-sigma).exp()[:, None, None]
        return torch.log(1 - alpha + 10 * alpha * torch.nn.functional.one_hot(x_t, 10))


@pytest.mark.parametrize(
    ("corruption", "kind", "network", "symbols"),
    [
        (UNIFORM, "leave_one_out", Recorder(10), 10),
        (UNIFORM, "posterior", KnowsTheNoise(), 10),
        (MASKS, "posterior", Recorder(10), 9),  # one of the ten symbols is the mask, which no row holds
    ],
)
def test_validation_nll_of_knowing_nothing_is_the_entropy_of_the_data(corruption, kind, network, symbols):
    """log K per token for uniform data, up to the clock's two ends, whatever the kind of denoiser."""
    rows = np.random.default_rng(0).integers(0, symbols, (4000, 20))
    rows += (rows >= 2) * (10 - symbols)
    nll = Validator(rows, corruption, kind, None, 0, CPU)(network)
    assert nll == pytest.approx(math.log(symbols), rel=0.02)


def labelled(rows=4000, classes=3):
    x1 = np.full((rows, 2), 9)
    labels = (np.arange(rows) % classes).astype(np.uint8)
    x1[:, 0] = labels  # so that a row says which label is its own
    given = Labels(labels, (classes,), seed=0, device=CPU)
    return FlowObjective(x1, None, MASKS, rows, "nelbo", seed=0, device=CPU, labels=given)


def test_labels_ride_on_their_rows_and_a_tenth_of_them_is_dropped():
    network, conditional = Recorder(10), labelled()
    conditional(network, 0)
    [x_t], [labels] = network.states, network.labels
    dropped, shown = labels == 3, x_t[:, 0] != 2
    assert abs(dropped.double().mean() - 0.1) < 4 * (0.1 * 0.9 / 4000) ** 0.5
    assert torch.equal(x_t[shown & ~dropped, 0], labels[shown & ~dropped])


def test_label_dropout_is_a_function_of_the_iteration_and_disturbs_no_other_draw():
    conditional, network, plain = labelled(), Recorder(10), Recorder(10)
    for iteration in (0, 1, 0):
        conditional(network, iteration)
    first, second, again = network.labels
    assert torch.equal(first, again)
    assert not torch.equal(first == 3, second == 3)
    x1 = conditional.x1.numpy()
    FlowObjective(x1, None, MASKS, len(x1), "nelbo", seed=0, device=CPU)(plain, 0)
    assert torch.equal(plain.states[0], network.states[0])


def test_several_labels_of_a_row_are_dropped_together_and_one_by_one():
    """Each share is a product of probabilities: all are dropped with 0.1, and else each with 0.1."""
    rows = 20_000
    labels = Labels(np.zeros((rows, 2), np.float32), (3, 2), seed=0, device=CPU)
    kept = labels.after_dropout(torch.arange(rows), 0)
    first, second = (kept == torch.tensor([3, 2])).T
    assert ((kept == 0) | torch.stack([first, second], dim=1)).all()
    for dropped, share in ((first, 0.19), (first & second, 0.1 + 0.9 * 0.01), (first & ~second, 0.9 * 0.09)):
        assert abs(dropped.double().mean() - share) < 4 * (share / rows) ** 0.5


def test_slices_of_a_batch_have_the_labels_of_the_batch():
    conditional, network = labelled(rows=20), Recorder(10)
    for rows in (slice(0, 20), slice(0, 7), slice(7, 20)):
        conditional(network, 3, rows)
    whole, *parts = network.labels
    assert torch.equal(whole, torch.cat(parts))
