"""What the workflow asks of a kind of data: one class, of which each kind has a subclass in its own folder.

A subclass imports what it needs inside its methods, so that RDKit, torchvision and tokenizers are loaded for
their own kind only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pairflow.config import DataSettings
from pairflow.metrics.metric import Metric


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

    # The page. What it draws and writes is in the kind's folder `page`, where there is one (`report.pages`).

    metrics: ClassVar[Mapping[str, Metric]]  # in the order of the page
    groups: ClassVar[Mapping[str, str]] = {}  # group of metrics -> the title of its tables

    def list_metrics(self, settings: Any) -> Mapping[str, Metric]:
        """The metrics as they read with these settings. Asked by all pages and by the end of `run`."""
        return self.metrics

    def is_partial(self, settings: Any) -> bool:
        """Whether the settings leave out a part of the data set. Asked by pages, whose numbers then do not
        compare with the paper's."""
        return settings.training_rows is not None

    # On demand

    # Costs
