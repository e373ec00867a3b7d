"""Types and base classes for the settings of the kinds of data, such as molecules, images and text."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pairflow.limits import MAX_LENGTH
from pairflow.metrics.metric import Metric
from pairflow.settings.check import Name, Settings
from pairflow.settings.flows import DISCRETE
from pairflow.settings.sampling import CommonDemand

Share = Annotated[float, Field(ge=0, lt=1)]
TrainingRows = Annotated[
    int | None,
    Field(ge=1, le=10**9, description="Number of training rows to draw at random. Default: all rows."),
]


def without_braces(file: str) -> str:
    if set("{}") & set(file):
        raise ValueError(f"{file}: braces in a name are wildcards to Snakemake; rename the file")
    return file


OwnFile = Annotated[str, Field(min_length=1), AfterValidator(without_braces)]
SplitColumn = Annotated[
    str | None,
    Field(
        min_length=1,
        description="Column of your own table that says which part a row is in: train, valid, test or the "
        "like. All rows that are not in train are held out.",
    ),
]
HeldOut = Annotated[
    OwnFile | None,
    Field(
        description="A second file or folder of your own. Its rows are held out, and the first file is for "
        "training.",
    ),
]


class RowLayout(Settings):
    """Where a user's file has its token rows, if it does not say so itself."""

    column: str | None = Field(
        None,
        min_length=1,
        description="Column of lists in a .parquet file, or array in an .npz or .pt file, such as input_ids. "
        "Default: tokens, or the only one.",
    )
    dtype: Literal["uint8", "uint16", "int32", "uint32", "int64"] | None = Field(
        None,
        description="Type of the numbers in a .bin file; nanoGPT's have uint16.",
    )
    length: int | None = Field(
        None,
        ge=1,
        le=MAX_LENGTH,
        description="Tokens per row (N), only for a stream of tokens (one dimension), which is cut into "
        "rows. The last tokens, too few for a row, are left out.",
    )


class SplitSettings(Settings):
    """The base of settings that may say which rows of the user's data are held out."""

    @property
    def own_split(self) -> bool:
        """Whether the user's data say which rows are held out, so that no random share is."""
        keys = getattr(self, "split_column", None), getattr(self, "held_out", None)
        return any(keys) or getattr(self, "split", "") == "folders"

    @model_validator(mode="after")
    def _one_split(self) -> Self:
        own = [key for key in ("split_column", "held_out") if getattr(self, key, None)]
        own += [f"split: {split}"] if (split := getattr(self, "split", "random")) != "random" else []
        if len(own) > 1:
            raise ValueError(f"{own[0]}: does not go with {own[1]}")
        held_out, first = getattr(self, "held_out", None), getattr(self, "folder", None)
        first = first or getattr(self, "file", None)
        if held_out and first and PurePath(held_out).is_relative_to(first):
            raise ValueError(f"held_out: expected a path outside {first}, found {held_out}")
        return self


ROWS = {  # name of each file that preprocessing writes for every kind -> help text of its option
    "train.parquet": "Rows for training (Parquet).",
    "validation.parquet": "Held-out rows (Parquet).",
    "vocabulary.json": "Symbols of the rows, or shape and levels of images (JSON). A model must have the "
    "same.",
}


class DataSettings(SplitSettings):
    """The section `data` of an experiment. Each kind of data has a subclass, in its module `settings`."""

    kind: ClassVar[str]  # the name of its folder in pairflow.kinds
    names: ClassVar[tuple[str, ...]]  # the known data sets, by the name in `source`
    known: ClassVar[tuple[str, ...]]  # the ones of all kinds, from kinds.registry
    paper: ClassVar[tuple[str, ...]] = ()  # the data sets in the paper's tables
    flows: ClassVar[tuple[str, ...]] = (DISCRETE.name,)  # the flows that the kind allows
    experiment_keys: ClassVar[type[Settings]] = Settings  # keys that an experiment has only for this kind
    demand: ClassVar[type[CommonDemand]] = CommonDemand  # settings of its samples on demand
    prepared: ClassVar[Mapping[str, str]] = ROWS  # name of a file of preprocessing -> help of its option
    stored: ClassVar[tuple[str, ...]] = ("vocabulary.json",)  # those that are also in each model's folder
    keeps_symbols: ClassVar[bool] = False  # whether vocabularies begin with the symbols of a parent model
    folder_files: ClassVar[tuple[str, tuple[str, ...]]]  # of a folder of raw data: name in messages, suffixes
    metrics: ClassVar[Mapping[str, Metric]]  # of samples, in the order of the page
    groups: ClassVar[Mapping[str, str]] = {}  # group of metrics -> the title of its tables

    if TYPE_CHECKING:  # each subclass defines them with its own help
        source: str
        training_rows: int | None

        @property
        def file(self) -> str | None:
            """The user's file; None if `source` is a folder or the name of a data set."""

    @property
    def held_out_file(self) -> str | None:
        """The user's file of held-out rows; None if there is none. A path without a suffix is a folder."""
        path = getattr(self, "held_out", None)
        return path if path and PurePath(path).suffix else None

    def count_rows(self, rows: int) -> int:
        """Return how many rows an experiment trains on, if the data set has `rows` training rows."""
        return min(rows, self.training_rows or rows)

    @classmethod
    def claims(cls, values: Mapping[str, object]) -> bool:
        """Return whether a section `data` with these values is for this kind of data, by its `source`."""
        return values.get("source") in cls.names

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the data set is used, so that results are not comparable to the paper's."""
        return self.training_rows is not None

    def own_raw(self) -> dict[str, str | None]:
        """Return the paths of the user's raw data, to be checked before a run, by their keys (`data.file`).
        A path is None for data that do not come from the user."""
        key = next(key for key in ("file", "folder", "source") if key in type(self).model_fields)
        first = self.file or getattr(self, "folder", None)
        return {f"data.{key}": first, "data.held_out": getattr(self, "held_out", None)}

    def list_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics by name, with labels that fit these settings."""
        return self.metrics

    def conditions(self) -> Mapping[str, tuple[str, ...]]:
        """Return a dict from each property that models are conditioned on to its classes."""
        return {}

    def require_consistency(self, experiment: Any) -> None:
        """Raise ValueError, which names the settings, if settings of the experiment do not fit such data."""


class NewSettings(SplitSettings):
    """Settings of `pairflow new`, which suggests an experiment on a file. Kinds of data may add to them."""

    name: Name | None = Field(None, description="Name of the experiment. Default: derived from the file's.")
    validation_fraction: Share = Field(0.05, gt=0, description="Share of the rows that is held out.")
    held_out: HeldOut = None
    hours: float | None = Field(
        None,
        gt=0,
        le=10_000,
        description="Time budget in hours, to which the training is fitted. Default: 30 minutes on a CPU "
        "(less for short rows) or from a small model; otherwise a fixed number of iterations.",
    )
    compare: bool = Field(False, description="Train udlm and the distilled pairflow+dcd as well, to compare.")
