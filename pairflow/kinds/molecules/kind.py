"""Molecules, as SMILES or SELFIES."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.molecules.metrics import GROUPS, METRICS, OFF_RULES
from pairflow.kinds.molecules.settings import Molecules
from pairflow.metrics.metric import Metric


class MoleculesKind(Kind):
    name, settings = "molecules", Molecules

    # Raw data

    def source(self, settings: Molecules, folder: Path = Path()) -> Any:
        from pairflow.kinds.molecules.data_sets import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    metrics, groups = METRICS, GROUPS

    def list_metrics(self, settings: Molecules) -> Mapping[str, Metric]:
        return {**METRICS, **OFF_RULES} if self.is_complete(settings) else METRICS

    def is_partial(self, settings: Molecules) -> bool:
        return super().is_partial(settings) or settings.max_heavy_atoms is not None

    def is_complete(self, settings: Molecules) -> bool:
        """Whether the data hold every molecule that keeps their rules, so that any other one breaks these."""
        return settings.source == "small_molecules" and not self.is_partial(settings)

    # On demand

    # Costs


KIND = MoleculesKind()
