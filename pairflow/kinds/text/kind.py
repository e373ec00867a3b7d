"""Text, as characters or pieces of words."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.config import DemandSettings
from pairflow.kinds.kind import Kind
from pairflow.kinds.text.settings import Text

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob
    from pairflow.data.delivery import Delivery, Scored
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.training.model import Model


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

    rows = "text"
    on_demand = True
    chosen_by, chosen_lowest = ("judge_ppl",), True

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return symbols in ("characters", "subwords", "bert")

    def require_deliverable(self, folder: Path, settings: DemandSettings) -> None:
        from pairflow.kinds.text.on_demand import require_text

        require_text(folder, settings)

    def takes(self, file: Path) -> bool:
        return file.is_dir() or file.suffix.lower() == ".txt"

    def draft(self, request: "DraftRequest") -> "Draft":
        from pairflow.kinds.text.survey import draft_text

        return draft_text(request)

    def delivery(self, model: "Model", settings: DemandSettings) -> "Delivery":
        from pairflow.kinds.text.on_demand import TextDelivery

        return TextDelivery(model, settings)

    def scored(self, model: "Model") -> "Scored":
        from pairflow.kinds.text.on_demand import ScoredText

        return ScoredText(model)

    # Costs

    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        from pairflow.kinds.text.costs import text_costs

        return text_costs(job)


KIND = TextKind()
