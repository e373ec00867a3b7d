"""Vectors of real numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.vectors.settings import Vectors

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob


class VectorsKind(Kind):
    name, settings = "vectors", Vectors

    # Raw data

    def source(self, settings: Vectors, folder: Path = Path()) -> Any:
        from pairflow.kinds.vectors.sources import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    # On demand

    rows = "vectors"

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return symbols == "vectors"

    # Costs

    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        from pairflow.kinds.vectors.costs import vector_costs

        return vector_costs(job)


KIND = VectorsKind()
