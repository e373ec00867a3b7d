"""The second judge of text: a small autoregressive transformer, on text that no generator has seen."""

import copy

import numpy as np
import torch
from torch import Tensor, nn

from pairflow import rng
from pairflow.config import Optimisation
from pairflow.kinds.text.settings import JudgeTransformer
from pairflow.networks.causal import CausalTransformer, mean_nll
from pairflow.training.loop import optimise
from pairflow.training.objectives import WHOLE, Batches, Objective

HELD_BACK = 0.1  # of the judge's rows, at their end: they choose the weights
VALIDATIONS = 20  # of a training


class NextToken(Objective):
    """Mean negative log-likelihood of the tokens of a batch of rows (M, N), without padding, which is -1."""

    def __init__(self, rows: np.ndarray, batch_size: int, seed: int):
        self.rows = torch.tensor(rows)
        self.batches = Batches(len(rows), batch_size, seed, torch.device("cpu"))

    def __call__(self, network: nn.Module, iteration: int, rows: slice = WHOLE) -> Tensor:
        assert isinstance(network, CausalTransformer)
        batch = self.rows[self.batches(iteration)].long()
        losses = network.losses(batch[rows])
        # The share of the whole batch, so that slices add up to its mean.
        return losses.sum() / (batch >= 0).sum().clamp(min=1) * (len(batch) / len(losses))


class Best:
    """Validation that keeps the weights of the lowest NLL so far, in nats per token of the rows (V, N)."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.nll, self.weights = rows, float("inf"), dict[str, Tensor]()

    def __call__(self, network: nn.Module) -> float:
        assert isinstance(network, CausalTransformer)
        nll = mean_nll(network.eval(), self.rows)
        if nll < self.nll:
            self.nll, self.weights = nll, copy.deepcopy(network.state_dict())
        return nll


def train(
    rows: np.ndarray, vocabulary_size: int, settings: JudgeTransformer, running: bool, progress: bool
) -> tuple[CausalTransformer, float]:
    """A judge of text from its rows (J, N), -1 for padding, and its NLL of those that were held back.

    `running`: rows follow one another in the text, so that those to learn may begin anywhere.
    """
    held_back = max(1, round(HELD_BACK * len(rows)))
    learnt, best = rows[:-held_back], Best(rows[-held_back:])
    if running:
        learnt = np.lib.stride_tricks.sliding_window_view(learnt.reshape(-1), rows.shape[1])
    torch.manual_seed(rng.stream_seed(settings.seed, "judge"))
    sizes = settings.model_dump(include={"width", "blocks", "heads", "dropout"})
    network = CausalTransformer(length=rows.shape[1], vocabulary_size=vocabulary_size, **sizes)
    optimisation = Optimisation(
        **settings.model_dump(include={"batch_size", "iterations", "learning_rate"}),
        decay="cosine",
        ema_decay=0.99,
        validate_every=max(1, settings.iterations // VALIDATIONS),
    )
    objective = NextToken(learnt, settings.batch_size, settings.seed)
    optimise(network, objective, optimisation, seed=settings.seed, validate=best, progress=progress)
    network.load_state_dict(best.weights)
    return network.eval(), best.nll
