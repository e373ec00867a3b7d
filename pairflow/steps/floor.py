"""Real images to metric rows: the distance of real images from real images, at an evaluation's numbers."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow import rng
from pairflow.artifacts import Metadata, Provenance, as_metrics, atomic, write_table
from pairflow.config import FloorSettings
from pairflow.metrics.images import RealImages
from pairflow.steps.command import device, out, quiet, real_images, step, threads


@step(FloorSettings)
@real_images
@click.option("--evaluation", default="main", show_default=True, help="Name of the evaluation.")
@out("--out", help="Metric rows of the method 'data', Parquet.")
@device
@threads
@quiet
def main(
    settings: FloorSettings,
    real: RealImages,
    evaluation: str,
    out: Path,
    device,
    threads,
    quiet,
):
    """Compare training images with training and test images, as samples are.

    Each trial draws from one half of the training images and compares with the other half (train) and with
    all test images (test). The nearest training images are those of test images: what no memory explains.
    """
    from pairflow.metrics import image_reference, image_rows
    from pairflow.runtime.device import choose

    provenance = Provenance()
    where = choose(device, threads)
    provenance.device = str(where)
    compared = image_reference.ImageComparison.read(real, settings, where)
    train, test, extractor = compared.train, compared.test, compared.extractor
    of_train, of_test = compared.references["train"], compared.references["test"]
    rows = []

    def add(trial: int, count: int, found: list) -> None:
        rows.extend({**row, "trial": trial, "samples": count} for row in found)

    ours, _ = image_reference.halves(train.originals)
    for trial, drawn in _draws(settings, "train", ours):
        features, probabilities = image_rows.gather(image_rows.extract(extractor, train, drawn, not quiet))
        found = image_rows.compare(extractor, features, of_train.held, of_train.held_kernel, "train")
        found += image_rows.compare(extractor, features, of_test.whole, of_test.kernel, "test")
        add(trial, len(drawn), [*found, *image_rows.score(probabilities)])
    for trial, drawn in _draws(settings, "test", np.arange(test.originals)):
        found = image_rows.neighbours(test.values[drawn], train, where)
        if extractor.all_rows:
            found += image_rows.likeness(extractor, of_test.features[drawn], of_train.features, where)
        add(trial, len(drawn), found)
    count = min(settings.samples, len(ours))
    counts = {"train": (count, of_train.held.count), "test": (count, of_test.whole.count)}
    rows += [{**row, "samples": count} for row in image_rows.rank("floor", extractor, counts)]
    shared = {"method": "data", "seed": settings.seed, "evaluation": evaluation, "extractor": extractor.name}
    made = Metadata(
        kind="metrics",
        vocabulary=train.metadata.vocabulary,
        parameters={**settings.model_dump(mode="json"), "extractor": extractor.name},
        inputs=compared.inputs,
    )
    with atomic(out) as [temporary]:
        write_table(temporary, as_metrics(pd.DataFrame(rows), **shared), made)
    provenance.write(out)


def _draws(settings: FloorSettings, of: str, rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """(trial, rows) without repetition; one trial where all rows are drawn."""
    trials = settings.trials if settings.samples < len(rows) else 1
    draws = []
    for trial in range(trials):
        order = rng.random_order(rng.stream_seed(settings.seed, "floor", of, trial), len(rows))
        draws.append((trial, np.sort(rows[order[: settings.samples]])))
    return draws


if __name__ == "__main__":
    main()
