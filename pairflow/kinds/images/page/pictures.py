"""Reads what the page shows of images: samples, pairs with states between, nearest training images."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pairflow.artifacts import read_metadata, read_table, token_array
from pairflow.artifacts.points import from_points
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.kinds.images.kind import classifier_files
from pairflow.plan import paths
from pairflow.report.contents import PagePart
from pairflow.report.kind_page import Samples, choose_examples, draw_pairs

SAMPLES = 64  # at most, for each method and NFE
_PAIRS = 6
_NEIGHBOURS = 12


@dataclass(frozen=True)
class ImagePart(PagePart):
    """What only pages of images show, all uint8 with (H, W, C) last, C = 1 (grey) or 3 (RGB).

    images       method -> NFE -> (B, H, W, C) samples of the first seed's first trial, in the order drawn
    training_images  some training images (B, H, W, C)
    pairs        coupling -> x1 (B, H, W, C), x_t (B, S, H, W, C), x0 (B, H, W, C): some data points, states
                 at t = S/(S+1), ..., 1/(S+1), their sources
    neighbours   method -> samples (B, H, W, C) of its highest NFE, the training image nearest to each
                 (B, H, W, C), and how far apart they are (B,)
    accuracies   extractor -> share of test images that it classifies correctly; None without test images
    """

    images: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    training_images: np.ndarray | None = None
    pairs: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)
    neighbours: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)
    accuracies: dict[str, float | None] = field(default_factory=dict)


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


def read_images(root: Path, experiment: Experiment, samples: Samples) -> ImagePart:
    """What only the page of images shows."""
    train, seed = TrainingImages.read(root), experiment.seeds[0]
    return ImagePart(
        training_images=train.to_images(train.tokens[choose_examples(len(train.tokens), SAMPLES, seed)]),
        images={
            method: {nfe: train.to_images(tokens) for nfe, tokens in by_nfe.items()}
            for method, by_nfe in samples.items()
        },
        pairs={name: _pairs(root, seed, name, train) for name in experiment.couplings()},
        neighbours=_neighbours(samples, train),
        accuracies=_accuracies(root, experiment),
    )


def draw_token_pairs(root: Path, seed: int, coupling: str, number: int) -> tuple[np.ndarray, ...]:
    """`draw_pairs` as tokens: in a continuous flow those that are nearest to the pixel values."""
    parts = draw_pairs(root, seed, coupling, number)
    if not np.issubdtype(parts[0].dtype, np.floating):
        return parts
    levels = read_metadata(paths.pairs(root, seed, coupling)).dimensions[1]
    return tuple(from_points(part, levels) for part in parts)


def _pairs(root: Path, seed: int, coupling: str, train: TrainingImages) -> tuple[np.ndarray, ...]:
    """Some pairs as images: x1, states between (B, S, H, W, C) and x0."""
    x1, states, x0 = draw_token_pairs(root, seed, coupling, _PAIRS)
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
