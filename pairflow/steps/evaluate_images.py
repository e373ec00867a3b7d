"""Samples of images to metric rows."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, digest, save_table
from pairflow.kinds.images.measures import RealImages
from pairflow.kinds.images.settings import ComparisonSettings
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, existing, on_device, out, real_images


@step(ComparisonSettings)
@existing("--samples", help="Samples (Parquet).")
@real_images
@evaluation
@out("--out", help="Output file for the metric rows (Parquet).")
@on_device
def main(
    settings: ComparisonSettings, samples: Path, real: RealImages, evaluation, out, device, threads, quiet
):
    """Compare each trial's images with training and test images by Fréchet distance (`fid` or `fd`),
    kernel distance (`kid` or `kd`), Inception Score (`is`) and nearest images; average the energy and the
    straightness of a continuous flow's paths."""
    from pairflow.kinds.images import rows as image_rows
    from pairflow.kinds.images.reference import ImageComparison
    from pairflow.kinds.vectors.measure import average_paths
    from pairflow.runtime.device import choose

    provenance = Provenance()
    device = choose(device, threads, provenance)
    compared = ImageComparison.read(real, settings, device)
    train, extractor = compared.train, compared.extractor
    drawn, table = image_rows.read_samples(samples, train)
    trials, rows = table["trial"].to_numpy(), []
    for trial in np.unique(trials):
        of_trial = np.flatnonzero(trials == trial)
        measured = _compare(compared, drawn, of_trial, settings.pixels, device, not quiet)
        rows += [row | {"trial": int(trial)} for row in measured + average_paths(table, of_trial)]
    sampling = drawn.metadata.parameters
    counts = {name: (sampling["samples"], part.whole.count) for name, part in compared.references.items()}
    rows += image_rows.rank("evaluate_images", extractor, counts)
    shared = {key: sampling[key] for key in ("method", "nfe", "seed", "samples")}
    frame = as_metrics(pd.DataFrame(rows), **shared, evaluation=evaluation, extractor=extractor.name)
    written = Metadata(
        kind="metrics",
        vocabulary=train.metadata.vocabulary,
        parameters={**sampling, **settings.model_dump(mode="json"), "extractor": extractor.name},
        inputs={"samples": digest(samples), **compared.inputs},
    )
    save_table(out, frame, written, provenance)


def _compare(compared, images, rows: np.ndarray, pixels: bool, device, progress: bool) -> list[dict]:
    """Metric rows of some rows of the images, against training and test images."""
    from pairflow.kinds.images import rows as image_rows

    extractor, references = compared.extractor, compared.references
    features, probabilities = image_rows.gather(image_rows.extract(extractor, images, rows, progress))
    measured = image_rows.score(probabilities)
    if pixels:
        measured += image_rows.neighbours(images.values[rows], compared.train, device)
    for name, reference in references.items():
        measured += image_rows.compare(extractor, features, reference.whole, reference.kernel, name)
    return measured + image_rows.likeness(extractor, features, references["train"].features, device)


if __name__ == "__main__":
    main()
