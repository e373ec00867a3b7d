"""Real images to metric rows: the distance of real images from real images, at an evaluation's numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, save_table
from pairflow.kinds.images.measures import RealImages
from pairflow.kinds.images.settings import FloorSettings
from pairflow.metrics.draws import draw_trials
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, on_device, out, real_images


@step(FloorSettings)
@real_images
@evaluation
@out("--out", help="Output file for the metric rows of the method 'data' (Parquet).")
@on_device
def main(settings: FloorSettings, real: RealImages, evaluation, out: Path, device, threads, quiet):
    """Compute the noise floor: the same distances as for samples, but measured between two sets of real
    images.

    Each trial draws from one half of the training images and compares with the other half (train) and with
    all test images (test). For the distance to the nearest training image, test images take the place of
    samples, because no model has memorised them. Without test images only the first remains.
    """
    from pairflow.kinds.images import rows as image_rows
    from pairflow.kinds.images.reference import ImageComparison
    from pairflow.runtime.device import choose

    provenance = Provenance()
    device = choose(device, threads, provenance)
    compared = ImageComparison.read(real, settings, device)
    rows = [*_train_rows(compared, settings, not quiet), *_test_rows(compared, settings, device)]
    samples = min(settings.samples, len(_half(compared)))
    counts = {name: (samples, moments.count) for name, (moments, _) in _sides(compared).items()}
    rows += [{**row, "samples": samples} for row in image_rows.rank("floor", compared.extractor, counts)]
    extractor = compared.extractor.name
    shared = {"method": "data", "seed": settings.seed, "evaluation": evaluation, "extractor": extractor}
    written = Metadata(
        kind="metrics",
        vocabulary=compared.train.metadata.vocabulary,
        parameters={**settings.model_dump(mode="json"), "extractor": extractor},
        inputs=compared.inputs,
    )
    save_table(out, as_metrics(pd.DataFrame(rows), **shared), written, provenance)


def _half(compared) -> np.ndarray:
    """The rows of the half of the training images that stands in for samples."""
    from pairflow.kinds.images.reference import halves

    return halves(compared.train.originals)[0]


def _sides(compared) -> dict:
    """Reference -> moments and kernel of what that half is compared with: the other half, all test images."""
    references = compared.references
    sides = {"train": (references["train"].held, references["train"].held_kernel)}
    if "test" in references:
        sides["test"] = (references["test"].whole, references["test"].kernel)
    return sides


def _train_rows(compared, settings: FloorSettings, progress: bool) -> Iterator[dict]:
    """Metric rows of training images against the other half of them, and against the test images."""
    from pairflow.kinds.images import rows as image_rows

    extractor, train = compared.extractor, compared.train
    for trial, drawn in draw_trials(settings, "train", _half(compared)):
        features, probabilities = image_rows.gather(image_rows.extract(extractor, train, drawn, progress))
        measured = []
        for name, (moments, kernel) in _sides(compared).items():
            measured += image_rows.compare(extractor, features, moments, kernel, name)
        measured += image_rows.score(probabilities)
        yield from ({**row, "trial": trial, "samples": len(drawn)} for row in measured)


def _test_rows(compared, settings: FloorSettings, device) -> Iterator[dict]:
    """Metric rows of test images: their nearest training images, and their likeness to them."""
    from pairflow.kinds.images import rows as image_rows

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


if __name__ == "__main__":
    main()
