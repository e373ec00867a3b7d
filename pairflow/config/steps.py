"""What the output of each step depends on besides its input files: the only parameter of its rule."""

from typing import Literal

from pydantic import Field, model_validator

from pairflow.config.check import Seed, Settings
from pairflow.config.data import LongShare, Share, Split, Standardisation
from pairflow.config.networks import Network
from pairflow.config.sampling import (
    ClassifierIterations,
    Correlation,
    ExtractorSettings,
    Sampling,
    Trials,
    Update,
)
from pairflow.config.training import AnyDistillation, TeacherPairs, Training


class NewSettings(Standardisation):
    """What an experiment on a user's own file depends on, besides the file."""

    name: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="Name of the experiment; none: derived from the file's name.",
    )
    column: str | None = Field(None, description="SMILES column of a CSV file; detected if not given.")
    fragments: Literal["keep", "largest", "reject"] = Field(
        "largest", description=Standardisation.model_fields["fragments"].description
    )
    split: Split = "random"
    validation_fraction: Share = Field(
        0.05, gt=0, description="Share of the molecules that is held out for validation."
    )
    max_too_long_share: LongShare = 0.001


class PairSettings(Settings):
    """What a file of pairs depends on, besides the token rows."""

    coupling: Literal["pairflow", "random"] = Field(
        "pairflow", description="Source states: closed-form (pairflow) or independent (random)."
    )
    steps: int | None = Field(
        20, ge=1, le=10_000, description="Backward steps from data to source (T); only for pairflow."
    )
    subsets: int = Field(
        1, ge=1, description="Random subsets (P) that are paired separately; only for pairflow."
    )
    seed: Seed = Field(0, description="Seed of the random numbers.")

    @model_validator(mode="after")
    def _steps_for_pairflow(self) -> "PairSettings":
        if self.coupling == "pairflow" and self.steps is None:
            raise ValueError("steps: the coupling pairflow needs a number of steps")
        return self


class CoverSettings(Settings):
    """What the coverage of the forward velocity depends on, besides the token rows."""

    steps: int = Field(20, ge=1, le=10_000, description="Forward steps from source to data (T).")
    seed: Seed = Field(0, description="Seed of the random numbers.")


class TrainSettings(Settings):
    """What a model depends on, besides the token rows or pairs."""

    method: str = Field(
        description="Base method: mdlm, udlm, random, pairflow, or pairflow-sub<P> "
        "(P random subsets, paired separately)."
    )
    seed: Seed = Field(0, description="Seed of weights, data order, noise and dropout.")
    network: Network = Field(description='Network as JSON, e.g. \'{"name": "mlp", "width": 384}\'.')
    training: Training


class TeachSettings(TeacherPairs):
    """What a file of a teacher's pairs depends on, besides the teacher."""

    method: str = Field(description="Method that will train on the pairs: <parent>+redi.")
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class DistillSettings(Settings):
    """What a distilled model depends on, besides its parent and the data or pairs."""

    method: str = Field(description="Distilled method: <parent>+dcd or <parent>+redi.")
    seed: Seed = Field(0, description="Seed of data order, noise and dropout.")
    distillation: AnyDistillation = Field(  # type: ignore[valid-type]
        description='Distillation as JSON, e.g. \'{"name": "dcd", "teacher_every": 2000, ...}\'.'
    )


class SampleSettings(Sampling):
    """What a file of samples depends on, besides the model."""

    nfe: int = Field(
        ge=1, le=10_000, description="Number of sampling steps (number of function evaluations, NFE)."
    )
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class DemandSettings(Update):
    """What a file of molecules on demand depends on, besides the model."""

    count: int = Field(
        ge=1, le=10**8, description="Number of molecules to generate. Switches to on-demand mode."
    )
    nfe: int = Field(
        ge=1, le=10_000, description="Number of sampling steps (number of function evaluations, NFE)."
    )
    valid: bool = Field(False, description="Keep only strings that RDKit can read, as canonical SMILES.")
    unique: bool = Field(False, description="Drop duplicates (implies --valid).")
    novel: bool = Field(False, description="Drop molecules of the training data set (implies --valid).")
    properties: bool = Field(
        False,
        description="Add QED, synthetic accessibility, logP and molecular weight in g/mol (implies --valid).",
    )
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")

    @property
    def parsed(self) -> bool:
        """Whether every string has to be a molecule."""
        return self.valid or self.unique or self.novel or self.properties


class CorrelateSettings(Correlation):
    """What a model's total correlation depends on, besides the model and the training rows."""

    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of the ceiling.")


class ClassifySettings(Settings):
    """What the classifier depends on, besides the images and their labels."""

    iterations: ClassifierIterations = 400
    seed: Seed = Field(0, description="Seed of the classifier's weights and of the order of the images.")


class FloorSettings(ExtractorSettings):
    """What the distance of real images from real images depends on, besides the images."""

    samples: int = Field(
        1024, ge=1, le=10**7, description="Images per trial, at most the size of the data set."
    )
    trials: Trials = 10
    seed: Seed = Field(0, description="Seed of the random draws.")
