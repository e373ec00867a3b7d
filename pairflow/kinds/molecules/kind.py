"""Molecules, as SMILES or SELFIES."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import DemandSettings
from pairflow.kinds.kind import Kind
from pairflow.kinds.molecules.settings import Molecules

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob
    from pairflow.data.delivery import Delivery, Scored
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.data.source import DatasetSize
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

    def takes(self, file: Path) -> bool:
        from pairflow.kinds.molecules.draft import holds_molecules

        return holds_molecules(file)

    def draft(self, request: "DraftRequest") -> "Draft":
        from pairflow.kinds.molecules.draft import draft_molecules

        return draft_molecules(request)

    def delivery(self, model: "Model", settings: DemandSettings) -> "Delivery":
        from pairflow.kinds.molecules.on_demand import MoleculeDelivery

        return MoleculeDelivery(model, settings)

    def scored(self, model: "Model") -> "Scored":
        from pairflow.kinds.molecules.on_demand import ScoredMolecules

        return ScoredMolecules(model)

    # Costs

    packages = ("RDKit",)

    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        from pairflow.kinds.molecules.costs import molecule_costs

        data = job.experiment.data
        assert isinstance(data, Molecules)
        return molecule_costs(job, data)

    def stored_bytes(self, sizes: "DatasetSize") -> float:
        return 8.0 * sizes.rows  # a hash of each known molecule


KIND = MoleculesKind()
