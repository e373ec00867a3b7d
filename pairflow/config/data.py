"""Settings of the data: molecules or images to token rows."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from pairflow.config.check import Seed, Settings, nearest

Share = Annotated[float, Field(ge=0, lt=1)]
Split = Annotated[
    Literal["random", "scaffold"],
    Field(description="random (or published), or all molecules of a Bemis-Murcko scaffold on one side"),
]


LONGEST = 4096  # tokens per row, of molecules
MOLECULE_SOURCES = ("small_molecules", "qm9", "zinc250k")


class Standardisation(Settings):
    """What becomes of each molecule before it is written as canonical SMILES, in this order."""

    fragments: Literal["keep", "largest", "reject"] = Field(
        "keep", description="of salts and mixtures: all parts, the largest (organic ones first), or no row"
    )
    charges: Literal["keep", "neutralise"] = Field(
        "keep", description="neutralise: by protons given and taken, where that is possible"
    )
    isotopes: Literal["keep", "drop"] = Field("keep", description="labels such as [13C] and [2H]")
    stereo: Literal["keep", "drop"] = Field("keep", description="stereocentres and double bond geometry")


class Molecules(Standardisation):
    """Raw molecules to token rows."""

    source: str = Field(
        description="qm9, zinc250k, small_molecules (embedded), or the path of a file: "
        ".smi, .csv, .tsv, .sdf, each also .gz"
    )
    column: str = Field("smiles", description="column that holds the SMILES (CSV)")
    length: int = Field(ge=4, le=LONGEST, description="N, tokens per row, with <bos>, <eos> and padding")
    drop_duplicates: bool = Field(False, description="keep one row per canonical SMILES")
    split: Split = "random"
    validation_fraction: Share = Field(0.05, description="share of the rows kept for validation")
    split_seed: Seed = Field(42, description="seed of the random split")
    training_rows: int | None = Field(None, ge=1, description="train on a random subset of so many rows")
    max_heavy_atoms: int | None = Field(None, ge=1, description="leave out larger molecules")
    max_too_long_share: Share = Field(0.001, description="largest share of rows that may exceed the length")

    @field_validator("source")
    @classmethod
    def _a_name_or_a_file(cls, source: str) -> str:
        if source in IMAGE_SOURCES:
            raise ValueError(f"'{source}' are images: see `pairflow preprocess_images`")
        if source not in MOLECULE_SOURCES and not set("/.") & set(source):
            names = (*MOLECULE_SOURCES, *IMAGE_SOURCES)
            known = f"known are {', '.join(names)}, and paths of files"
            raise ValueError(f"unknown name '{source}'{nearest(source, names)}: {known}")
        if set("{}") & set(source):
            raise ValueError(f"{source}: braces in a name are wildcards to Snakemake; rename the file")
        return source

    @property
    def file(self) -> str | None:
        """The user's own file; None where the source is one that the workflow knows by name."""
        return None if self.source in MOLECULE_SOURCES else self.source

    @property
    def standardisation(self) -> Standardisation:
        return Standardisation(**{key: getattr(self, key) for key in Standardisation.model_fields})


class Images(Settings):
    """Raw images to token rows: N = channels x height x width, K grey levels."""

    source: Literal["digits", "mnist_binary", "cifar10", "image_folder"] = Field(
        description="digits (embedded, 8 x 8), mnist_binary, cifar10, or image_folder"
    )
    folder: str | None = Field(None, description="folder of PNG and JPEG files (image_folder)")
    size: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="side to which the central square is resized (image_folder)",
    )
    mode: Literal["L", "RGB"] | None = Field(None, description="convert to grey or colour (image_folder)")
    levels: int | None = Field(None, ge=2, le=256, description="K, must divide 256; none: 256 (image_folder)")
    flips: bool = Field(False, description="append the mirror image of every training image")
    training_rows: int | None = Field(None, ge=1, description="train on a random subset of so many images")
    validation_fraction: float = Field(
        0.1, gt=0, lt=1, description="share held out where no test set is published (digits, image_folder)"
    )
    split_seed: Seed = Field(42, description="seed of the random split and subset")

    @field_validator("levels")
    @classmethod
    def _levels_divide(cls, levels: int | None) -> int | None:
        if levels and 256 % levels:
            raise ValueError(f"{levels} does not divide 256; 2, 4, 8, ... 256 do")
        return levels

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Images":
        if self.source == "image_folder":
            if self.folder is None:
                raise ValueError("folder: the source image_folder needs one")
            return self
        for key in ("folder", "size", "mode", "levels"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: is for the source image_folder, {self.source} has its own")
        if self.source != "digits" and self.validation_fraction != 0.1:
            raise ValueError(f"validation_fraction: {self.source} has a published test set")
        return self


IMAGE_SOURCES = get_args(Images.model_fields["source"].annotation)


def _modality(data: Any) -> str:
    """The tag of a data section, by its source; in brackets, as no key of the configuration is."""
    source = data.get("source") if isinstance(data, Mapping) else getattr(data, "source", None)
    return "<images>" if source in IMAGE_SOURCES else "<molecules>"


Data = Annotated[
    Annotated[Molecules, Tag("<molecules>")] | Annotated[Images, Tag("<images>")], Discriminator(_modality)
]
