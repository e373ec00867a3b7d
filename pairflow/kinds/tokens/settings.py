"""Settings of token rows."""

from functools import partial
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from pairflow.limits import MAX_VOCABULARY
from pairflow.metrics.metric import Metric
from pairflow.settings.check import Seed, Settings
from pairflow.settings.fields import (
    DataSettings,
    HeldOut,
    OwnFile,
    RowLayout,
    Share,
    SplitColumn,
    TrainingRows,
)

_ngrams = partial(
    Metric,
    best="lowest",
    against="to held-out rows",
    description="How far samples are from held-out rows in the frequencies of pairs of neighbouring tokens, "
    "and of single tokens (total variation distance).",
    formula="mean over positions i < N of 1/2 sum_ab abs(p_i(a, b) - q_i(a, b)), with a at position i and b "
    "at position i + 1; mean over i of 1/2 sum_a abs(p_i(a) - q_i(a))",
    unit="none, 0 to 1",
    better="lower, down to the floor",
    pitfalls="with few rows and many symbols even real rows are far apart; after one sampling step single "
    "tokens may be good but pairs bad",
    source="counted (`pairflow/kinds/tokens/measure.py`)",
)
_rows = partial(Metric, group="rows")
_copies = partial(
    _rows,
    chart=False,
    description="`copies`: share of samples that equal a training row. `distinct`: number of different "
    "samples as a share of all.",
    unit="share of samples",
    better="neither; near the floor",
    pitfalls="short rows of few symbols equal one another by chance; if `distinct` is far below its floor, "
    "the model repeats itself",
    source="counted (`pairflow/kinds/tokens/measure.py`)",
)
METRICS = {
    "bigram_tv": _ngrams("bigram distance", leads_as="the bigram distance"),
    "unigram_tv": _ngrams("unigram distance", leads_as="the unigram distance"),
    "nn_hamming": _rows(
        "Hamming distance",
        against="to training rows",
        description="How many tokens of a sample differ from the nearest training row.",
        formula="mean over samples of the smallest number of different tokens (Hamming distance)",
        unit="tokens, 0 to N",
        better="neither; near the floor",
        pitfalls="if it is far below the floor, the model repeats training rows",
        source="counted (`pairflow/kinds/tokens/measure.py`)",
    ),
    "copies": _copies("share of copies", against="of training rows"),
    "distinct": _copies("share of distinct rows"),
}
GROUPS = {"rows": "Copies and repeats"}


class RowClasses(Settings):
    """The classes of token rows, which a conditional model learns."""

    column: str = Field(min_length=1, description="Column of the .parquet file with the class of each row.")
    classes: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=2, max_length=255, description="Names of the classes; a row with an empty field has none."
    )


class Tokens(DataSettings, RowLayout):
    """Token rows, each of N integers in 0..K-1."""

    kind = "tokens"
    metrics, groups = METRICS, GROUPS

    source: Literal["tokens"] = Field(description="`tokens`: rows of your own, from `file`.")
    file: OwnFile | None = Field(
        None,
        description="File of the rows: .npy, .npz or .pt with a two-dimensional array of integers, .parquet "
        "with a column of lists of integers, or .bin with a stream of integers.",
    )
    vocabulary_size: int = Field(ge=2, le=MAX_VOCABULARY, description="Symbols (K): tokens are 0 to K - 1.")
    validation_fraction: Share = Field(0.05, gt=0, description="Share of the rows that is held out.")
    split_seed: Seed = Field(42, description="Seed of the random split.")
    training_rows: TrainingRows = None
    split_column: SplitColumn = None
    held_out: HeldOut = None
    condition: RowClasses | None = Field(
        None, description="Train conditional models, which can be guided, on a column of classes."
    )

    def conditions(self) -> dict[str, tuple[str, ...]]:
        return {self.condition.column: self.condition.classes} if self.condition else {}

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Tokens":
        if self.file is None:
            raise ValueError(f"file: the source {self.source} needs this key; found none")
        return self


Tokens.names = get_args(Tokens.model_fields["source"].annotation)
