"""The optimisation loop: its moving average, its schedule, its log, and that it is a function of its seed."""

import itertools

import pytest
import torch
from torch import nn

from pairflow.config import Training
from pairflow.errors import InputError
from pairflow.training.loop import optimise
from pairflow.training.objectives import Objective
from pairflow.training.state import LOG_ROWS, learning_rate_schedule, moving_average


def settings(**changes) -> Training:
    return Training(**{"batch_size": 4, "iterations": 100, "learning_rate": 0.1, "ema_decay": 0.9, **changes})


def test_the_moving_average_warms_up_as_the_protocol_says():
    """Decay min(d, (1 + n) / (10 + n)) at update n = 1, 2, ..., by hand."""
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 0.0)
    average = moving_average(network, decay=0.3)
    expected = 0.0
    for n in range(1, 8):
        nn.init.constant_(network.weight, float(n))
        average.update_parameters(network)
        decay = min(0.3, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * n
        assert average.module.weight.item() == pytest.approx(expected, rel=1e-6)
    assert network.weight.item() == 7.0


def rates(training: Training) -> list[float]:
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], training.learning_rate)
    schedule = learning_rate_schedule(optimizer, training)
    found = []
    for _ in range(training.iterations):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return found


def test_the_learning_rate_warms_up_linearly_then_follows_a_cosine():
    found = rates(settings(warmup_iterations=10, decay="cosine", final_learning_rate=0.02))
    assert found[:10] == pytest.approx([0.01 * i for i in range(1, 11)])
    assert found[10] == pytest.approx(0.1)
    assert found[55] == pytest.approx(0.06)  # halfway down
    assert found[-1] == pytest.approx(0.02, rel=0.01)
    assert all(a >= b for a, b in itertools.pairwise(found[10:]))


def test_the_learning_rate_stays_constant_after_the_warm_up():
    found = rates(settings(warmup_iterations=4))
    assert found[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert found[4:] == pytest.approx([0.1] * 96)
    assert rates(settings()) == pytest.approx([0.1] * 100)


class Quadratic(nn.Module):
    """Its loss is (weight - 3)^2, with dropout noise from torch's global generator."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(0.5)


class SquaredError(Objective):
    def batch(self, network, iteration):
        return lambda network, rows: ((network.weight - 3) ** 2 * network.dropout(torch.ones(8)).mean()).sum()


def trained(objective=SquaredError, seed=0, validate=None, average=None, **changes):
    options = {"seed": seed, "validate": validate, "average": average, "progress": False, "in_slices": False}
    return optimise(Quadratic(), objective(), settings(**changes), **options)


def test_it_finds_the_minimum_and_logs_the_way():
    run = trained(seed=1, iterations=400)
    assert run.network.weight.item() == pytest.approx(3.0, abs=0.05)
    assert run.ema.weight.item() == pytest.approx(3.0, abs=0.05)
    assert len(run.log) <= LOG_ROWS
    assert run.log["iteration"].iloc[-1] == 400
    assert run.log["loss"].iloc[-1] < 0.01 < run.log["loss"].iloc[0]
    assert run.log["seconds"].is_monotonic_increasing
    assert run.log["validation_nll"].isna().all()


def test_equal_seeds_give_equal_bits_and_others_do_not():
    torch.manual_seed(123)
    first = trained(seed=1)
    torch.manual_seed(321)
    second, third = trained(seed=1), trained(seed=2)
    assert first.network.weight.item() == second.network.weight.item()
    assert first.network.weight.item() != third.network.weight.item()


def test_validation_sees_the_averaged_weights_at_the_stated_iterations():
    seen = []

    def validate(network):
        seen.append(network.weight.item())
        return float(len(seen))

    run = trained(validate=validate, validate_every=30)
    measured = run.log.dropna()
    assert measured["iteration"].tolist() == [30, 60, 90, 100]
    assert measured["validation_nll"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert seen[-1] == run.ema.weight.item() != run.network.weight.item()


def test_a_loss_that_is_not_a_number_ends_the_run_in_one_line():
    class Broken(Objective):
        def batch(self, network, iteration):
            factor = float("nan") if iteration > 10 else 1.0
            return lambda network, rows: network.weight.sum() * factor

    with pytest.raises(InputError, match="the loss is not a number at iteration 12: lower the learning rate"):
        trained(Broken)


def test_an_inherited_average_goes_on_with_the_age_and_the_decay_it_had():
    """Its first update moves it by 1 - d, where a fresh one's moves by 1 - 2/11."""
    parent = nn.Linear(1, 1, bias=False)
    nn.init.constant_(parent.weight, 1.0)
    average = moving_average(parent, decay=0.99, updates=10_000)
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 2.0)
    average.update_parameters(network)
    assert average.module.weight.item() == pytest.approx(1.01)


def test_a_run_carries_on_the_average_that_it_is_given():
    shadow = Quadratic()
    nn.init.constant_(shadow.weight, 100.0)
    average = moving_average(shadow, decay=0.999, updates=10_000)
    run = trained(seed=1, average=average, iterations=5)
    assert run.ema is average.module
    assert 99 < run.ema.weight.item() < 100
