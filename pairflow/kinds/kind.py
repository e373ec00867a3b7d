"""What the workflow asks of a kind of data: one class, of which each kind has a subclass in its own folder.

A subclass imports what it needs inside its methods, so that RDKit, torchvision and tokenizers are loaded for
their own kind only.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from pairflow.config import DataSettings


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

    # Costs
