"""Computes the feature statistics of real images, which samples are compared with."""

from pathlib import Path

from pairflow.artifacts import Provenance, save_table
from pairflow.kinds.images.settings import ExtractorSettings
from pairflow.steps.command import step
from pairflow.steps.options import existing, on_device, out


@step(ExtractorSettings)
@existing("--tokens", help="Images (Parquet).")
@out("--out", help="Output file for the statistics (Parquet): a row per feature.")
@on_device
def main(settings: ExtractorSettings, tokens: Path, out: Path, device, threads, quiet):
    """Compute mean and covariance of the features of all images, and of a random half."""
    from pairflow.kinds.images import extractors
    from pairflow.kinds.images.rows import measure_statistics, read_images
    from pairflow.runtime.device import choose

    provenance = Provenance()
    images = read_images(tokens)
    extractor = extractors.load(settings, choose(device, threads, provenance))
    statistics = measure_statistics(extractor, images, not quiet)
    save_table(out, statistics.table(), statistics.metadata, provenance)


if __name__ == "__main__":
    main()
