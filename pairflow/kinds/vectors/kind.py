"""Vectors of real numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import RealDraws
from pairflow.kinds.kind import Kind, RowFiles
from pairflow.kinds.vectors.metrics import GROUPS, METRICS
from pairflow.kinds.vectors.settings import Vectors

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob
    from pairflow.metrics.measured import Machine, Measurement


class VectorsKind(Kind):
    name, settings = "vectors", Vectors

    # Raw data

    def source(self, settings: Vectors, folder: Path = Path()) -> Any:
        from pairflow.kinds.vectors.sources import source_of

        return source_of(settings, folder)

    def prepare(
        self, settings: Vectors, files: Mapping[str, Path], parent: Path | None, progress: bool
    ) -> None:
        """Make the vectors of a continuous flow: points of two moons in d dimensions, or your own, in two
        parts.

        Your own come from a .npy file with a two-dimensional array of floating-point numbers.
        """
        from pairflow.kinds.vectors.store import store

        store(settings, files)

    # Jobs on real data

    shows_pairs = True

    # Metrics of samples

    def measure(self, settings: Any, samples: Path, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compare each trial's vectors with the training vectors, and average the energy and the straightness
        of the paths on which they were made."""
        from pairflow.kinds.vectors.measure import measure_samples

        return measure_samples(samples, real)

    def measure_floor(self, settings: RealDraws, real: RowFiles, machine: "Machine") -> "Measurement":
        """Compute the floor: the same metrics as for samples, with draws of held-out vectors instead."""
        from pairflow.kinds.vectors.measure import measure_floor

        return measure_floor(settings, real)

    # The page

    metrics, groups = METRICS, GROUPS

    # On demand

    rows = "vectors"

    # Costs

    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        from pairflow.kinds.vectors.costs import vector_costs

        return vector_costs(job)


KIND = VectorsKind()
