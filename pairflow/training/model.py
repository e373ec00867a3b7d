"""Model files: weights in safetensors (raw and averaged), everything needed to use them in model.json."""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from pairflow import networks
from pairflow.artifacts import digest
from pairflow.config import parse_method
from pairflow.errors import InputError
from pairflow.flow.corruption import CORRUPTIONS, Absorbing, Uniform

FORMAT = 1
NEEDED = ("method", "network", "length", "vocabulary_size", "vocabulary", "mask", "prediction", "weights")

Weights = Literal["ema", "raw"]


def save(weights: Path, description: Path, network: nn.Module, ema: nn.Module, facts: dict[str, Any]) -> None:
    """Write both sets of weights, and `facts` (see `read_description`) with the hash of the weights."""
    tensors = {
        f"raw.{name}": tensor.detach().contiguous().cpu() for name, tensor in network.state_dict().items()
    }
    tensors |= {
        f"ema.{name}": tensor.detach().contiguous().cpu() for name, tensor in ema.state_dict().items()
    }
    save_file(tensors, weights)
    facts = {"format": FORMAT, **facts, "weights": digest(weights)}
    facts["checksum"] = _checksum(facts)
    description.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


def _checksum(facts: dict[str, Any]) -> str:
    """What an altered model.json gives itself away by; models of earlier versions have none."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def read_description(path: Path) -> dict[str, Any]:
    """model.json: method, network, training, N, K, vocabulary, mask, shape, data, prediction, parameters,
    inputs, weights.

    A distilled model has its base's `training`, and `distillation` of its own. A model of molecules may have
    `known`, the hash of what it carries for novelty (`training.carried`).
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        facts = json.loads(path.read_text())
        found = facts["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a model description of pairflow") from error
    if found != FORMAT:
        raise InputError(f"{path}: format {found}, this version reads {FORMAT}")
    if facts.pop("checksum", None) not in (None, _checksum(facts)):
        raise InputError(f"{path}: altered since it was written")
    if missing := [key for key in NEEDED if key not in facts]:
        raise InputError(f"{path}: no {', '.join(missing)}: a model of another version; train it anew")
    return facts


def load(
    folder: Path, *, which: Weights = "ema", device: str | torch.device = "cpu"
) -> tuple[nn.Module, dict[str, Any]]:
    """A model folder's network, in evaluation mode, and its description; InputError if they do not match."""
    weights, description = Path(folder) / "model.safetensors", Path(folder) / "model.json"
    facts = read_description(description)
    if not weights.is_file():
        raise InputError(f"{weights}: no such file")
    if digest(weights) != facts["weights"]:
        raise InputError(f"{weights}: these are not the weights that {description} describes")
    corruption = corruption_of(facts)
    prefix = f"{which}."
    try:
        network = networks.build(
            facts["network"],
            length=facts["length"],
            vocabulary_size=corruption.symbols,
            shape=facts.get("shape"),
            mask=corruption.mask,
        )
        tensors = load_file(weights)
        own = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        network.load_state_dict(own)
    except SafetensorError as error:
        raise InputError(f"{weights}: not a safetensors file") from error
    except (KeyError, TypeError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{description}: a network that this version does not build ({reason}); train it anew"
        ) from error
    return network.to(device).eval(), facts


def corruption_of(facts: dict[str, Any]) -> Uniform | Absorbing:
    """The noise of a model, by its method, vocabulary size and mask."""
    return CORRUPTIONS[parse_method(facts["method"]).corruption](facts["vocabulary_size"], facts["mask"])
