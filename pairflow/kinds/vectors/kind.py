"""Vectors of real numbers."""

from pathlib import Path
from typing import Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.vectors.metrics import GROUPS, METRICS
from pairflow.kinds.vectors.settings import Vectors


class VectorsKind(Kind):
    name, settings = "vectors", Vectors

    # Raw data

    def source(self, settings: Vectors, folder: Path = Path()) -> Any:
        from pairflow.kinds.vectors.sources import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    metrics, groups = METRICS, GROUPS

    # On demand

    # Costs


KIND = VectorsKind()
