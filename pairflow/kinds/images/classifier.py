"""A small convolutional classifier of the training images, for its features: 64 before the last layer.

Their mean square over training images is brought to 1, so that a distance does not depend on the units that
a training happens to choose. It trains on the CPU in a minute at most, so that its weights are the same
beside a GPU. They are stored in half precision, and features are computed in double: so distances between
images are the same on every machine, to more digits than a report prints.

Two classifiers come with pairflow, in the folder `SHIPPED` (docs/metrics.md, "Images").
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pairflow import rng
from pairflow.artifacts import digest, read_object
from pairflow.errors import InputError
from pairflow.runtime.progress import bar

FORMAT = 1
SHIPPED = Path(__file__).parent / "classifiers"
DIMENSION = 64  # features
BATCH = 128
LEARNING_RATE = 2e-3  # decays linearly to 0


class Classifier(nn.Module):
    """Images (B, C, H, W) in [0, 1] -> features (B, 64); `head` makes class logits of them."""

    def __init__(self, shape: tuple[int, int, int], classes: int):
        super().__init__()
        channels, height, width = shape
        after = 64 * (-(-height // 4)) * (-(-width // 4))
        self.features = nn.Sequential(
            nn.Conv2d(channels, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(after, DIMENSION),
        )
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(DIMENSION, classes))

    def forward(self, images: Tensor) -> Tensor:
        return self.features(2 * images - 1)


def as_input(images: np.ndarray) -> Tensor:
    """uint8 (B, H, W, C) -> float (B, C, H, W) in [0, 1]."""
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 255


def train(images: np.ndarray, labels: np.ndarray, iterations: int, seed: int, progress: bool) -> Classifier:
    """Minimise the cross-entropy of `labels` (M,) given `images` uint8 (M, H, W, C)."""
    torch.manual_seed(rng.stream_seed(seed, "classifier"))
    height, width, channels = images.shape[1:]
    network = Classifier((channels, height, width), int(labels.max()) + 1)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    generator = torch.Generator().manual_seed(rng.stream_seed(seed, "classify"))
    targets = torch.from_numpy(labels)
    for iteration in bar(range(iterations), total=iterations, unit="it", quiet=not progress):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - iteration / iterations)
        rows = torch.randint(len(images), (BATCH,), generator=generator)
        logits = network.head(network(as_input(images[rows.numpy()])))
        loss = nn.functional.cross_entropy(logits, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    _bring_to_unit_scale(network, images[:1024])
    return network.half().float().eval()  # the weights that `save` stores


@torch.no_grad()
def _bring_to_unit_scale(network: Classifier, images: np.ndarray) -> None:
    """Divide the features by their root mean square; the head undoes it, so that no logit changes."""
    scale = network(as_input(images)).square().mean().sqrt()
    for parameter in network.features[-1].parameters():
        parameter.div_(scale)
    network.head[-1].weight *= scale


@torch.inference_mode()
def accuracy(network: Classifier, images: np.ndarray, labels: np.ndarray) -> float:
    """Share of `images` whose label the network gives."""
    parts = range(0, len(images), 1024)
    labelled = [network.head(network(as_input(images[first : first + 1024]))).argmax(1) for first in parts]
    return float((torch.cat(labelled).numpy() == labels).mean())


def save(weights: Path, description: Path, network: Classifier, facts: dict[str, Any]) -> None:
    """Write the weights, and `facts` (see `load`) with their hash."""
    save_file({name: tensor.half().contiguous() for name, tensor in network.state_dict().items()}, weights)
    text = json.dumps({"format": FORMAT, **facts, "weights": digest(weights)}, indent=1, sort_keys=True)
    description.write_text(text + "\n")


def load(weights: Path) -> tuple[Classifier, dict[str, Any]]:
    """The classifier in float64, and its description: shape, classes, accuracy, iterations, seed, weights."""
    weights = Path(weights)
    description = weights.with_suffix(".json")
    for path in (weights, description):
        if not path.is_file():
            raise InputError(f"{path}: no such file")
    try:
        facts = read_object(description)
        network = Classifier(facts["shape"], facts["classes"])
        expected = facts["weights"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{description}: not a classifier's description") from error
    if digest(weights) != expected:
        raise InputError(f"{weights}: these are not the weights that {description} describes")
    try:
        network.load_state_dict(load_file(weights))
    except (SafetensorError, RuntimeError) as error:
        raise InputError(f"{weights}: not the weights of a classifier") from error
    return network.double().eval(), facts
