"""The metric rows of samples of images, against training and test images."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pairflow.artifacts import digest
from pairflow.kinds.images import rows as image_rows
from pairflow.kinds.images.reference import ImageComparison
from pairflow.kinds.images.rows import ImageRows
from pairflow.kinds.images.settings import ComparisonSettings
from pairflow.metrics.continuous import average_paths
from pairflow.metrics.measured import Machine, Measurement
from pairflow.runtime.device import choose

if TYPE_CHECKING:
    from pairflow.kinds.images.kind import RealImages


def measure_samples(
    settings: ComparisonSettings, samples: Path, files: "RealImages", machine: Machine
) -> Measurement:
    """The metric rows of samples and of the paths on which they were made, trial by trial."""
    device = choose(machine.device, machine.threads, machine.provenance)
    compared = ImageComparison.read(files, settings, device)
    train, extractor = compared.train, compared.extractor.name
    drawn, table = image_rows.read_samples(samples, train)
    trials, rows = table["trial"].to_numpy(), []
    for trial in np.unique(trials):
        of_trial = np.flatnonzero(trials == trial)
        measured = _compare(compared, drawn, of_trial, settings.pixels, device, machine.progress)
        rows += [row | {"trial": int(trial)} for row in measured + average_paths(table, of_trial)]
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


def _compare(
    compared: ImageComparison,
    images: ImageRows,
    rows: np.ndarray,
    pixels: bool,
    device: torch.device,
    progress: bool,
) -> list[dict[str, Any]]:
    """Metric rows of some rows of the images, against training and test images."""
    extractor, references = compared.extractor, compared.references
    features, probabilities = image_rows.gather(image_rows.extract(extractor, images, rows, progress))
    measured = image_rows.score(probabilities)
    if pixels:
        measured += image_rows.neighbours(images.values[rows], compared.train, device)
    for name, reference in references.items():
        measured += image_rows.compare(extractor, features, reference.whole, reference.kernel, name)
    return measured + image_rows.likeness(extractor, features, references["train"].features, device)
