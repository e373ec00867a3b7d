"""Samples of images to metric rows."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow.artifacts import Science, Stopwatch, as_metrics, atomic, digest, write_table
from pairflow.config import ExtractorSettings
from pairflow.steps._command import RealImages, device, existing, out, quiet, real_images, step, threads


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
    from pairflow.steps import _images
    from pairflow.steps._device import choose
    from pairflow.steps._reference import Compared

    stopwatch = Stopwatch()
    where = choose(device, threads)
    stopwatch.device = str(where)
    compared = Compared.read(real, settings, where)
    train, extractor, references = compared.train, compared.extractor, compared.references
    drawn, trials = _images.read_samples(samples, train)
    rows = []
    for trial in np.unique(trials):
        of_trial = np.flatnonzero(trials == trial)
        batches = _images.extract(extractor, drawn, of_trial, not quiet)
        features, probabilities = _images.gather(batches)
        found = [*_images.score(probabilities), *_images.neighbours(drawn.values[of_trial], train, where)]
        for name, reference in references.items():
            found += _images.compare(extractor, features, reference.whole, reference.kernel, name)
        found += _images.likeness(extractor, features, references["train"].features, where)
        rows += [{**row, "trial": int(trial)} for row in found]
    facts = drawn.science.parameters
    counts = {name: (facts["samples"], each.whole.count) for name, each in references.items()}
    rows += _images.rank("evaluate_images", extractor, counts)
    shared = {key: facts[key] for key in ("method", "nfe", "seed", "samples")}
    frame = as_metrics(pd.DataFrame(rows), **shared, evaluation=evaluation, extractor=extractor.name)
    made = Science(
        kind="metrics",
        vocabulary=train.science.vocabulary,
        parameters={**facts, **settings.model_dump(mode="json"), "extractor": extractor.name},
        inputs={"samples": digest(samples), **compared.inputs},
    )
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    stopwatch.write(out)


if __name__ == "__main__":
    main()
