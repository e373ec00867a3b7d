"""Reads what the page shows of images: samples, pairs with states between, nearest training images."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairflow import rng
from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.kinds.images.kind import classifier_files
from pairflow.plan import paths
from pairflow.report.trajectory import draw_between

SAMPLES = 64  # at most, for each method and NFE
_PAIRS = 6
TIMES = (0.75, 0.5, 0.25)
_NEIGHBOURS = 12

Samples = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> token rows (B, N)


@dataclass(frozen=True)
class TrainingImages:
    """Token rows (M, N) of the training images, and how they become images."""

    tokens: np.ndarray
    shape: tuple[int, int, int]
    levels: int

    @classmethod
    def read(cls, root: Path) -> "TrainingImages":
        path = paths.data(root, "train.parquet")
        table, metadata = read_table(path, "tokens")
        if metadata.shape is None or metadata.vocabulary_size is None:
            raise InputError(f"{path}: expected token rows of images, found no image size in it")
        channels, height, width = metadata.shape
        return cls(token_array(table["tokens"]), (channels, height, width), metadata.vocabulary_size)

    def to_images(self, tokens: np.ndarray) -> np.ndarray:
        """Token rows (B, N) as images (B, H, W, C) uint8."""
        from pairflow.kinds.images.prepare import to_images

        return to_images(tokens, self.shape, self.levels)


def read_images(root: Path, experiment: Experiment, samples: Samples) -> dict[str, Any]:
    """The fields of `Contents` that only images have."""
    train, seed = TrainingImages.read(root), experiment.seeds[0]
    return {
        "training_images": train.to_images(train.tokens[choose_examples(len(train.tokens), SAMPLES, seed)]),
        "images": {
            method: {nfe: train.to_images(tokens) for nfe, tokens in by_nfe.items()}
            for method, by_nfe in samples.items()
        },
        "pairs": {name: _pairs(root, seed, name, train) for name in experiment.couplings()},
        "neighbours": _neighbours(samples, train),
        "accuracies": _accuracies(root, experiment),
    }


def choose_examples(rows: int, number: int, seed: int) -> np.ndarray:
    """Numbers of some random training rows."""
    return rng.random_order(rng.stream_seed(seed, "examples"), rows)[:number]


def draw_pairs(root: Path, seed: int, coupling: str, number: int) -> tuple[np.ndarray, ...]:
    """x1 (B, N), states at `TIMES` (B, S, N) and x0 (B, N) of random rows, the same for every coupling.

    In a continuous flow they are the tokens that are nearest to its pixel values.
    """
    table, metadata = read_table(paths.pairs(root, seed, coupling), "pairs", "vector pairs")
    rows = rng.random_order(seed, len(table))[:number]
    x0, x1 = (token_array(table[name])[rows] for name in ("x0", "x1"))
    if metadata.kind == "vector pairs":
        from pairflow.artifacts.points import from_points

        states = np.stack([(1 - t) * x0 + t * x1 for t in TIMES], axis=1)
        x1, states, x0 = (from_points(part, metadata.dimensions[1]) for part in (x1, states, x0))
        return x1, states, x0
    return x1, draw_between(x0, x1, seed, TIMES), x0


def _pairs(root: Path, seed: int, coupling: str, train: TrainingImages) -> tuple[np.ndarray, ...]:
    """`draw_pairs` as images: x1, states between (B, S, H, W, C) and x0."""
    x1, states, x0 = draw_pairs(root, seed, coupling, _PAIRS)
    images = train.to_images(states.reshape(-1, x1.shape[1]))
    return train.to_images(x1), images.reshape(*states.shape[:2], *images.shape[1:]), train.to_images(x0)


def _neighbours(samples: Samples, train: TrainingImages) -> dict[str, tuple[np.ndarray, ...]]:
    """Method -> first samples of its highest NFE, their nearest training images, L2 distances of pixels."""
    from pairflow.kinds.images.measures import nearest

    first = {
        method: train.to_images(by_nfe[max(by_nfe)][:_NEIGHBOURS])
        for method, by_nfe in samples.items()
        if by_nfe
    }
    if not first:
        return {}
    images = np.concatenate(list(first.values()))
    data = train.to_images(train.tokens)
    distance, row = nearest(images.reshape(len(images), -1), data.reshape(len(data), -1))
    ends = np.cumsum([len(samples) for samples in first.values()])[:-1]
    by_method = zip(*(np.split(rows, ends) for rows in (images, data[row], distance)), strict=True)
    return dict(zip(first, by_method, strict=True))


def _accuracies(root: Path, experiment: Experiment) -> dict[str, float | None]:
    """The share of test images that the classifier names correctly, where images are compared by one."""
    from pairflow.kinds.images.classifier import SHIPPED
    from pairflow.kinds.images.settings import extractors

    settings = extractors(experiment).get("classifier")
    if settings is None:
        return {}
    trained = classifier_files(root, experiment).get("description")
    classifier = json.loads((trained or SHIPPED / f"{settings.weights}.json").read_text())
    return {f"classifier-{classifier['weights'][:8]}": classifier["accuracy"]}
