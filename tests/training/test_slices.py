"""Slices of a batch have the gradients of the whole batch, whichever threads compute them, and when."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch_threads import threads_restored

from pairflow.flow.corruption import Uniform
from pairflow.networks import build
from pairflow.training import slices
from pairflow.training.objectives import FlowObjective
from pairflow.training.slices import Faster, ThreadedSlices, replica

K, N, BATCH = 5, 16, 7
X1 = np.random.default_rng(0).integers(0, K, (60, N)).astype(np.uint8)
SIZES = {"width": 16, "time_width": 8, "dropout": 0.3}
NETWORKS = {
    "transformer": {"name": "transformer", "blocks": 2, "heads": 2, **SIZES},
    "mlp": {"name": "mlp", "blocks": 1, **SIZES},
}


def network(name="transformer"):
    torch.manual_seed(0)
    made = build(NETWORKS[name], length=N, vocabulary_size=K)
    for parameter in made.parameters():  # a network's last layer may begin at zero
        torch.nn.init.normal_(parameter, std=0.2)
    return made.train()


@pytest.fixture
def threads():
    with threads_restored():
        yield torch.set_num_threads


def gradients(name, iteration=0, at_once=None):
    """The loss and the gradients; `at_once` chooses how threads work, else it is as fast as possible."""
    made = network(name)
    objective = FlowObjective(X1, None, Uniform(K), BATCH, "nelbo", 3, torch.device("cpu"))
    with slices.slices(made, BATCH, None, seed=3) as computed:
        if at_once is not None:
            computed.ways.seconds = {at_once: [0.0], not at_once: [1.0]}
            computed.ways.uses = slices.EVERY - 1
        loss = computed.backward(objective.batch(made, iteration), iteration)
    return loss, [parameter.grad for parameter in made.parameters()]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("count", [2, 3, 9])
def test_threads_have_the_gradients_of_one_with_its_dropout(name, count, threads):
    threads(1)
    loss, expected = gradients(name)
    threads(count)
    same, sliced = gradients(name)
    assert same.item() == pytest.approx(loss.item(), rel=1e-5)
    for gradient, value in zip(sliced, expected, strict=True):
        torch.testing.assert_close(gradient, value, rtol=1e-4, atol=1e-5 * value.abs().max().item())


@pytest.mark.parametrize("name", NETWORKS)
def test_slices_at_once_and_in_turn_have_the_same_bits(name, threads):
    threads(3)
    loss, expected = gradients(name, at_once=False)
    for _ in range(5):
        same, at_once = gradients(name, at_once=True)
        assert torch.equal(same, loss)
        assert all(torch.equal(*pair) for pair in zip(at_once, expected, strict=True))


def test_a_replica_learns_with_the_network_and_keeps_its_own_gradients():
    made = network()
    other = replica(made)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 1
    for weight, same in zip(made.parameters(), other.parameters(), strict=True):
        assert torch.equal(weight, same)
    assert other.cos.data_ptr() == made.cos.data_ptr()
    other(torch.zeros(2, N, dtype=torch.long), torch.zeros(2)).sum().backward()
    assert all(weight.grad is None for weight in made.parameters())


def test_a_mistake_in_a_thread_is_raised():
    def broken(network, rows):
        raise ValueError(f"rows {rows.start} to {rows.stop}")

    with ThreadPoolExecutor(2) as pool:
        made = ThreadedSlices(network(), BATCH, 2, 3, pool)
        with pytest.raises(ValueError, match="rows 0 to 3"):
            made.backward(broken, 0)


@pytest.mark.parametrize(("at_once", "in_turn", "expected"), [(1.0, 2.0, True), (2.0, 1.0, False)])
def test_the_faster_way_is_taken_until_the_next_trial(at_once, in_turn, expected, monkeypatch):
    now, ways = [0.0], []
    monkeypatch.setattr(slices.time, "perf_counter", lambda: now[0])
    faster = Faster()
    for _ in range(slices.EVERY + 1):
        with faster.timed() as way:
            now[0] += at_once if way else in_turn
        ways.append(way)
    trials = 2 * slices.TRIALS
    assert ways[:trials] == [True, False] * slices.TRIALS
    assert ways[trials : slices.EVERY] == [expected] * (slices.EVERY - trials)
    assert ways[slices.EVERY]  # the first of the next trial
