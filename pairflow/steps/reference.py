"""Real images to the statistics that samples are compared with."""

from pathlib import Path

from pairflow.artifacts import Provenance, atomic
from pairflow.config import ExtractorSettings
from pairflow.steps.command import device, existing, out, quiet, step, threads


@step(ExtractorSettings)
@existing("--tokens", help="Images, Parquet.")
@existing("--classifier", required=False, help="Weights of the classifier, safetensors.")
@out("--out", help="Statistics, Parquet: a row per feature.")
@device
@threads
@quiet
def main(settings: ExtractorSettings, tokens: Path, classifier: Path, out: Path, device, threads, quiet):
    """Measure mean and covariance of the features of all images and of a random half."""
    from pairflow.metrics import extractors
    from pairflow.metrics.image_reference import measure
    from pairflow.metrics.image_rows import read_images
    from pairflow.runtime.device import choose

    provenance = Provenance()
    images = read_images(tokens)
    where = choose(device, threads)
    provenance.device = str(where)
    extractor = extractors.load(settings, classifier, where)
    found = measure(extractor, images, not quiet)
    with atomic(out) as [temporary]:
        found.write(temporary)
    provenance.write(out)


if __name__ == "__main__":
    main()
