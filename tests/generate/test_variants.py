"""Variants: noised rows, whose law after denoising is in tests/flow/test_samplers.py."""

from itertools import islice

import pytest
import torch

from pairflow import networks
from pairflow.config import SampleSettings
from pairflow.flow.plan import SamplingPlan
from pairflow.generate.variants import vary, vary_without_end
from pairflow.training.model import DiscreteModel

SETTINGS = SampleSettings(nfe=1, samples=1, seed=3)
SEEDS = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])


@pytest.fixture
def model():
    sizes = {"length": 4, "vocabulary_size": 5}
    network = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16, "dropout": 0.0}
    facts = {"network_settings": network, "method": "udlm", "prediction": "leave_one_out", "mask": None}
    return DiscreteModel(network=networks.build(network, **sizes), vocabulary="v", **facts, **sizes)


def test_variants_keep_the_share_that_is_not_noise(model, monkeypatch):
    """With a denoiser that changes nothing: each seed in its turn, at one noise after the other."""
    monkeypatch.setattr(type(model.corruption), "sample", lambda corruption, network, x0, *how: x0)
    noises = [0.25, 1.0]
    drawn = list(islice(vary_without_end(model, SETTINGS, 1, SEEDS, noises), 4096))
    assert [seed for _, seed, _ in drawn[:4]] == [0, 1, 0, 1]
    assert [noise for *_, noise in drawn[::32]] == noises * 64
    for wanted in noises:
        rows, seeds = zip(*((row, seed) for row, seed, noise in drawn if noise == wanted), strict=True)
        same = (torch.tensor(rows) == SEEDS[list(seeds)]).float().mean().item()
        assert same == pytest.approx(1 - wanted + wanted / 5, abs=0.02)
    again = list(islice(vary_without_end(model, SETTINGS, 1, SEEDS, noises), 10))
    assert again == drawn[:10]


def test_no_noise_is_beyond_what_the_network_has_learnt(model):
    """The least kappa is that of sampling; there is no greedy tail, so that a step is a call."""
    levels = []
    model.network.register_forward_pre_hook(lambda network, inputs: levels.append(inputs[1]))
    assert vary(model, SamplingPlan(steps=2, prediction="leave_one_out"), SEEDS, 1.0, 3).shape == (2, 4)
    assert len(levels) == 2
    torch.testing.assert_close(levels[0].exp(), torch.full((2,), 1000.0))  # sigma = -log kappa
