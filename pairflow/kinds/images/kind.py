"""Images, as pixels."""

from pathlib import Path
from typing import Any

from pairflow.kinds.images.metrics import GROUPS, METRICS
from pairflow.kinds.images.settings import Images
from pairflow.kinds.kind import Kind


class ImagesKind(Kind):
    name, settings = "images", Images

    # Raw data

    def source(self, settings: Images, folder: Path = Path()) -> Any:
        from pairflow.kinds.images.data_sets import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    metrics, groups = METRICS, GROUPS

    # On demand

    # Costs


KIND = ImagesKind()
