"""Trains a small classifier of images, as those in pairflow/kinds/images/classifiers.

    snakemake --cores 2 results/{digits,mnist_binary_small,mnist_continuous_small}/data/train.parquet
    python benchmarks/train_classifier.py results/digits/data digits
    python benchmarks/train_classifier.py results/mnist_binary_small/data mnist_binary
    python benchmarks/train_classifier.py results/mnist_continuous_small/data mnist

It reads train.parquet and validation.parquet in the folder of prepared images, and writes digits.safetensors
and digits.json. The training takes a minute at most on the CPU; another machine trains slightly different
weights. The mean square of the features over training images is brought to 1, so that a distance does not
depend on the units that a training happens to choose.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from pairflow import rng
from pairflow.artifacts import digest, read_table
from pairflow.kinds.images.extractors import Classifier, as_input
from pairflow.kinds.images.rows import ImageRows, read_images
from pairflow.metrics.measured import RealRows

ITERATIONS, SEED = 400, 0
BATCH = 128
LEARNING_RATE = 2e-3  # decays linearly to 0


def train(images: np.ndarray, labels: np.ndarray, iterations: int, seed: int) -> Classifier:
    """Minimise the cross-entropy of `labels` (M,) given `images` uint8 (M, H, W, C)."""
    torch.manual_seed(rng.stream_seed(seed, "classifier"))
    height, width, channels = images.shape[1:]
    network = Classifier((channels, height, width), int(labels.max()) + 1)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    generator = torch.Generator().manual_seed(rng.stream_seed(seed, "classify"))
    targets = torch.from_numpy(labels)
    for iteration in range(iterations):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - iteration / iterations)
        rows = torch.randint(len(images), (BATCH,), generator=generator)
        logits = network.head(network(as_input(images[rows.numpy()])))
        loss = nn.functional.cross_entropy(logits, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    bring_to_unit_scale(network, images[:1024])
    return network.half().float().eval()  # the weights that are stored


@torch.no_grad()
def bring_to_unit_scale(network: Classifier, images: np.ndarray) -> None:
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


def labels_of(images: ImageRows) -> np.ndarray:
    column = read_table(images.path, "tokens")[0]["label"]
    if column.null_count:
        sys.exit(f"{images.path}: the classifier needs a label for every image")
    return column.to_numpy().astype(np.int64)


def main(folder: Path, name: str) -> None:
    torch.set_num_threads(1)
    files = {part: folder / f"{part}.parquet" for part in ("train", "validation")}
    images, test = (read_images(path) for path in files.values())
    RealRows.read(*files.values())  # InputError unless they belong together
    network = train(images[:], labels_of(images), ITERATIONS, SEED)
    weights = Path(f"{name}.safetensors")
    save_file({key: value.half().contiguous() for key, value in network.state_dict().items()}, weights)
    facts = {
        "format": 1,
        "iterations": ITERATIONS,
        "seed": SEED,
        "shape": images.metadata.shape,
        "classes": int(labels_of(images).max()) + 1,
        "accuracy": accuracy(network, test[:], labels_of(test)),
        "inputs": {"tokens": digest(files["train"]), "validation": digest(files["validation"])},
        "weights": digest(weights),
    }
    weights.with_suffix(".json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
