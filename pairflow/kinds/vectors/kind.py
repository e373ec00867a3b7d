"""Vectors of real numbers as a kind of data."""

from pathlib import Path
from typing import TYPE_CHECKING

from pairflow.config import RealDraws, Settings
from pairflow.kinds.kind import Costs, Kind, Pace, Preprocessing, RowFiles, RowFloor, RowReference
from pairflow.kinds.vectors.settings import Vectors

if TYPE_CHECKING:
    from pairflow.kinds.vectors.data_sets import TwoMoons, VectorFile
    from pairflow.kinds.vectors.page.page import VectorsPage
    from pairflow.metrics.measured import Machine, Measurement


class VectorCosts(Costs):
    pace = Pace(prepare=1e-7, sample=1e-5, compare=1e-9)


class VectorReference(RowReference):
    def measure(self, settings: Settings, samples: Path, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compare each trial's vectors with the training vectors, and average the energy and the straightness
        of the flow's paths."""
        from pairflow.kinds.vectors.measure import measure_samples

        return measure_samples(samples, real)


class VectorFloor(RowFloor):
    def measure(self, settings: RealDraws, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compute the floor: the same metrics as for samples, measured on held-out vectors."""
        from pairflow.kinds.vectors.measure import measure_floor

        return measure_floor(settings, real)


class VectorsKind(Kind[Vectors]):
    name, settings, rows = "vectors", Vectors, "vectors"
    shows_pairs = True
    costs, reference = VectorCosts(), VectorReference()
    floor = VectorFloor(reference)

    def source(self, settings: Vectors, folder: Path = Path()) -> "TwoMoons | VectorFile":
        from pairflow.kinds.vectors.data_sets import TwoMoons, VectorFile

        return VectorFile(folder / settings.file) if settings.file else TwoMoons(settings.source)

    def prepare(self, settings: Vectors, task: Preprocessing) -> None:
        """Write training vectors and held-out vectors for a continuous flow: two moons in d dimensions, or
        your own.

        Your own come from a .npy file with a two-dimensional array of floating-point numbers.
        """
        file = Path(settings.file) if settings.file else None
        self.source(settings).read(settings).write(task.files, settings, file)

    def page(self) -> "VectorsPage":
        from pairflow.kinds.vectors.page.page import VectorsPage

        return VectorsPage()


KIND = VectorsKind()
