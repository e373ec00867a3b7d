"""Vectors of real numbers as a kind of data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import RealDraws
from pairflow.kinds.kind import Files, Kind, Pace, RowFiles
from pairflow.kinds.vectors.settings import Vectors

if TYPE_CHECKING:
    from pairflow.metrics.measured import Machine, Measurement


class VectorsKind(Kind):
    name, settings, rows = "vectors", Vectors, "vectors"
    shows_pairs = True

    def prepare(self, settings: Vectors, files: Files, parent: Path | None, progress: bool) -> None:
        """Write training vectors and held-out vectors for a continuous flow: two moons in d dimensions, or
        your own.

        Your own come from a .npy file with a two-dimensional array of floating-point numbers.
        """
        file = Path(settings.file) if settings.file else None
        self.source(settings).read(settings).write(files, settings, file)

    def measure(self, settings: Any, samples: Path, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compare each trial's vectors with the training vectors, and average the energy and the straightness
        of the flow's paths."""
        return self.load("measure").measure_samples(samples, real)

    def measure_floor(self, settings: RealDraws, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compute the floor: the same metrics as for samples, measured on held-out vectors."""
        return self.load("measure").measure_floor(settings, real)

    pace = Pace(prepare=1e-7, sample=1e-5, compare=1e-9)


KIND = VectorsKind()
