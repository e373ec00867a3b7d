"""What the report shows of images: samples, pairs and what lies between, nearest training images."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairflow import rng
from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.plan import paths

SAMPLES = 64  # at most, of a method and NFE
_PAIRS = 6
_TIMES = (0.75, 0.5, 0.25)
_NEIGHBOURS = 12

Samples = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> token rows (B, N)


@dataclass(frozen=True)
class Train:
    """Token rows (M, N) of the training images, and how they become images."""

    tokens: np.ndarray
    shape: list[int]
    levels: int

    @classmethod
    def read(cls, root: Path) -> "Train":
        table, metadata = read_table(paths.data(root, "train.parquet"), "tokens")
        return cls(token_array(table["tokens"]), metadata.shape, metadata.vocabulary_size)

    def images(self, tokens: np.ndarray) -> np.ndarray:
        """Token rows (B, N) as images (B, H, W, C) uint8."""
        from pairflow.data.images import to_images

        return to_images(tokens, tuple(self.shape), self.levels)


def contents(root: Path, experiment: Experiment, samples: Samples) -> dict[str, Any]:
    """The fields of the report's `Contents` that only images have."""
    train = Train.read(root)
    return {
        "modality": "images",
        "images": {
            method: {nfe: train.images(tokens) for nfe, tokens in each.items()}
            for method, each in samples.items()
        },
        "pairs": {name: _pairs(root, experiment.seeds[0], name, train) for name in experiment.couplings()},
        "neighbours": _neighbours(samples, train),
        "accuracies": _accuracies(root, experiment),
    }


def _pairs(root: Path, seed: int, coupling: str, train: Train) -> tuple[np.ndarray, ...]:
    """x1, states between (B, S, H, W, C) and x0 of a few random data points, the same of every coupling."""
    table, _ = read_table(paths.pairs(root, seed, coupling), "pairs")
    rows = rng.random_order(seed, len(table))[:_PAIRS]
    x0, x1 = (token_array(table[name])[rows] for name in ("x0", "x1"))
    states = between(x0, x1, seed)
    images = train.images(states.reshape(-1, x1.shape[1]))
    return train.images(x1), images.reshape(*states.shape[:2], *images.shape[1:]), train.images(x0)


def between(x0: np.ndarray, x1: np.ndarray, seed: int, times: tuple[float, ...] = _TIMES) -> np.ndarray:
    """States (B, S, N) at `times` between token rows x0 and x1 (B, N): x1 with probability t, else x0.

    A position that holds x1 at one time holds it at all later times.
    """
    uniforms, _ = rng.draws(rng.stream_seed(seed, "between"), np.arange(len(x1)), 0, x1.shape[1])
    return np.stack([np.where(uniforms < time, x1, x0) for time in times], axis=1)


def _neighbours(samples: Samples, train: Train) -> dict[str, tuple[np.ndarray, ...]]:
    """Method -> first samples of its highest NFE, their nearest training images, L2 distances of pixels."""
    from pairflow.metrics.images import nearest

    shown = {method: train.images(each[max(each)][:_NEIGHBOURS]) for method, each in samples.items() if each}
    if not shown:
        return {}
    images = np.concatenate(list(shown.values()))
    data = train.images(train.tokens)
    distance, row = nearest(images.reshape(len(images), -1), data.reshape(len(data), -1))
    ends = np.cumsum([len(each) for each in shown.values()])
    found = zip(*(np.split(each, ends[:-1]) for each in (images, data[row], distance)), strict=True)
    return dict(zip(shown, found, strict=True))


def _accuracies(root: Path, experiment: Experiment) -> dict[str, float]:
    """The classifier's share of test images that it names correctly, where the workflow trains one."""
    description = paths.extractor_files(root, experiment).get("description")
    if description is None:
        return {}
    facts = json.loads(description.read_text())
    return {f"classifier-{facts['weights'][:8]}": facts["accuracy"]}
