"""Samples of images to metric rows."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, atomic, digest, write_table
from pairflow.config import ExtractorSettings
from pairflow.metrics.images import RealImages
from pairflow.steps.command import device, existing, out, quiet, real_images, step, threads


@step(ExtractorSettings)
@existing("--samples", help="Samples, Parquet.")
@real_images
@click.option("--evaluation", default="main", show_default=True, help="Name of the evaluation.")
@out("--out", help="Metric rows, Parquet.")
@device
@threads
@quiet
def main(
    settings: ExtractorSettings,
    samples: Path,
    real: RealImages,
    evaluation: str,
    out: Path,
    device,
    threads,
    quiet,
):
    """Compare each trial's images with training and test images: fid or fd, kid or kd, is, nearest images."""
    from pairflow.metrics import image_rows
    from pairflow.metrics.image_reference import ImageComparison
    from pairflow.runtime.device import choose

    provenance = Provenance()
    where = choose(device, threads)
    provenance.device = str(where)
    compared = ImageComparison.read(real, settings, where)
    train, extractor, references = compared.train, compared.extractor, compared.references
    drawn, trials = image_rows.read_samples(samples, train)
    rows = []
    for trial in np.unique(trials):
        of_trial = np.flatnonzero(trials == trial)
        batches = image_rows.extract(extractor, drawn, of_trial, not quiet)
        features, probabilities = image_rows.gather(batches)
        found = [
            *image_rows.score(probabilities),
            *image_rows.neighbours(drawn.values[of_trial], train, where),
        ]
        for name, reference in references.items():
            found += image_rows.compare(extractor, features, reference.whole, reference.kernel, name)
        found += image_rows.likeness(extractor, features, references["train"].features, where)
        rows += [{**row, "trial": int(trial)} for row in found]
    facts = drawn.metadata.parameters
    counts = {name: (facts["samples"], each.whole.count) for name, each in references.items()}
    rows += image_rows.rank("evaluate_images", extractor, counts)
    shared = {key: facts[key] for key in ("method", "nfe", "seed", "samples")}
    frame = as_metrics(pd.DataFrame(rows), **shared, evaluation=evaluation, extractor=extractor.name)
    made = Metadata(
        kind="metrics",
        vocabulary=train.metadata.vocabulary,
        parameters={**facts, **settings.model_dump(mode="json"), "extractor": extractor.name},
        inputs={"samples": digest(samples), **compared.inputs},
    )
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    provenance.write(out)


if __name__ == "__main__":
    main()
