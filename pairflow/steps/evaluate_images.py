"""Samples of images to metric rows."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow.artifacts import Science, Stopwatch, as_metrics, atomic, digest, write_table
from pairflow.config import ExtractorSettings
from pairflow.steps._command import device, existing, out, quiet, step, threads


@step(ExtractorSettings)
@existing("--samples", help="Samples, Parquet.")
@existing("--tokens", help="Training images, Parquet.")
@existing("--validation", help="Test images, Parquet.")
@existing("--train-reference", help="Statistics of the training images, Parquet.")
@existing("--test-reference", help="Statistics of the test images, Parquet.")
@existing("--classifier", required=False, help="Weights of the classifier, safetensors.")
@click.option("--evaluation", default="main", show_default=True, help="Name of the evaluation.")
@out("--out", help="Metric rows, Parquet.")
@device
@threads
@quiet
def main(
    settings: ExtractorSettings,
    samples: Path,
    tokens: Path,
    validation: Path,
    train_reference: Path,
    test_reference: Path,
    classifier: Path,
    evaluation: str,
    out: Path,
    device,
    threads,
    quiet,
):
    """Compare each trial's images with training and test images: fid or fd, kid or kd, is, nearest images."""
    from pairflow.metrics import extractors
    from pairflow.steps import _images, _reference
    from pairflow.steps._device import choose

    stopwatch = Stopwatch()
    train, test = _images.read_images(tokens), _images.read_images(validation)
    drawn, trials = _images.read_samples(samples, train)
    where = choose(device, threads)
    stopwatch.device = str(where)
    extractor = extractors.load(settings, classifier, where)
    references = {
        "train": _reference.Reference.read(train_reference, train, extractor),
        "test": _reference.Reference.read(test_reference, test, extractor),
    }
    rows = []
    for trial in np.unique(trials):
        of_trial = np.flatnonzero(trials == trial)
        batches = _images.extract(extractor, drawn, of_trial, not quiet)
        features, probabilities = _images.gather(batches)
        found = [*_images.score(probabilities), *_images.neighbours(drawn.values[of_trial], train, where)]
        for name, real in references.items():
            found += _images.compare(extractor, features, real.whole, real.kernel, name)
        found += _images.likeness(extractor, features, references["train"].features, where)
        rows += [{**row, "trial": int(trial)} for row in found]
    facts = drawn.science.parameters
    counts = {name: (facts["samples"], real.whole.count) for name, real in references.items()}
    rows += _images.rank("evaluate_images", extractor, counts)
    shared = {key: facts[key] for key in ("method", "nfe", "seed", "samples")}
    frame = as_metrics(pd.DataFrame(rows), **shared, evaluation=evaluation, extractor=extractor.name)
    made = Science(
        kind="metrics",
        vocabulary=train.science.vocabulary,
        parameters={**facts, **settings.model_dump(mode="json"), "extractor": extractor.name},
        inputs={"samples": digest(samples), "tokens": digest(tokens), "validation": digest(validation)},
    )
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    stopwatch.write(out)


if __name__ == "__main__":
    main()
