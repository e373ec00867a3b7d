"""The loss of a base model of tokens: on the pairs of a file, on pairs that are drawn again after some epochs
(docs/method.md, "Pairs drawn again"), or on new sources that a coupling assigns.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from pairflow import rng
from pairflow.artifacts import OWN
from pairflow.config import PairSettings
from pairflow.errors import InputError
from pairflow.pairing.pair import make_pairer
from pairflow.training.coupled import couple
from pairflow.training.fit import TrainingRows, labels_of
from pairflow.training.model import DiscreteModel
from pairflow.training.objectives import BatchLoss, FlowObjective, Objective


def base_objective(model: DiscreteModel, rows: TrainingRows) -> Objective:
    """The loss of a base model; InputError if `redraw` is set, but the pairs cannot be drawn again."""
    training = model.base_training
    if training.ignore_padding and rows.padding is None:
        raise InputError("training: ignore_padding: the data have no padding")
    padding = rows.padding if training.ignore_padding else None
    optimised = (training.batch_size, training.loss, model.seed, model.device)
    rows, coupling = couple(model, rows)
    arguments = (model.corruption, *optimised, padding, labels_of(rows, model), coupling)
    if training.redraw is None:
        return FlowObjective(rows.x1, rows.x0, *arguments)
    if rows.x0 is None or rows.metadata.parameters["coupling"] == OWN:
        raise InputError(f"redraw: only for pairs that pairflow draws; the method is {model.method}")
    return RedrawnPairs(training.redraw, rows, *arguments)


class RedrawnPairs(FlowObjective):
    """The loss on pairs whose sources are drawn again every `redraw` epochs; the first are from the file.

    The sources are a function of the iteration's number, so a resumed training run computes the same sources.
    """

    def __init__(self, redraw: int, rows: TrainingRows, *arguments: Any):
        super().__init__(rows.x1, rows.x0, *arguments)
        self.redraw, self.round = redraw, 0
        self.sources = partial(_sources, rows, self.device)

    def batch(self, network: nn.Module, iteration: int) -> BatchLoss:
        round_ = iteration * self.shape[0] // len(self.x1) // self.redraw
        if round_ != self.round:
            self.x0, self.round = torch.tensor(self.sources(round_), device=self.device), round_
        return super().batch(network, iteration)


def _sources(rows: TrainingRows, device: torch.device, number: int) -> np.ndarray | None:
    """The sources (M, N) of a round: from the file in round 0, then paired again with other seeds."""
    if number == 0:
        return rows.x0
    settings = PairSettings(**rows.metadata.parameters)
    seed = rng.stream_seed(settings.seed, "redraw", number)
    pairer = make_pairer(
        rows.x1,
        settings.model_copy(update={"seed": seed}),
        vocabulary_size=rows.metadata.dimensions[1],
        backend="auto" if device.type == "cuda" else "cpu",
        threads=torch.get_num_threads(),
        progress=False,
    )
    return pairer.sources()
