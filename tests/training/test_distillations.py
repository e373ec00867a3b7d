"""Every distillation of the configuration is there, and is called in one way."""

import importlib
import inspect

import numpy as np
import pytest
import torch

from pairflow import networks
from pairflow.config import DISTILLATIONS
from pairflow.flow.corruption import Uniform

SHARED = {"batch_size": 4, "iterations": 4, "learning_rate": 1e-3}
OWN = {"dcd": {"teacher_every": 2}, "redi": {}}


@pytest.mark.parametrize("name", DISTILLATIONS)
def test_a_distillation_is_a_module_with_an_objective_to_minimise(name):
    make = importlib.import_module(f"pairflow.training.{name}").objective
    keywords = ["x0", "x1", "corruption", "loss", "seed", "device", "cache"]
    assert list(inspect.signature(make).parameters) == ["settings", *keywords]
    settings = DISTILLATIONS[name](**SHARED, **OWN[name])
    x1 = np.random.default_rng(0).integers(0, 5, (20, 3))
    pairs = {"x0": x1[::-1].copy() if settings.on_pairs else None, "x1": x1}
    device = torch.device("cpu")
    objective = make(
        settings, **pairs, corruption=Uniform(5), loss="nelbo", seed=0, device=device, cache=None
    )
    torch.manual_seed(0)
    mlp = {"name": "mlp", "width": 8, "blocks": 1, "time_width": 8, "dropout": 0.0}
    network = networks.build(mlp, length=3, vocabulary_size=5)
    torch.nn.init.normal_(network.head.weight)
    loss = objective(network, 0)
    assert loss.shape == ()
    loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())
    assert objective(network, 0).item() == loss.item()
