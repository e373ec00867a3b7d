"""How many tensors (B, N, K) training and sampling hold at once: with text each may have gigabytes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from pairflow.flow import losses
from pairflow.flow.corruption import CORRUPTIONS, MANY_SYMBOLS
from pairflow.flow.plan import SamplingPlan
from pairflow.training.objectives import FlowObjective

B, N, K = 16, 8, 2048


class Table(nn.Module):
    """A network that sees each token by itself, and so holds little beside its logits."""

    def __init__(self, symbols):
        super().__init__()
        self.embedding, self.head = nn.Embedding(symbols, 4), nn.Linear(4, symbols)

    def forward(self, x_t, sigma):
        return self.head(self.embedding(x_t))


def most_tensors(corruption, run):
    """The peak of what `run` allocates, in float32 tensors (B, N, K)."""
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        run()
    events = [event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return np.cumsum([event.nbytes() for event in events]).max() / (4 * B * N * corruption.symbols)


@pytest.mark.parametrize(("noise", "most"), [("uniform", 3), ("absorbing", 4)])
def test_an_iteration_holds_few_tensors_as_large_as_its_logits(monkeypatch, noise, most):
    # log x_theta, its gradient and the gradient of the logits; with masks also what a masked token may be.
    monkeypatch.setattr(losses, "NELBO_VALUES", N * K)
    corruption = CORRUPTIONS[noise](K)
    rows = np.random.default_rng(0).integers(K, size=(64, N))
    network = Table(corruption.symbols)
    objective = FlowObjective(rows, None, corruption, B, "nelbo", 0, torch.device("cpu"))
    assert most <= most_tensors(corruption, lambda: objective(network, 0).backward()) < most + 0.1


@pytest.mark.parametrize(
    ("symbols", "noise", "sampler", "most"),
    # Two in float64: x and the law of x_s, and then that law and its sums. The Euler update converts UDLM's
    # output, and absorbing noise with few symbols remembers it.
    [
        (K, "uniform", "ancestral", 4),
        (K, "uniform", "euler", 6),
        (K, "absorbing", "ancestral", 4),
        (MANY_SYMBOLS // 2, "absorbing", "ancestral", 5),
    ],
)
def test_a_sampling_step_holds_few_tensors_as_large_as_its_logits(symbols, noise, sampler, most):
    corruption = CORRUPTIONS[noise](symbols)
    network, x0 = Table(corruption.symbols), corruption.source((B, N))
    prediction = corruption.losses["nelbo"].learns
    plan = SamplingPlan(sampler=sampler, steps=1, prediction=prediction, greedy_tail=False)
    assert most <= most_tensors(corruption, lambda: corruption.sample(network, x0, plan)) < most + 0.1
