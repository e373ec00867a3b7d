"""Token rows of a user's own."""

from pathlib import Path
from typing import Any

from pairflow.kinds.kind import Kind
from pairflow.kinds.tokens.metrics import GROUPS, METRICS
from pairflow.kinds.tokens.settings import Tokens


class TokensKind(Kind):
    name, settings = "tokens", Tokens

    # Raw data

    def source(self, settings: Tokens, folder: Path = Path()) -> Any:
        from pairflow.kinds.tokens.sources import source_of

        return source_of(settings, folder)

    # Jobs on real data

    # Metrics of samples

    # The page

    metrics, groups = METRICS, GROUPS

    # On demand

    # Costs


KIND = TokensKind()
