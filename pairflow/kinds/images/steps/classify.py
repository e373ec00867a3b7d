"""Labelled images to a classifier, whose features are used to compare images."""

from pathlib import Path

import numpy as np

from pairflow.artifacts import Provenance, atomic, digest
from pairflow.errors import InputError
from pairflow.kinds.images.settings import ClassifySettings
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step(ClassifySettings)
@existing("--tokens", help="Training images with labels (Parquet).")
@existing("--validation", help="Test images with labels (Parquet), for the accuracy.")
@out("--out", help="Output file for the weights (safetensors).")
@out("--description", help="Output file for the description: the name of --out, with .json.")
@threads
@quiet
def main(settings: ClassifySettings, tokens: Path, validation: Path, out: Path, description, threads, quiet):
    """Train a small classifier on the CPU. Its accuracy on the test images is written to its description."""
    from pairflow.kinds.images import classifier
    from pairflow.kinds.images.rows import read_images
    from pairflow.runtime.device import choose

    provenance = Provenance()
    choose("cpu", threads)
    images, test = read_images(tokens), read_images(validation)
    images.require_like(test)
    labels, test_labels = _labels(images), _labels(test)
    if description != out.with_suffix(".json"):
        raise InputError(f"--description: expected {out.with_suffix('.json')}, found {description}")
    provenance.samples = settings.iterations * classifier.BATCH
    network = classifier.train(images[:], labels, settings.iterations, settings.seed, not quiet)
    facts = {
        **settings.model_dump(mode="json"),
        "shape": images.metadata.shape,
        "classes": int(labels.max()) + 1,
        "accuracy": classifier.accuracy(network, test[:], test_labels) if len(test_labels) else None,
        "inputs": {"tokens": digest(tokens), "validation": digest(validation)},
    }
    with atomic(out, description) as [new_weights, new_description]:
        classifier.save(new_weights, new_description, network, facts)
    provenance.write(out)


def _labels(images) -> np.ndarray:
    """The labels of the images; InputError if there are none."""
    if images.labels is None:
        raise InputError(f"{images.path}: the classifier needs a label for every image")
    return images.labels


if __name__ == "__main__":
    main()
