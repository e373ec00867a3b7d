"""Text, as characters or pieces of words."""

from pathlib import Path
from typing import Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.text.metrics import GROUPS, METRICS
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

    metrics, groups = METRICS, GROUPS

    def is_partial(self, settings: Text) -> bool:
        """The paper takes 3.5 million rows of LM1B; protocol.yaml of its page has their number."""
        return settings.source != "lm1b" and super().is_partial(settings)

    # On demand

    # Costs


KIND = TextKind()
