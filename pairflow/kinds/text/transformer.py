"""The second judge of text: an autoregressive transformer, as `training.judge` trains it. Needs torch."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from pairflow.artifacts import digest, read_object
from pairflow.errors import InputError
from pairflow.networks.causal import CausalTransformer, mean_nll

FORMAT = 1
SIZES = ("length", "vocabulary_size", "width", "blocks", "heads", "dropout")  # in the description


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
            raise InputError(f"{description}: this judge learnt from other rows than those of --judge")
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
