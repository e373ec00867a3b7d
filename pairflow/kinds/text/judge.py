"""The second judge of text: a small autoregressive transformer, on text that no generator has seen."""

import copy
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pairflow import rng
from pairflow.artifacts import digest, read_object
from pairflow.config import Optimisation
from pairflow.errors import InputError
from pairflow.kinds.text.settings import JudgeTransformer
from pairflow.networks.causal import CausalTransformer, mean_nll
from pairflow.training.loop import optimise
from pairflow.training.objectives import WHOLE, Batches, Objective

HELD_BACK = 0.1  # of the judge's rows, at their end: they choose the weights
VALIDATIONS = 20  # of a training
FORMAT = 1
SIZES = ("length", "vocabulary_size", "width", "blocks", "heads", "dropout")  # in the description


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
    `running`: rows follow one another in the text, so that those to learn may begin anywhere."""
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


@dataclass(frozen=True, eq=False)
class TransformerJudge:
    """The network, on the CPU, and the file's hash."""

    network: CausalTransformer
    weights: str

    @property
    def name(self) -> str:
        """What metric rows call it."""
        return f"transformer-{self.weights[:8]}"

    @classmethod
    def load(cls, weights: Path, judge: str) -> Self:
        """The judge that learnt from the rows with the hash `judge`; InputError if the files do not fit."""
        description = weights.with_suffix(".json")
        try:
            facts = read_object(description)
            sizes = {key: facts[key] for key in SIZES}
            learnt, expected = facts["inputs"]["judge"], facts["weights"]
        except FileNotFoundError as error:
            raise InputError(f"{description}: no such file; `pairflow train_judge` writes it") from error
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(f"{description}: not the description of a judge") from error
        if learnt != judge:
            raise InputError(f"{description}: this judge has not learnt from the rows of --judge")
        if not weights.is_file() or digest(weights) != expected:
            raise InputError(f"{weights}: these are not the weights that {description} describes")
        try:
            network = CausalTransformer(**sizes)
            network.load_state_dict(load_file(weights))
        except (SafetensorError, RuntimeError, TypeError) as error:
            raise InputError(f"{weights}: not the weights of a judge") from error
        return cls(network.eval(), expected)

    def perplexity(self, rows: np.ndarray) -> float:
        """exp of the mean negative log-probability of all tokens of the rows (B, N), -1 for none."""
        return math.exp(mean_nll(self.network, rows))


def save(weights: Path, description: Path, network: CausalTransformer, facts: dict[str, Any]) -> None:
    """Write the weights, and `facts`, with the sizes and inputs that `TransformerJudge.load` needs."""
    save_file(network.state_dict(), weights)
    text = json.dumps({"format": FORMAT, **facts, "weights": digest(weights)}, indent=1, sort_keys=True)
    description.write_text(text + "\n", encoding="utf-8")
