"""Molecules, as SMILES or SELFIES."""

from pathlib import Path
from typing import Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.molecules.settings import Molecules


class MoleculesKind(Kind):
    name, settings = "molecules", Molecules

    # Raw data

    def source(self, settings: Molecules, folder: Path = Path()) -> Any:
        from pairflow.kinds.molecules.data_sets import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    # On demand

    # Costs


KIND = MoleculesKind()
