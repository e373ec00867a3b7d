"""What the functions of `pairflow.flow` are given: a mistake is one line, and what is harmless is taken."""

import re

import numpy as np
import pytest
import torch

from pairflow.config import SAMPLERS, SOLVERS
from pairflow.errors import InputError
from pairflow.flow import continuous
from pairflow.flow.continuous import solve
from pairflow.flow.corruption import Absorbing, Uniform, interpolate
from pairflow.flow.couple import minibatch_ot
from pairflow.flow.duality import shared_noise, transform
from pairflow.flow.losses import absorbing_nelbo, cross_entropy, uniform_nelbo
from pairflow.flow.plan import SamplingPlan
from pairflow.flow.posterior import (
    PREDICTIONS,
    ancestral_posterior,
    leave_one_out_to_posterior,
    posterior_to_leave_one_out,
)
from pairflow.flow.samplers import ancestral
from pairflow.flow.schedule import Linear
from pairflow.training.objectives import FlowObjective

K = 5
UNIFORM, MASKED = Uniform(K), Absorbing(K, 4)
ROWS = torch.tensor([[0, 1, 2], [3, 2, 0]])
LOG_P = torch.randn(2, 3, K, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
POINTS = torch.tensor([[0.0, 1.0], [2.0, 3.0]])


def network(x_t, sigma, label=None):
    return torch.zeros(*x_t.shape, K)


def wide(x_t, sigma):
    return torch.zeros(*x_t.shape, 7)


def sample(corruption=UNIFORM, model=network, x0=ROWS, generator=None, **changes):
    settings = {"steps": 2, "prediction": "leave_one_out"}
    return corruption.sample(model, x0, SamplingPlan(**settings | changes), generator)


def draw(x0):
    """By the sampler itself, without a corruption."""
    return ancestral(lambda x_t, kappa: LOG_P, x0, SamplingPlan(steps=1, prediction="posterior"))


def decay(x, t):
    return -x


def one_of(names):
    return f"expected one of {', '.join(names)}"


MISTAKES = {  # a message -> the changed arguments of `sample`, or another call
    f"sampler: {one_of(SAMPLERS)}, found 'eular' (did you mean 'euler'?)": {"sampler": "eular"},
    f"prediction: {one_of(PREDICTIONS)}, found 'nelbo'": {"prediction": "nelbo"},
    "conversion: expected one of exact, none, found 'exakt' (did you mean 'exact'?)": {"conversion": "exakt"},
    "steps: expected an integer in 1..1000000, found 0": {"steps": 0},
    "temperature: expected a number from 0.01 to 100, found nan": {"temperature": float("nan")},
    "guidance: expected a number from 0 to 100, found -1": {"guidance": -1},
    "guidance: expected 1 where there is no label, found 2.0": {"guidance": 2.0},
    "labels: expected a number or shape (2,), found shape (3,)": {"labels": torch.zeros(3).long()},
    "labels: expected an integer dtype, found torch.float32": {"labels": torch.tensor(0.5)},
    "network: expected shape (2, 3, 5), found (2, 3, 7)": {"model": wide},
    "x0: expected tokens in 0..4, found 7": {"x0": torch.tensor([[0, 7, 1]])},
    "x0: expected tokens (B, N), found shape (3,)": {"x0": ROWS[0]},
    "x0: expected an integer dtype, found torch.float32": {"x0": ROWS.float()},
    "x0: expected a torch tensor of integers, found ndarray": {"x0": ROWS.numpy()},
    "given: expected shape (3,), found (2,)": {"given": torch.tensor([-1, 0])},
    "given: expected tokens in -1..4, found 5": {"given": torch.tensor([-1, 0, 5])},
    "denoiser: expected shape (1, 3, 5), found (2, 3, 5)": lambda: draw(ROWS[:1]),
    "vocabulary_size: expected an integer in 2..65536, found '5'": lambda: Absorbing("5"),
    "mask: expected an integer in 0..4, found 5": lambda: Absorbing(5, 5),
    "x_t: expected tokens (B, N), found shape (2, 3, 1)": lambda: UNIFORM.log_probabilities(
        network, ROWS[..., None], 0.5
    ),
    "kappa: expected a number or shape (2,), found shape (3,)": lambda: interpolate(
        ROWS, ROWS, torch.rand(3)
    ),
    "x0: expected shape (2, 3), found (1, 3)": lambda: interpolate(ROWS[:1], ROWS, 0.5),
    "x1: expected shape (2, 3), found (1, 3)": lambda: uniform_nelbo(LOG_P, ROWS[:1], ROWS, 0.5, 1.0),
    "x1: expected an integer dtype, found torch.bool": lambda: cross_entropy(LOG_P, ROWS > 1),
    "level of noise: expected a number or shape (2,), found shape (3,)": lambda: absorbing_nelbo(
        LOG_P, ROWS, ROWS, torch.rand(3), 1.0
    ),
    "start: expected a number in [0, 1), found 1.5": lambda: Linear(1.5),
    "vocabulary_size: expected an integer in 2..65537, found 0": lambda: transform(0.0, 0),
    "x1: expected tokens (B, N), found shape (6,)": lambda: shared_noise(ROWS.flatten(), K),
    f"solver: {one_of(SOLVERS)}, found 'huen' (did you mean 'heun'?)": lambda: solve(
        decay, POINTS, 2, "huen"
    ),
    "steps: expected an integer in 1..1000000, found -1": lambda: solve(decay, POINTS, -1),
    "velocity: expected shape (2, 2), found (2, 1)": lambda: solve(lambda x, t: x[:, :1], POINTS, 2),
    "x1: expected shape (2, 2), found (1, 2)": lambda: continuous.interpolate(POINTS, POINTS[:1], 0.5),
    "t: expected a number or shape (2,), found shape (2, 1)": lambda: continuous.interpolate(
        POINTS, POINTS, torch.rand(2, 1)
    ),
    "x1: expected shape (2, 2), found (3, 2)": lambda: minibatch_ot(POINTS, torch.zeros(3, 2)),
    "x0 and x1: expected finite numbers, whose squared distances are finite": lambda: minibatch_ot(
        POINTS, POINTS / 0
    ),
    f"loss: {one_of(UNIFORM.losses)}, found 'nebo' (did you mean 'nelbo'?)": lambda: FlowObjective(
        ROWS.numpy(), None, UNIFORM, 2, "nebo", 0, torch.device("cpu")
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_line(message):
    call = MISTAKES[message]
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        sample(**call) if isinstance(call, dict) else call()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16], ids=str)
def test_tokens_of_every_integer_dtype_are_taken(dtype):
    """Such as the uint8 rows that `pairflow.pair` returns."""
    small, noise = ROWS.to(dtype), torch.Generator()
    calls = (
        lambda rows: uniform_nelbo(LOG_P, rows, rows, 0.5, 0.999),
        lambda rows: absorbing_nelbo(LOG_P, rows, rows, 0.5, 0.999),
        lambda rows: ancestral_posterior(LOG_P.exp(), rows, 0.2, 0.4),
        lambda rows: leave_one_out_to_posterior(LOG_P, rows, 0.2),
        lambda rows: posterior_to_leave_one_out(LOG_P, rows, 0.2),
        lambda rows: interpolate(rows, rows.flip(1), 0.5, noise.manual_seed(0)),
        lambda rows: shared_noise(rows, K, noise.manual_seed(0)).state(rows, -1.0),
        lambda rows: sample(x0=rows, given=rows[0], generator=noise.manual_seed(0)),
        lambda rows: UNIFORM.log_probabilities(network, rows, 0.5),
        lambda rows: MASKED.log_probabilities(network, rows, 0.5),
    )
    for call in calls:
        torch.testing.assert_close(call(small), call(ROWS), rtol=0, atol=0)


def test_a_number_stands_for_the_time_of_every_row():
    every, noise = torch.full((2,), 0.25), torch.Generator()
    x1 = ROWS.flip(1)
    mixed = (interpolate(ROWS, x1, kappa, noise.manual_seed(0)) for kappa in (0.25, every, every[:1]))
    first, *others = mixed
    assert all(torch.equal(first, other) for other in others)
    for corruption in (UNIFORM, MASKED):
        expected = corruption.log_probabilities(network, ROWS, every)
        assert torch.equal(corruption.log_probabilities(network, ROWS, 0.25), expected)
    assert continuous.interpolate(POINTS, -POINTS, 0.25).tolist() == (0.5 * POINTS).tolist()
    assert continuous.interpolate(POINTS, -POINTS, np.float32(0.25)).tolist() == (0.5 * POINTS).tolist()
    shared = shared_noise(ROWS, K, noise.manual_seed(0))
    assert torch.equal(shared.state(ROWS, 0.25), shared.state(ROWS, every.double()))
    labels = (torch.tensor(1), torch.tensor([1, 1]))
    one, each = (sample(labels=own, guidance=2.0, generator=noise.manual_seed(0)) for own in labels)
    assert torch.equal(one, each)
