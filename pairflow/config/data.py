"""Settings of the data: molecules, images, text or a user's own tokens to token rows, and vectors."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from pairflow.config.check import Seed, Settings, nearest
from pairflow.limits import MAX_LENGTH, MAX_VOCABULARY

Share = Annotated[float, Field(ge=0, lt=1)]
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
LONGEST = 4096  # tokens per row, of molecules
TrainingRows = Annotated[
    int | None,
    Field(
        ge=1,
        le=10**9,
        description="Number of training rows to draw at random. If it is not given, all rows are used.",
    ),
]
Notation = Annotated[
    Literal["smiles", "selfies"],
    Field(
        description="How a molecule is written in tokens: `smiles`, or `selfies`, of which nearly every "
        "string is a molecule (needs pairflow[selfies])."
    ),
]
MOLECULE_SOURCES = ("small_molecules", "qm9", "zinc250k")
TEXT_SOURCES = ("shakespeare", "text8", "lm1b")
VECTOR_SOURCES = ("two_moons", "vectors")


def _without_braces(file: str) -> str:
    if set("{}") & set(file):
        raise ValueError(f"{file}: braces in a name are wildcards to Snakemake; rename the file")
    return file


OwnFile = Annotated[str, Field(min_length=1), AfterValidator(_without_braces)]


class Standardisation(Settings):
    """Rules that are applied to each molecule before it is written as canonical SMILES.

    The last three are not written into files where they have their defaults: earlier versions lack them.
    """

    fragments: Literal["keep", "largest", "reject"] = Field(
        "keep",
        description="Salts and mixtures: keep all fragments, keep the largest (organic preferred), or "
        "reject the row.",
    )
    charges: Literal["keep", "neutralise"] = Field(
        "keep", description="Charges: keep them, or neutralise them with protons where possible."
    )
    isotopes: Literal["keep", "drop"] = Field("keep", description="Isotope labels: keep or drop them.")
    stereo: Literal["keep", "drop"] = Field("keep", description="Stereochemistry: keep or drop it.")
    dummies: Literal["keep", "reject"] = Field(
        "keep",
        description="R groups, attachment points and other dummy atoms (`*`): keep them, or reject the row.",
        exclude_if=lambda value: value == "keep",
    )
    metals: Literal["keep", "reject"] = Field(
        "keep",
        description="Metals other than lone ions of groups 1 and 2: keep them, or reject the row.",
        exclude_if=lambda value: value == "keep",
    )
    min_heavy_atoms: int = Field(
        1,
        ge=1,
        le=LONGEST,
        description="Leave out molecules with fewer heavy atoms.",
        exclude_if=lambda value: value == 1,
    )


class Conditioning(Settings):
    """The property whose classes a conditional model learns. Give either `property` or `column`."""

    property: Literal["qed", "logp", "weight", "rings"] | None = Field(
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

    def name(self) -> str:
        """The name of the property, by which samples are asked for."""
        return str(self.property or self.column)

    def labels(self) -> tuple[str, ...]:
        """The names of the classes, lowest first."""
        names = {2: ("low", "high"), 3: ("low", "middle", "high")}
        return names.get(self.classes, tuple(f"q{c}" for c in range(1, self.classes + 1)))

    @model_validator(mode="after")
    def _one_source(self) -> "Conditioning":
        if (self.property is None) == (self.column is None):
            raise ValueError("expected either property or column")
        return self


class Molecules(Standardisation):
    """Raw molecules to token rows."""

    source: str = Field(
        description="Data set: small_molecules (included in the package), qm9, zinc250k, or the path of your "
        "own file (.smi, .csv, .tsv, .xlsx or .sdf, plain or .gz)."
    )
    column: str = Field("smiles", description="SMILES column of a CSV file.")
    representation: Notation = Field("smiles", exclude_if=lambda value: value == "smiles")
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
    condition: Conditioning | None = Field(
        None,
        description="Train conditional models, which can be guided, on the classes of a property.",
        exclude_if=lambda value: value is None,
    )

    @field_validator("source")
    @classmethod
    def _a_name_or_a_file(cls, source: str) -> str:
        if source in IMAGE_SOURCES:
            raise ValueError(f"'{source}' are images: see `pairflow preprocess_images`")
        if source in TEXT_SOURCES:
            raise ValueError(f"'{source}' is text: see `pairflow preprocess_text`")
        if source == TOKEN_SOURCE:
            raise ValueError("your own token rows: see `pairflow preprocess_tokens`")
        if source in VECTOR_SOURCES:
            raise ValueError(f"'{source}' are vectors: see `pairflow preprocess_vectors`")
        if source not in MOLECULE_SOURCES and not set("/.") & set(source):
            names = (*MOLECULE_SOURCES, *IMAGE_SOURCES, *TEXT_SOURCES, TOKEN_SOURCE, *VECTOR_SOURCES)
            expected = f"known are {', '.join(names)}, and paths of files"
            raise ValueError(f"unknown name '{source}'{nearest(source, names)}: {expected}")
        return _without_braces(source)

    @property
    def file(self) -> str | None:
        """The user's own file; None if the source is the name of a data set."""
        return None if self.source in MOLECULE_SOURCES else self.source

    @property
    def standardisation(self) -> Standardisation:
        return Standardisation(**{key: getattr(self, key) for key in Standardisation.model_fields})


class Images(Settings):
    """Raw images to token rows: N = channels x height x width, K grey levels."""

    source: Literal["digits", "mnist_binary", "mnist", "cifar10", "ffhq64", "image_folder"] = Field(
        description="Data set: digits (embedded, 8 x 8), mnist_binary, mnist (256 grey levels, with a black "
        "rim that makes it 32 x 32), cifar10, ffhq64, or image_folder (your own)."
    )
    folder: str | None = Field(
        None, min_length=1, description="Folder of PNG and JPEG files; only for image_folder."
    )
    size: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Side in pixels: the central square of every image is "
        "resized to it; only for image_folder.",
    )
    mode: Literal["L", "RGB"] | None = Field(
        None, description="Convert every image to grey (L) or colour (RGB); only for image_folder."
    )
    levels: int | None = Field(
        None, ge=2, le=256, description="Grey levels (K), a divisor of 256; none: 256. Only for image_folder."
    )
    flips: bool = Field(False, description="Append the mirror image of every training image.")
    training_rows: TrainingRows = None
    validation_fraction: Share = Field(
        0.1,
        description="Share that is held out as test images; only without a published test set. With 0 there "
        "is no validation loss, and samples are compared with training images only.",
    )
    split_seed: Seed = Field(42, description="Seed of the random split and subset.")

    @property
    def file(self) -> None:
        """No single file: images come from a folder, or have a name that the workflow knows."""

    @field_validator("levels")
    @classmethod
    def _levels_divide(cls, levels: int | None) -> int | None:
        if levels and 256 % levels:
            raise ValueError(f"{levels} does not divide 256; expected 2, 4, 8, 16, 32, 64, 128 or 256")
        return levels

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Images":
        if self.source == "image_folder":
            if self.folder is None:
                raise ValueError("folder: expected a folder, which the source image_folder needs; found none")
            return self
        for key in ("folder", "size", "mode", "levels"):
            if getattr(self, key) is not None:
                why = f"only the source image_folder takes this key, {self.source} has its own"
                raise ValueError(f"{key}: {why}")
        if self.source in ("mnist_binary", "mnist", "cifar10") and self.validation_fraction != 0.1:
            raise ValueError(f"validation_fraction: {self.source} has a published test set")
        return self

    @property
    def labelled(self) -> bool:
        """Whether each image has a label, which the classifier learns from."""
        return self.source not in ("ffhq64", "image_folder")


class Tokens(Settings):
    """Token rows of the user's own: N integers in 0..K-1 in each."""

    source: Literal["tokens"] = Field(description="Always `tokens`: rows of your own, from `file`.")
    file: OwnFile = Field(
        description="File of the rows: .npy with a two-dimensional array of integers, or .parquet with a "
        "column `tokens` of lists of integers.",
    )
    vocabulary_size: int = Field(
        ge=2, le=MAX_VOCABULARY, description="Number of symbols (K). Tokens are integers from 0 to K - 1."
    )
    validation_fraction: Share = Field(
        0.05, gt=0, description="Share of the rows that is held out for validation."
    )
    split_seed: Seed = Field(42, description="Seed of the random split.")
    training_rows: TrainingRows = None


class Text(Settings):
    """Text to token rows of N symbols, and the rows of a judge that no generator trains on.

    The text is cut in three parts, in its own order: training, validation, judge.
    """

    source: OwnFile = Field(
        description="Data set: shakespeare (included in the package), text8, lm1b, or the path of your own "
        "UTF-8 text file or of a folder of such files."
    )
    tokeniser: Literal["characters", "subwords", "bert"] = Field(
        description="`characters`: each character is a symbol; `subwords`: byte-level pieces of words, "
        "learnt from the training text; `bert`: the word pieces of bert-base-uncased.",
    )
    normalisation: Literal["none", "letters"] = Field(
        "none",
        description="`none` keeps the text as it is; `letters` makes it lower case and turns every run of "
        "characters other than a to z into one space.",
    )
    vocabulary_size: int | None = Field(
        None,
        ge=258,
        le=MAX_VOCABULARY,
        description="Number of symbols (K) that the tokeniser `subwords` learns; it needs this key.",
    )
    length: int = Field(ge=4, le=MAX_LENGTH, description="Tokens per row (N).")
    rows: Literal["packed", "lines"] = Field(
        "packed",
        description="`packed`: the text is cut into pieces of N tokens; `lines`: each line is a row, with an "
        "end symbol and padding.",
    )
    stride: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="Tokens from the start of one packed training row to the next. If it is not given, rows "
        "do not overlap.",
    )
    validation_fraction: Share = Field(
        0.05,
        gt=0,
        description="Share of the text that is held out for validation; a published held-out set replaces "
        "it.",
    )
    judge_fraction: Share = Field(
        0.05,
        gt=0,
        description="Share of the text, at its end, that only the judge of samples learns from.",
    )
    split_seed: Seed = Field(42, description="Seed of the random subset of training rows.")
    training_rows: TrainingRows = None

    @field_validator("source")
    @classmethod
    def _a_name_or_a_path(cls, source: str) -> str:
        if source not in TEXT_SOURCES and not set("/.") & set(source):
            expected = f"known are {', '.join(TEXT_SOURCES)}, and paths of text files or folders (./{source})"
            raise ValueError(f"unknown name '{source}'{nearest(source, TEXT_SOURCES)}: {expected}")
        return source

    @model_validator(mode="after")
    def _keys_fit(self) -> "Text":
        if (self.vocabulary_size is not None) != (self.tokeniser == "subwords"):
            given = "no such key" if self.vocabulary_size is None else self.vocabulary_size
            expected = "a number" if self.tokeniser == "subwords" else "no such key"
            raise ValueError(
                f"vocabulary_size: expected {expected} with the tokeniser {self.tokeniser}, found {given}"
            )
        if self.stride is not None and self.rows == "lines":
            raise ValueError("stride: only for packed rows, and rows are lines")
        if self.validation_fraction + self.judge_fraction >= 1:
            raise ValueError("validation_fraction and judge_fraction: expected a sum below 1")
        return self

    @property
    def own(self) -> str | None:
        """The user's own file or folder; None if the source is the name of a data set."""
        return None if self.source in TEXT_SOURCES else self.source

    @property
    def file(self) -> str | None:
        """The user's own file; a path without a suffix is that of a folder."""
        return self.own if self.own and PurePath(self.own).suffix else None

    @property
    def folder(self) -> str | None:
        """The user's own folder."""
        return self.own if self.file is None else None


class Vectors(Settings):
    """Vectors of d real numbers, for continuous flows."""

    source: Literal["two_moons", "vectors"] = Field(
        description="`two_moons`: a product of d / 2 independent pairs of half-circles, drawn at random; "
        "`vectors`: your own, from `file`.",
    )
    file: OwnFile | None = Field(
        None, description="File of your own vectors: .npy with a two-dimensional array of numbers."
    )
    dims: int | None = Field(
        None,
        ge=2,
        le=MAX_LENGTH,
        multiple_of=2,
        description="Numbers in a vector (d), an even number; only for two_moons.",
    )
    noise: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Standard deviation of the noise on each coordinate, where the half-circles have radius "
        "1; none: 0.05. Only for two_moons.",
    )
    training_rows: TrainingRows = Field(
        None, description="Number of training vectors; none: 50,000 of two_moons, all of your own."
    )
    validation_rows: int | None = Field(
        None,
        ge=1,
        le=10**8,
        description="Number of vectors that are held out; none: 5,000 of two_moons, a tenth of your own.",
    )
    split_seed: Seed = Field(42, description="Seed of two_moons, or of the random split of your own vectors.")

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Vectors":
        needed, others = ("file", ("dims", "noise")) if self.source == "vectors" else ("dims", ("file",))
        if getattr(self, needed) is None:
            raise ValueError(f"{needed}: the source {self.source} needs this key; found none")
        for key in others:
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: the source {self.source} has no such key")
        return self


IMAGE_SOURCES = get_args(Images.model_fields["source"].annotation)
TOKEN_SOURCE = "tokens"
DataSettings = Molecules | Images | Text | Tokens | Vectors


def _modality(data: Any) -> str:
    """The tag of a data section, by its source; the brackets tell it from a key of the configuration.

    A user's own file is text if the section names a tokeniser.
    """
    values = data if isinstance(data, Mapping) else getattr(data, "__dict__", {})
    source = values.get("source")
    if source == TOKEN_SOURCE:
        return "<tokens>"
    if source in TEXT_SOURCES or "tokeniser" in values:
        return "<text>"
    if source in VECTOR_SOURCES:
        return "<vectors>"
    return "<images>" if source in IMAGE_SOURCES else "<molecules>"


Data = Annotated[
    Annotated[Molecules, Tag("<molecules>")]
    | Annotated[Images, Tag("<images>")]
    | Annotated[Text, Tag("<text>")]
    | Annotated[Tokens, Tag("<tokens>")]
    | Annotated[Vectors, Tag("<vectors>")],
    Discriminator(_modality),
]
