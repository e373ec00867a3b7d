"""Token rows of a user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.tokens.settings import Tokens

if TYPE_CHECKING:
    from pairflow.data.costs import Cost, ShortJob


class TokensKind(Kind):
    name, settings = "tokens", Tokens

    # Raw data

    def source(self, settings: Tokens, folder: Path = Path()) -> Any:
        from pairflow.kinds.tokens.sources import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    # On demand

    rows = "token rows"

    def is_made_by(self, description: Mapping[str, Any], symbols: str) -> bool:
        return symbols == "tokens" or description.get("vocabulary", "") is None

    # Costs

    def costs(self, job: "ShortJob") -> dict[str, "Cost"]:
        from pairflow.data.costs import token_costs

        return token_costs(job)


KIND = TokensKind()
