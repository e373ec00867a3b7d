"""Settings of a user's own token rows."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pairflow.config.check import Seed
from pairflow.config.fields import DataSettings, OwnFile, Share, TrainingRows
from pairflow.limits import MAX_VOCABULARY


class Tokens(DataSettings):
    """Token rows of the user's own: N integers in 0..K-1 in each."""

    kind = "tokens"
    names = ("tokens",)

    source: Literal["tokens"] = Field(description="Always `tokens`: rows of your own, from `file`.")
    file: OwnFile = Field(
        description="File of the rows: .npy with a two-dimensional array of integers, or .parquet with a "
        "column `tokens` of lists of integers."
    )
    vocabulary_size: int = Field(
        ge=2, le=MAX_VOCABULARY, description="Number of symbols (K). Tokens are integers from 0 to K - 1."
    )
    validation_fraction: Share = Field(
        0.05, gt=0, description="Share of the rows that is held out for validation."
    )
    split_seed: Seed = Field(42, description="Seed of the random split.")
    training_rows: TrainingRows = None

    @classmethod
    def claims(cls, values: Mapping[str, Any]) -> bool:
        return values.get("source") == "tokens"


DATA = Tokens
