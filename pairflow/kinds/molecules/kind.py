"""Molecules, as SMILES or SELFIES."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import DemandSettings
from pairflow.kinds.kind import Kind
from pairflow.kinds.molecules.settings import Molecules

if TYPE_CHECKING:
    from pairflow.data.delivery import Delivery, Scored
    from pairflow.training.model import Model


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

    rows = "molecules"
    on_demand = True
    chosen_by = ("useful_strict", "valid")

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return True  # an unknown model is taken for one of molecules, whose vocabulary is then asked for

    def delivery(self, model: "Model", settings: DemandSettings) -> "Delivery":
        from pairflow.kinds.molecules.on_demand import MoleculeDelivery

        return MoleculeDelivery(model, settings)

    def scored(self, model: "Model") -> "Scored":
        from pairflow.kinds.molecules.on_demand import ScoredMolecules

        return ScoredMolecules(model)

    # Costs


KIND = MoleculesKind()
