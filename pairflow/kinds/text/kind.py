"""Text, as characters or pieces of words."""

from pathlib import Path
from typing import Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.text.settings import Text


class TextKind(Kind):
    name, settings = "text", Text

    # Raw data

    def source(self, settings: Text, folder: Path = Path()) -> Any:
        from pairflow.kinds.text.data_sets import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    # On demand

    # Costs


KIND = TextKind()
