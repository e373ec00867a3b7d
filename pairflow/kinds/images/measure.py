"""The metric rows of samples of images, and of real ones in their place, against training and test images."""

from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import digest
from pairflow.kinds.images import rows as image_rows
from pairflow.kinds.images.kind import RealImages
from pairflow.kinds.images.reference import ImageComparison, halves
from pairflow.kinds.images.settings import ComparisonSettings, FloorSettings
from pairflow.metrics.continuous import average_paths
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
    extractor, train, test = compared.extractor, compared.train, compared.test
    references, half = compared.references, halves(train.originals)[0]
    # What half of the training images is compared with: the other half, all test images.
    sides = {"train": (references["train"].held, references["train"].held_kernel)}
    if "test" in references:
        sides["test"] = (references["test"].whole, references["test"].kernel)
    rows: list[dict[str, Any]] = []
    for trial, drawn in draw_trials(settings, "train", half):
        batches = image_rows.extract(extractor, train, drawn, machine.progress)
        features, probabilities = image_rows.gather(batches)
        measured = []
        for name, (moments, kernel) in sides.items():
            measured += image_rows.compare(extractor, features, moments, kernel, name)
        measured += image_rows.score(probabilities)
        rows += [row | {"trial": trial, "samples": len(drawn)} for row in measured]
    # Test images beside their nearest training images, and their likeness to them.
    draws = draw_trials(settings, "test", np.arange(test.originals)) if "test" in references else ()
    for trial, drawn in draws:
        measured = image_rows.neighbours(test.values[drawn], train, device) if settings.pixels else []
        if extractor.all_rows:
            of_train, of_test = references["train"].features, references["test"].features
            measured += image_rows.likeness(extractor, of_test[drawn], of_train, device)
        rows += [row | {"trial": trial, "samples": len(drawn)} for row in measured]
    samples = min(settings.samples, len(half))
    counts = {name: (samples, moments.count) for name, (moments, _) in sides.items()}
    rows += [row | {"samples": samples} for row in image_rows.rank("floor", extractor, counts)]
    named = {"extractor": extractor.name}
    rows = [row | named | {"method": "data"} for row in rows]
    return Measurement(rows, train.metadata.vocabulary, compared.inputs, parameters=named)
