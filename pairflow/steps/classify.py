"""Labelled images to a classifier, whose features are used to compare images."""

from pathlib import Path

from pairflow.artifacts import Provenance, atomic, digest
from pairflow.config import ClassifySettings
from pairflow.errors import InputError
from pairflow.steps.command import existing, out, quiet, step, threads


@step(ClassifySettings)
@existing("--tokens", help="Training images with labels (Parquet).")
@existing("--validation", help="Test images with labels (Parquet), for the accuracy.")
@out("--out", help="Output file for the weights (safetensors).")
@out("--description", help="Output file for the description: the name of --out, with .json.")
@threads
@quiet
def main(settings: ClassifySettings, tokens: Path, validation: Path, out: Path, description, threads, quiet):
    """Train a small classifier on the CPU. Its description has the accuracy on the test images."""
    from pairflow.metrics import classifier
    from pairflow.metrics.image_rows import read_images
    from pairflow.runtime.device import choose

    provenance = Provenance()
    choose("cpu", threads)
    images, test = read_images(tokens), read_images(validation)
    images.require_like(test)
    for split in (images, test):
        if split.labels is None:
            raise InputError(f"{split.path}: the classifier needs a label for every image")
    if description != out.with_suffix(".json"):
        raise InputError(f"--description: expected {out.with_suffix('.json')}, found {description}")
    provenance.samples = settings.iterations * classifier.BATCH
    network = classifier.train(images[:], images.labels, settings.iterations, settings.seed, not quiet)
    facts = {
        **settings.model_dump(mode="json"),
        "shape": images.metadata.shape,
        "classes": int(images.labels.max()) + 1,
        "accuracy": classifier.accuracy(network, test[:], test.labels),
        "inputs": {"tokens": digest(tokens), "validation": digest(validation)},
    }
    with atomic(out, description) as [new_weights, new_description]:
        classifier.save(new_weights, new_description, network, facts)
    provenance.write(out)


if __name__ == "__main__":
    main()
