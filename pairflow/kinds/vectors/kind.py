"""Vectors of real numbers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import RealDraws
from pairflow.data.costs import Cost, ShortJob
from pairflow.kinds.kind import Files, Kind, RowFiles
from pairflow.kinds.vectors.settings import Vectors
from pairflow.metrics.metric import PATH_GROUP, PATHS, Metric

if TYPE_CHECKING:
    from pairflow.metrics.measured import Machine, Measurement

_distance = partial(Metric, best="lowest", against="to training data", real="held-out data", log=True)
METRICS = {
    "chamfer": _distance("Chamfer distance", leads_as="the Chamfer distance", digits=4),
    "chamfer_all": _distance("Chamfer distance, all coordinates", digits=4),
    "w2": _distance("2-Wasserstein distance", digits=3),
    **PATHS,
}


class VectorsKind(Kind):
    name, settings, rows = "vectors", Vectors, "vectors"
    metrics, groups = METRICS, PATH_GROUP
    shows_pairs = True

    def prepare(self, settings: Vectors, files: Files, parent: Path | None, progress: bool) -> None:
        """Make the vectors of a continuous flow: points of two moons in d dimensions, or your own, in two
        parts.

        Your own come from a .npy file with a two-dimensional array of floating-point numbers.
        """
        file = Path(settings.file) if settings.file else None
        self.source(settings).read(settings).write(files, settings, file)

    def measure(self, settings: Any, samples: Path, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compare each trial's vectors with the training vectors, and average the energy and the straightness
        of the paths on which they were made."""
        return self.load("measure").measure_samples(samples, real)

    def measure_floor(self, settings: RealDraws, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compute the floor: the same metrics as for samples, with draws of held-out vectors instead."""
        return self.load("measure").measure_floor(settings, real)

    def costs(self, job: ShortJob) -> dict[str, Cost]:
        sizes = job.sizes
        numbers, compared = sizes.total * sizes.length, sizes.rows * sizes.length
        seconds, memory = 1.5 + job.samples * (1e-5 + 1e-9 * compared), 250.0 + 2e-5 * compared
        return {
            "preprocess": Cost(1.0 + 1e-7 * numbers, 200.0 + 3e-5 * numbers, sizes.total * sizes.row_bytes),
            "evaluate": Cost(seconds, memory, 3e4),
            "floor": Cost(seconds, memory, 1e6),
        }


KIND = VectorsKind()
