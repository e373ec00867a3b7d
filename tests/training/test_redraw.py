"""Pairs that are drawn again: which sources an iteration has, and whose pairs can be drawn again."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from pairflow import InputError, networks, pair, rng
from pairflow.artifacts import OWN, Metadata
from pairflow.config import BaseTraining
from pairflow.training.fit import TrainingRows
from pairflow.training.model import DiscreteModel
from pairflow.training.redraw import base_objective

ROWS, BATCH, SIZE = 12, 6, 9
TRAINING = {"batch_size": BATCH, "iterations": 12, "learning_rate": 1e-3}


@pytest.fixture
def rows():
    """Function of the coupling: pairs of 12 rows, as the workflow's pairing writes them with seed 3."""

    def make(coupling: str) -> TrainingRows:
        x1 = np.random.default_rng(0).integers(0, SIZE, (ROWS, 16), np.uint8)
        steps = 20 if coupling == "pairflow" else None
        parameters = {"coupling": coupling, "steps": steps, "subsets": 1, "seed": 3}
        metadata = Metadata(kind="pairs", length=16, vocabulary_size=SIZE, parameters=parameters)
        x0 = pair(x1, vocabulary_size=SIZE, seed=3, progress=False)
        return TrainingRows(x0, x1, metadata, x1, None, {})

    return make


@pytest.fixture
def model():
    network = {"name": "mlp", "width": 8, "blocks": 1, "time_width": 8, "dropout": 0.0}
    return DiscreteModel(
        network=networks.build(network, length=16, vocabulary_size=SIZE),
        network_settings=network,
        method="pairflow",
        training=BaseTraining(**TRAINING, redraw=2),
        length=16,
        vocabulary_size=SIZE,
        vocabulary=None,
        mask=None,
        prediction="leave_one_out",
    )


def test_every_two_epochs_the_pairs_are_those_of_another_seed(rows, model):
    given = rows("pairflow")
    objective = base_objective(model, given)
    for iteration, number in [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2)]:  # two iterations are an epoch
        objective(model.network, iteration)
        seed = rng.stream_seed(3, "redraw", number) if number else 3
        expected = pair(given.x1, vocabulary_size=SIZE, seed=seed, progress=False)
        assert np.array_equal(objective.x0, expected)


def test_a_training_that_resumes_has_the_same_pairs(rows, model):
    calm, resumed = base_objective(model, rows("pairflow")), base_objective(model, rows("pairflow"))
    expected = [calm(model.network, iteration).item() for iteration in range(12)]
    assert [resumed(model.network, iteration).item() for iteration in (9, 2)] == [expected[9], expected[2]]


def test_independent_sources_are_drawn_again_as_well(rows, model):
    objective = base_objective(model, rows("random"))
    objective(model.network, 4)
    seed = rng.stream_seed(3, "redraw", 1)
    assert np.array_equal(objective.x0, rng.uniform_tokens(seed, np.arange(ROWS), 16, SIZE))


def test_own_pairs_cannot_be_drawn_again(rows, model):
    message = "redraw: only for pairs that pairflow draws; the method is pairflow"
    with pytest.raises(InputError, match=re.escape(message)):
        base_objective(model, rows(OWN))


def test_without_the_setting_nothing_changes(rows, model):
    settings = BaseTraining(**TRAINING)
    model = replace(model, training=settings)
    objective = base_objective(model, rows("pairflow"))
    objective(model.network, 11)
    assert torch.equal(objective.x0, torch.tensor(rows("pairflow").x0))
