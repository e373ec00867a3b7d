"""Settings of experiments on molecules: the raw data, and the metrics of samples."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from pairflow.kinds.molecules.settings.data_sets import DATA_SETS
from pairflow.kinds.molecules.settings.demand import MoleculeDemand
from pairflow.kinds.molecules.settings.metrics import GROUPS, METRICS, OFF_RULES
from pairflow.metrics.metric import Metric
from pairflow.settings.check import Seed, Settings, nearest
from pairflow.settings.conditions import SPREAD
from pairflow.settings.fields import (
    ROWS,
    DataSettings,
    HeldOut,
    NewSettings,
    Share,
    SplitColumn,
    TrainingRows,
    without_braces,
)
from pairflow.settings.sampling import RealDraws

Split = Annotated[
    Literal["random", "scaffold"],
    Field(
        description="How validation rows are chosen. `random`: at random, or by the published split if "
        "there is one. `scaffold`: at random, but all molecules of a Bemis-Murcko scaffold stay together."
    ),
]
LongShare = Annotated[
    Share,
    Field(
        description="Largest share of the molecules that may be left out because they are "
        "too long for a token row."
    ),
]
COLUMN = "SMILES column of a table. For an SDF file: the data item with the names of the molecules."
LONGEST = 4096  # most tokens per row of molecules
Notation = Annotated[
    Literal["smiles", "selfies", "groups"],
    Field(
        description="How a molecule is written in tokens: as `smiles`, as `selfies` (nearly every string is "
        "a molecule), or as `groups` such as ring systems and single atoms (every list is a molecule)."
    ),
]
Fragments = Annotated[
    Literal["keep", "largest", "reject"],
    Field(
        description="Salts and mixtures: keep all fragments, keep the largest (organic preferred), or "
        "reject the row."
    ),
]
Dummies = Annotated[
    Literal["keep", "reject"],
    Field(
        description="R groups, attachment points and other dummy atoms (`*`): keep them, or reject the row."
    ),
]
Metals = Annotated[
    Literal["keep", "reject"],
    Field(description="Metals other than lone ions of groups 1 and 2: keep them, or reject the row."),
]
Replicates = Literal["first", "median", "reject"]
Computed = Literal["qed", "logp", "weight", "rings"]  # by RDKit, for a condition
COMPUTED: tuple[str, ...] = get_args(Computed)
DESCRIBED_ROWS = 250_000  # most training molecules that samples are compared with, because RDKit takes time


class Standardisation(Settings):
    """Rules that are applied to each molecule before it is written as canonical SMILES."""

    fragments: Fragments = "keep"
    charges: Literal["keep", "neutralise"] = Field(
        "keep", description="Charges: keep them, or neutralise them with protons where possible."
    )
    isotopes: Literal["keep", "drop"] = Field("keep", description="Isotope labels: keep or drop them.")
    stereo: Literal["keep", "drop"] = Field("keep", description="Stereochemistry: keep or drop it.")
    dummies: Dummies = "keep"
    metals: Metals = "keep"
    min_heavy_atoms: int = Field(
        1, ge=1, le=LONGEST, description="Leave out molecules with fewer heavy atoms."
    )
    identity: Literal["smiles", "inchikey", "tautomer"] = Field(
        "smiles",
        description="What makes two molecules the same, as duplicates and for novelty: the same canonical "
        "SMILES, the same standard InChIKey, or the same canonical tautomer (RDKit's).",
    )


class LibraryRules(Standardisation):
    """The rules for a user's own molecules, by default."""

    fragments: Fragments = "largest"
    dummies: Dummies = "reject"
    metals: Metals = "reject"


def _name(given: object) -> object:
    """Return the name of a class as text, also if YAML reads it as a number, such as 0 or 1."""
    return f"{given:.15g}" if type(given) in (int, float) else given


def _require_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name != name.strip() or not name or name == SPREAD or {",", "="} & {*name}:
            raise ValueError(f"{name!r} cannot be asked for: expected a text without , and =, not '{SPREAD}'")
    if len({*names}) < len(names):
        raise ValueError(f"{names} names a class twice")
    return names


# The names of tags in angle brackets do not appear in messages.
Division = Annotated[
    Annotated[int, Field(ge=2, le=9), Tag("<number>")]
    | Annotated[
        tuple[Annotated[str, BeforeValidator(_name)], ...],
        Field(min_length=2, max_length=100),
        AfterValidator(_require_names),
        Tag("<names>"),
    ],
    Discriminator(lambda given: "<names>" if isinstance(given, list | tuple) else "<number>"),
]


class Conditioning(Settings):
    """A property that a conditional model learns. Give either `property` or `column`."""

    property: Computed | None = Field(
        None,
        description="Property that RDKit computes: drug-likeness (qed), logP, molecular weight, or number of "
        "rings.",
    )
    column: str | None = Field(
        None,
        min_length=1,
        description="Column of your own table with a number or the name of a class for each molecule.",
    )
    classes: Division = Field(
        3,
        description="Number of classes of equally many training rows, called low, middle and high (two: "
        "low, high; more than three: q1, q2, ...). Or the names of the classes in the column, such as "
        "[inactive, active].",
    )
    replicates: Replicates = Field(
        "median",
        description="Which value counts if the column has several for one molecule: the first, the median "
        "(the most frequent class), or none of them (reject).",
    )

    def name(self) -> str:
        """Return the name of the property, as `--condition name=class` has it."""
        return str(self.property or self.column)

    def labels(self) -> tuple[str, ...]:
        """Return the names of the classes, lowest first."""
        if not isinstance(self.classes, int):
            return self.classes
        names = {2: ("low", "high"), 3: ("low", "middle", "high")}
        return names.get(self.classes, tuple(f"q{c}" for c in range(1, self.classes + 1)))

    def named(self) -> tuple[str, ...]:
        """Return the names of the classes in the column; empty for classes of numbers."""
        return () if isinstance(self.classes, int) else self.classes

    @field_validator("property", mode="before")
    @classmethod
    def _computed(cls, name: object) -> object:
        if isinstance(name, str) and name not in COMPUTED:
            known = f"{nearest(name, COMPUTED)}: known are {', '.join(COMPUTED)}"
            raise ValueError(f"unknown property '{name}'{known}; for a column of your table: column: {name}")
        return name

    @model_validator(mode="after")
    def _one_source(self) -> "Conditioning":
        if (self.property is None) == (self.column is None):
            raise ValueError("expected either property or column")
        if self.named() and self.name() in COMPUTED:
            raise ValueError(f"classes: expected a number of classes of {self.name()}, which RDKit computes")
        return self


def _require_distinct(conditions: tuple[Conditioning, ...]) -> tuple[Conditioning, ...]:
    names = [condition.name() for condition in conditions]
    if len(set(names)) < len(names):
        raise ValueError(f"{names} names a property twice")
    return conditions


# The names of tags in angle brackets do not appear in messages.
Conditions = Annotated[
    Annotated[Conditioning, Tag("<one>")]
    | Annotated[
        tuple[Conditioning, ...], Field(min_length=1), AfterValidator(_require_distinct), Tag("<several>")
    ],
    Discriminator(lambda given: "<several>" if isinstance(given, list | tuple) else "<one>"),
]


class Chemistry(Settings):
    """Metrics of molecules that are computed only on request."""

    fcd: bool = Field(
        False,
        description="Compute the Fréchet ChemNet Distance to the training molecules; needs pairflow[fcd].",
    )
    plausible: bool = Field(
        False,
        description="Count plausible molecules: distinct and novel ones with ring systems and atoms of the "
        "training molecules, and few alerts. Reports then judge methods by this number first.",
    )


class MoleculeDraws(RealDraws, Chemistry):
    """Settings for measuring real molecules (the floor) and molecules made without a model (controls)."""


class MoleculesExperiment(Settings):
    """The keys that only experiments on molecules have."""

    chemistry: Chemistry | None = Field(None, description="Further measures on molecules.")


class Molecules(Standardisation, DataSettings):
    """Settings that turn raw molecules into token rows."""

    kind = "molecules"
    names = tuple(DATA_SETS)
    paper = tuple(name for name, known in DATA_SETS.items() if known.in_paper)
    experiment_keys = MoleculesExperiment
    demand = MoleculeDemand
    keeps_symbols = True
    stored = ("vocabulary.json", "known.parquet")
    metrics, groups = METRICS, GROUPS
    prepared = ROWS | {
        "known.parquet": "Hashes of the molecules of the whole data set (Parquet).",
        "smiles.parquet": "Canonical SMILES of the whole data set (Parquet).",
        "rejected.parquet": "Rows that were left out, with reasons (Parquet).",
    }

    source: str = Field(
        description="Data set: small_molecules (included in the package), qm9, zinc250k, or the path of your "
        "own file (.smi, .csv, .tsv, .xlsx, .parquet, .jsonl or .sdf, plain or compressed)."
    )
    column: str = Field("smiles", description=COLUMN)
    sheet: str | None = Field(
        None,
        min_length=1,
        description="Sheet of an Excel file. Default: the first that is not empty.",
    )
    representation: Notation = Field("smiles")
    length: int = Field(ge=4, le=LONGEST, description="Tokens per row (N), with <bos>, <eos> and padding.")
    drop_duplicates: bool = Field(False, description="Keep only one row per canonical SMILES.")
    split: Split = "random"
    split_column: SplitColumn = None
    held_out: HeldOut = None
    validation_fraction: Share = Field(
        0.05, gt=0, description="Share of the rows that is held out for validation."
    )
    split_seed: Seed = Field(42, description="Seed of the random split.")
    training_rows: TrainingRows = None
    max_heavy_atoms: int | None = Field(
        None, ge=1, le=LONGEST, description="Leave out molecules with more than this number of heavy atoms."
    )
    max_too_long_share: LongShare = 0.001
    min_count: int = Field(
        1,
        ge=1,
        le=10**6,
        description="Leave out molecules with a token that fewer than this number of molecules have; rare "
        "groups would make K large.",
    )
    condition: Conditions | None = Field(
        None, description="Train conditional models, which can be guided, on one property or a list of them."
    )

    @classmethod
    def claims(cls, values: Mapping[str, object]) -> bool:
        return True  # a name that no kind knows must be a file of molecules

    @field_validator("source")
    @classmethod
    def _a_name_or_a_file(cls, source: str) -> str:
        if source not in DATA_SETS and not set("/.") & set(source):
            expected = f"known are {', '.join(cls.known)}, and paths of files"
            raise ValueError(f"unknown name '{source}'{nearest(source, cls.known)}: {expected}")
        return without_braces(source)

    @model_validator(mode="after")
    def _splits_fit(self) -> "Molecules":
        if self.own_split and self.source in DATA_SETS:
            raise ValueError(f"split_column, held_out: only for a file of your own, not for {self.source}")
        if self.held_out and any(setting.column for setting in self.conditioned):
            raise ValueError(
                "held_out: does not go with a condition on a column; join the files, and set split_column"
            )
        return self

    @property
    def file(self) -> str | None:
        """The user's own file; None if the source is the name of a data set."""
        return None if self.source in DATA_SETS else self.source

    @property
    def is_partial(self) -> bool:
        return super().is_partial or self.max_heavy_atoms is not None

    @property
    def is_complete(self) -> bool:
        """Whether the data set has every molecule that follows its rules, so that a novel one breaks them."""
        return self.file is None and DATA_SETS[self.source].complete and not self.is_partial

    def list_metrics(self) -> Mapping[str, Metric]:
        return {**METRICS, **OFF_RULES} if self.is_complete else METRICS

    @property
    def conditioned(self) -> tuple[Conditioning, ...]:
        """The properties that conditional models learn, in order."""
        if isinstance(self.condition, Conditioning):
            return (self.condition,)
        return self.condition or ()

    def conditions(self) -> dict[str, tuple[str, ...]]:
        return {setting.name(): setting.labels() for setting in self.conditioned}


def chemistry_settings(experiment: Any) -> Chemistry:
    """Return the experiment's settings of metrics on request; the defaults if it has none."""
    return experiment.chemistry or Chemistry()


def identity_of(experiment: Any) -> str:
    """Return the rule by which two molecules of an experiment count as one, such as "smiles"."""
    return experiment.data.identity


def own_columns(experiment: Any) -> list[str]:
    """Return the columns of the user's table that conditional models learn; properties that RDKit computes
    are left out."""
    names = (setting.name() for setting in experiment.data.conditioned)
    return [name for name in names if name not in COMPUTED]


class NewLibrary(LibraryRules, NewSettings):
    """Settings of the command `pairflow new` for a user's file of molecules."""

    column: str | None = Field(
        None,
        description="Column of a table that has the SMILES or the text; found if not given. For an SDF "
        "file: the data item with the names of the molecules.",
    )
    sheet: str | None = Field(None, description="Sheet of an Excel file; detected if not given.")
    representation: Notation | None = Field(
        None,
        description="How a molecule is written in tokens: groups, selfies or smiles. Default: groups; but "
        "selfies for molecules of few atoms, and with --fragments keep.",
    )
    condition: str | None = Field(
        None,
        min_length=1,
        description="A property (qed, logp, weight, rings), or a column of numbers or classes in the table. "
        "You can then ask for samples with low, middle or high values, or of a class.",
    )
    replicates: Replicates = Field(
        "median",
        description="Which value counts if the column of --condition has several for one molecule: the "
        "first, the median (the most frequent class), or none of them (reject).",
    )
    split: Split = "random"
    split_column: SplitColumn = None
    max_too_long_share: LongShare = 0.001

    @model_validator(mode="after")
    def _replicates_fit(self) -> "NewLibrary":
        if "replicates" in self.model_fields_set and not self.condition:
            raise ValueError("replicates: expected only with a condition (--condition)")
        return self
