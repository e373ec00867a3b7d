"""Settings of experiments on molecules: the raw data, and the metrics of samples."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from pairflow.config.check import Seed, Settings, nearest
from pairflow.config.conditions import Choice
from pairflow.config.fields import DataSettings, NewSettings, Share, TrainingRows, without_braces
from pairflow.config.sampling import RealDraws, SampleSettings
from pairflow.kinds import list_settings

Split = Annotated[
    Literal["random", "scaffold"],
    Field(
        description="How validation rows are chosen: `random` uses the published split if there is one, "
        "`scaffold` keeps all molecules of a Bemis-Murcko scaffold together."
    ),
]
LongShare = Annotated[
    Share,
    Field(
        description="Largest share of the molecules that may be left out because they are "
        "too long for a token row."
    ),
]
COLUMN = "SMILES column of a table; of an SDF file, the data item with the names of the molecules."
LONGEST = 4096  # most tokens per row of molecules
Notation = Annotated[
    Literal["smiles", "selfies", "groups"],
    Field(
        description="How a molecule is written in tokens: `smiles`; `selfies`, of which nearly every string "
        "is a molecule; or `groups`, such as ring systems and single atoms, of which every list is one."
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
Computed = Literal["qed", "logp", "weight", "rings"]  # by RDKit, for a condition
COMPUTED: tuple[str, ...] = get_args(Computed)
DESCRIBED_ROWS = 250_000  # most training molecules that samples are compared with, because RDKit takes time
MOLECULE_SOURCES = ("small_molecules", "qm9", "zinc250k")


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
        exclude_if=lambda identity: identity == "smiles",
        description="Two molecules are one, as duplicates and for novelty, if they have the same canonical "
        "SMILES, the same standard InChIKey, or the same canonical tautomer (RDKit's).",
    )


class LibraryRules(Standardisation):
    """The rules for a user's own molecules, by default."""

    fragments: Fragments = "largest"
    dummies: Dummies = "reject"
    metals: Metals = "reject"


class Conditioning(Settings):
    """A property that a conditional model learns. Give either `property` or `column`."""

    property: Computed | None = Field(
        None,
        description="Property that RDKit computes: drug-likeness (qed), logP, molecular weight, or number of "
        "rings.",
    )
    column: str | None = Field(
        None, min_length=1, description="Column of your own table with a number for each molecule."
    )
    classes: int = Field(
        3, ge=2, le=9, description="Classes, quantiles of the training rows: low, middle, high; q1, q2, ..."
    )
    number: bool = Field(
        False,
        exclude_if=lambda number: not number,
        description="Learn the number itself, so that samples may be asked for one. Three classes, to be "
        "asked for and for the report, remain.",
    )

    def name(self) -> str:
        """The name of the property in `--condition name=class`."""
        return str(self.property or self.column)

    def labels(self) -> tuple[str, ...]:
        """The names of the classes, lowest first."""
        names = {2: ("low", "high"), 3: ("low", "middle", "high")}
        return names.get(self.classes, tuple(f"q{c}" for c in range(1, self.classes + 1)))

    @field_validator("property", mode="before")
    @classmethod
    def _computed(cls, name: Any) -> Any:
        if isinstance(name, str) and name not in COMPUTED:
            known = f"{nearest(name, COMPUTED)}: known are {', '.join(COMPUTED)}"
            raise ValueError(f"unknown property '{name}'{known}; for a column of your table: column: {name}")
        return name

    @model_validator(mode="after")
    def _one_source(self) -> "Conditioning":
        if (self.property is None) == (self.column is None):
            raise ValueError("expected either property or column")
        if self.number and self.classes != 3:
            raise ValueError("number: does not go with classes")
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
        description="Count plausible molecules: different, novel, with the ring systems and atoms "
        "of the training molecules, and few alerts. Methods are then judged by them first.",
    )
    useful: bool = Field(
        False,
        description="Count useful molecules: different, novel, without rings of more than eight atoms, with "
        "properties as in the middle 90 % of the training molecules.",
    )
    moses: bool = Field(
        False,
        description="Compare with held-out molecules as MOSES does (fragments, scaffolds, similarity), and "
        "count those that pass filters of medicinal chemistry; takes a few milliseconds per molecule.",
    )


class MoleculeDraws(RealDraws, Chemistry):
    """Settings for measuring real molecules (the floor) and molecules made without a model (controls)."""


class MoleculesExperiment(Settings):
    """The keys that only experiments on molecules have."""

    chemistry: Chemistry | None = Field(None, description="Further measures on molecules.")


class Molecules(Standardisation, DataSettings):
    """Settings that turn raw molecules into token rows."""

    kind = "molecules"
    names = MOLECULE_SOURCES
    paper = ("qm9", "zinc250k")
    experiment_keys = MoleculesExperiment

    source: str = Field(
        description="Data set: small_molecules (included in the package), qm9, zinc250k, or the path of your "
        "own file (.smi, .csv, .tsv, .xlsx or .sdf, plain or .gz)."
    )
    column: str = Field("smiles", description=COLUMN)
    representation: Notation = Field("smiles")
    length: int = Field(ge=4, le=LONGEST, description="Tokens per row (N), with <bos>, <eos> and padding.")
    drop_duplicates: bool = Field(False, description="Keep only one row per canonical SMILES.")
    split: Split = "random"
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
        exclude_if=lambda least: least == 1,
        description="Leave out molecules with a token that fewer than this number of molecules have; rare "
        "groups would make K large.",
    )
    condition: Conditions | None = Field(
        None, description="Train conditional models, which can be guided, on one property or a list of them."
    )

    @classmethod
    def claims(cls, values: Mapping[str, Any]) -> bool:
        return True  # a name that no kind knows must be a file of molecules

    @field_validator("source")
    @classmethod
    def _a_name_or_a_file(cls, source: str) -> str:
        if source not in MOLECULE_SOURCES and not set("/.") & set(source):
            names = [name for settings in list_settings() for name in settings.names]
            expected = f"known are {', '.join(names)}, and paths of files"
            raise ValueError(f"unknown name '{source}'{nearest(source, names)}: {expected}")
        return without_braces(source)

    @property
    def file(self) -> str | None:
        """The user's own file; None if the source is the name of a data set."""
        return None if self.source in MOLECULE_SOURCES else self.source

    @property
    def conditioned(self) -> tuple[Conditioning, ...]:
        """The properties that conditional models learn, in order."""
        if isinstance(self.condition, Conditioning):
            return (self.condition,)
        return self.condition or ()

    def conditions(self) -> dict[str, Choice]:
        return {
            setting.name(): Choice(setting.labels(), (-math.inf, math.inf) if setting.number else None)
            for setting in self.conditioned
        }


def chemistry_settings(experiment: Any) -> Chemistry:
    """The settings of an experiment's further metrics, or the defaults if it has none."""
    return experiment.chemistry or Chemistry()


def own_columns(experiment: Any) -> list[str]:
    """The columns of the user's table that conditional models learn, and that RDKit does not compute."""
    names = (setting.name() for setting in experiment.data.conditioned)
    return [name for name in names if name not in COMPUTED]


def start_settings(experiment: Any, evaluation: str, seed: int) -> SampleSettings:
    """Settings to draw a trial from the model that the base methods start from, which knows no condition, at
    the evaluation's largest number of steps."""
    steps = max(experiment.evaluations[evaluation].nfe)
    plain = {"trials": 1, "condition": (), "guidance": 1.0}
    return experiment.sample_settings(evaluation, steps, seed).model_copy(update=plain)


class NewLibrary(LibraryRules, NewSettings):
    """Settings of the command `pairflow new` for a user's file of molecules."""

    column: str | None = Field(None, description=f"{COLUMN[:-1]}; detected if not given.")
    representation: Notation | None = Field(
        None,
        description="How a molecule is written in tokens: groups, selfies or smiles. The default is groups, "
        "or selfies for molecules of few atoms and with --fragments keep.",
    )
    condition: str | None = Field(
        None,
        min_length=1,
        description="Numeric column of the table, or property (qed, logp, weight, rings), of which samples "
        "can then be asked for low, middle or high values.",
    )
    split: Split = "random"
    max_too_long_share: LongShare = 0.001


DATA, NEW = Molecules, NewLibrary
