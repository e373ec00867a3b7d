"""Images, as pixels."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.kinds.images.settings import Images
from pairflow.kinds.kind import Kind

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob


class ImagesKind(Kind):
    name, settings = "images", Images

    # Raw data

    def source(self, settings: Images, folder: Path = Path()) -> Any:
        from pairflow.kinds.images.data_sets import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    # On demand

    rows = "images"

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return symbols == "image" or description.get("shape") is not None

    # Costs

    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        from pairflow.kinds.images.costs import image_costs

        return image_costs(job)


KIND = ImagesKind()
