"""What jobs on images take. The times of Inception and DINOv2 are not known."""

from pairflow.data.costs import Cost, ShortJob


def image_costs(job: ShortJob) -> dict[str, Cost]:
    """The costs by rule."""
    sizes, samples = job.sizes, job.samples
    pixels, compared = sizes.total * sizes.length, sizes.rows * sizes.length
    known = getattr(job.settings, "extractor", None) == "classifier"
    in_torch = 700.0 + 12e-6 * compared

    def features(seconds: float, disk: float) -> Cost:
        return Cost(3.0 + seconds, in_torch, disk) if known else Cost(None, None, disk)

    training = 9e-5 * sizes.length * getattr(job.settings, "iterations", 0)
    return {
        "preprocess": Cost(1.0 + 5e-8 * pixels, 150.0 + 1e-5 * pixels, sizes.total * sizes.row_bytes),
        "classify": Cost(3.0 + training, 900.0, 1e6),
        "reference": features(7e-4 * sizes.rows, 1e6),
        "floor": features(7e-4 * samples, 1e6),
        "evaluate": features(samples * (2e-11 * compared + 7e-4), 3e4),
    }
