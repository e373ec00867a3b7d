"""Real images to metric rows: the distance of real images from real images, at an evaluation's numbers."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow import rng
from pairflow.artifacts import Science, Stopwatch, as_metrics, atomic, write_table
from pairflow.config import FloorSettings
from pairflow.steps._command import RealImages, device, out, quiet, real_images, step, threads


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
    from pairflow.steps import _images, _reference
    from pairflow.steps._device import choose

    stopwatch = Stopwatch()
    where = choose(device, threads)
    stopwatch.device = str(where)
    compared = _reference.Compared.read(real, settings, where)
    train, test, extractor = compared.train, compared.test, compared.extractor
    of_train, of_test = compared.references["train"], compared.references["test"]
    rows = []

    def add(trial: int, count: int, found: list) -> None:
        rows.extend({**row, "trial": trial, "samples": count} for row in found)

    ours, _ = _reference.halves(train.originals)
    for trial, drawn in _draws(settings, "train", ours):
        features, probabilities = _images.gather(_images.extract(extractor, train, drawn, not quiet))
        found = _images.compare(extractor, features, of_train.held, of_train.held_kernel, "train")
        found += _images.compare(extractor, features, of_test.whole, of_test.kernel, "test")
        add(trial, len(drawn), [*found, *_images.score(probabilities)])
    for trial, drawn in _draws(settings, "test", np.arange(test.originals)):
        found = _images.neighbours(test.values[drawn], train, where)
        if extractor.all_rows:
            found += _images.likeness(extractor, of_test.features[drawn], of_train.features, where)
        add(trial, len(drawn), found)
    count = min(settings.samples, len(ours))
    counts = {"train": (count, of_train.held.count), "test": (count, of_test.whole.count)}
    rows += [{**row, "samples": count} for row in _images.rank("floor", extractor, counts)]
    shared = {"method": "data", "seed": settings.seed, "evaluation": evaluation, "extractor": extractor.name}
    made = Science(
        kind="metrics",
        vocabulary=train.science.vocabulary,
        parameters={**settings.model_dump(mode="json"), "extractor": extractor.name},
        inputs=compared.inputs,
    )
    with atomic(out) as [temporary]:
        write_table(temporary, as_metrics(pd.DataFrame(rows), **shared), made)
    stopwatch.write(out)


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
