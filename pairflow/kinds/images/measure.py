"""The metric rows of samples of images, and of real ones in their place, against training and test images."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pairflow.artifacts import digest
from pairflow.kinds.images import rows as image_rows
from pairflow.kinds.images.kind import RealImages
from pairflow.kinds.images.reference import ImageComparison, halves
from pairflow.kinds.images.settings import ComparisonSettings, FloorSettings
from pairflow.metrics.continuous import average_paths
from pairflow.metrics.frechet import Moments
from pairflow.metrics.measured import Machine, Measurement, draw_trials, measure_trials
from pairflow.runtime.device import choose


def measure_samples(
    settings: ComparisonSettings, samples: Path, files: RealImages, machine: Machine
) -> Measurement:
    """The metric rows of samples and of the paths on which they were made, trial by trial."""
    device = choose(machine.device, machine.threads, machine.provenance)
    compared = ImageComparison.read(files, settings, device)
    train, extractor = compared.train, compared.extractor.name
    drawn, table = image_rows.read_samples(samples, train)

    def measure(rows: np.ndarray) -> list[dict[str, Any]]:
        features, probabilities = image_rows.gather(
            image_rows.extract(compared.extractor, drawn, rows, machine.progress)
        )
        measured = image_rows.score(probabilities)
        if settings.pixels:
            measured += image_rows.neighbours(drawn.values[rows], train, device)
        for name, part in compared.references.items():
            measured += image_rows.compare(compared.extractor, features, part.whole, part.kernel, name)
        of_train = compared.references["train"].features
        measured += image_rows.likeness(compared.extractor, features, of_train, device)
        return measured + average_paths(table, rows)

    rows = measure_trials(table["trial"].to_numpy(), measure)
    sampling = drawn.metadata.parameters
    count = sampling["samples"]
    counts = {name: (count, part.whole.count) for name, part in compared.references.items()}
    rows += image_rows.rank("evaluate", compared.extractor, counts)
    return Measurement(
        [row | {"samples": count, "extractor": extractor} for row in rows],
        train.metadata.vocabulary,
        {"samples": digest(samples), **compared.inputs},
        sampling,
        {"extractor": extractor},
    )


def measure_floor(settings: FloorSettings, files: RealImages, machine: Machine) -> Measurement:
    """The metric rows of the method `data`, of real images as `ImagesKind.measure_floor` says."""
    device = choose(machine.device, machine.threads, machine.provenance)
    compared = ImageComparison.read(files, settings, device)
    rows = [*_train_rows(compared, settings, machine.progress), *_test_rows(compared, settings, device)]
    samples = min(settings.samples, len(halves(compared.train.originals)[0]))
    counts = {name: (samples, moments.count) for name, (moments, _) in _sides(compared).items()}
    rows += [{**row, "samples": samples} for row in image_rows.rank("floor", compared.extractor, counts)]
    extractor = {"extractor": compared.extractor.name}
    return Measurement(
        [{**row, **extractor, "method": "data"} for row in rows],
        compared.train.metadata.vocabulary,
        compared.inputs,
        parameters=extractor,
    )


def _sides(compared: ImageComparison) -> dict[str, tuple[Moments, tuple[np.ndarray, float]]]:
    """Reference -> moments and kernel of what half of the training images is compared with: the other half,
    all test images."""
    references = compared.references
    sides = {"train": (references["train"].held, references["train"].held_kernel)}
    if "test" in references:
        sides["test"] = (references["test"].whole, references["test"].kernel)
    return sides


def _train_rows(
    compared: ImageComparison, settings: FloorSettings, progress: bool
) -> Iterator[dict[str, Any]]:
    """Metric rows of training images against the other half of them, and against the test images."""
    extractor, train = compared.extractor, compared.train
    for trial, drawn in draw_trials(settings, "train", halves(train.originals)[0]):
        features, probabilities = image_rows.gather(image_rows.extract(extractor, train, drawn, progress))
        measured = []
        for name, (moments, kernel) in _sides(compared).items():
            measured += image_rows.compare(extractor, features, moments, kernel, name)
        measured += image_rows.score(probabilities)
        yield from ({**row, "trial": trial, "samples": len(drawn)} for row in measured)


def _test_rows(
    compared: ImageComparison, settings: FloorSettings, device: torch.device
) -> Iterator[dict[str, Any]]:
    """Metric rows of test images: their nearest training images, and their likeness to them."""
    if "test" not in compared.references:
        return
    extractor, test = compared.extractor, compared.test
    of_train, of_test = compared.references["train"], compared.references["test"]
    for trial, drawn in draw_trials(settings, "test", np.arange(test.originals)):
        measured = []
        if settings.pixels:
            measured += image_rows.neighbours(test.values[drawn], compared.train, device)
        if extractor.all_rows:
            measured += image_rows.likeness(extractor, of_test.features[drawn], of_train.features, device)
        yield from ({**row, "trial": trial, "samples": len(drawn)} for row in measured)
