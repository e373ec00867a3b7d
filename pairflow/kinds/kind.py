"""What the workflow asks of a kind of data: one class, of which each kind has a subclass in its own folder.

A subclass imports what it needs inside its methods, so that RDKit, torchvision and tokenizers are loaded for
their own kind only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pairflow.config import DataSettings, DemandSettings

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob
    from pairflow.data.delivery import Delivery, Scored
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.data.source import DatasetSize
    from pairflow.training.model import Model


class Kind(ABC):
    """A kind of data. `name` is that of its folder, `settings` the class of the section `data`."""

    name: ClassVar[str]
    settings: ClassVar[type[DataSettings]]

    # Raw data

    @abstractmethod
    def source(self, settings: Any, folder: Path = Path()) -> Any:
        """The source that the settings name; relative paths are those below `folder`. Asked by all that read,
        check or measure raw data."""

    # Jobs on real data

    # Metrics of samples

    # The page

    # On demand

    rows: ClassVar[str]  # what messages call its rows
    on_demand: ClassVar[bool] = False  # whether `sample --count` and `score` know what to do with them
    chosen_by: ClassVar[tuple[str, ...]] = ()  # metrics by which `sample` chooses a model, best first
    chosen_lowest: ClassVar[bool] = False  # whether the lowest value is chosen, or the largest count

    @abstractmethod
    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        """Whether a model makes rows of this kind, by its model.json and by what its vocabulary.json calls
        them; either may be unknown, and is then empty. Asked before a model is used, kind after kind."""

    def require_deliverable(self, folder: Path, settings: DemandSettings) -> None:
        """InputError for settings that mean nothing to this kind. Asked by `sample --count` for a folder."""
        return

    def takes(self, file: Path) -> bool:
        """Whether a user's own file is of this kind. Asked by `new`, in the order of KINDS from the end."""
        return False

    def draft(self, request: "DraftRequest") -> "Draft":
        """The experiment to suggest on a user's own file, and what the file holds. Asked by `new` after
        `takes`."""
        raise NotImplementedError

    def delivery(self, model: "Model", settings: DemandSettings) -> "Delivery":
        """How the model's samples leave on demand. Asked by `sample --count` if `on_demand`."""
        raise NotImplementedError

    def scored(self, model: "Model") -> "Scored":
        """How a file becomes rows that the model can score. Asked by `score` if `on_demand`."""
        raise NotImplementedError

    # Costs

    packages: ClassVar[tuple[str, ...]] = ()  # packages, as `doctor` calls them, that it cannot do without

    @abstractmethod
    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        """What a job on its real data or on its samples takes, by the job's rule. Asked by the estimate."""

    def stored_bytes(self, sizes: "DatasetSize") -> float:
        """The size of what the kind stores with every model. Asked by the estimate."""
        return 0.0
