"""What the file that a step makes depends on, beside its input files: the one parameter of its rule."""

from typing import Literal

from pydantic import Field, model_validator

from pairflow.config.check import Seed, Settings
from pairflow.config.data import Share, Split, Standardisation
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
    """What an experiment on a user's own file depends on, beside the file."""

    name: str | None = Field(
        None, pattern=r"^[A-Za-z0-9_-]+$", description="name of the experiment; none: from the file's"
    )
    column: str | None = Field(None, description="column that holds the SMILES (CSV); none: looked for")
    fragments: Literal["keep", "largest", "reject"] = Field(
        "largest", description=Standardisation.model_fields["fragments"].description
    )
    split: Split = "random"
    validation_fraction: Share = Field(0.05, gt=0, description="share of the molecules kept for validation")
    max_too_long_share: Share = Field(0.001, description="largest share of the molecules that N may exclude")


class PairSettings(Settings):
    """What a file of pairs depends on, beside the token rows."""

    coupling: Literal["pairflow", "random"] = Field(
        "pairflow", description="closed-form or independent sources"
    )
    steps: int | None = Field(20, ge=1, le=10_000, description="T, backward steps (pairflow)")
    subsets: int = Field(1, ge=1, description="P, random parts that are paired apart (pairflow)")
    seed: Seed = Field(0, description="seed of the random numbers")

    @model_validator(mode="after")
    def _steps_for_pairflow(self) -> "PairSettings":
        if self.coupling == "pairflow" and self.steps is None:
            raise ValueError("steps: the coupling pairflow needs a number of steps")
        return self


class CoverSettings(Settings):
    """What the coverage of the forward velocity depends on, beside the token rows."""

    steps: int = Field(20, ge=1, le=10_000, description="T, forward steps from source to data")
    seed: Seed = Field(0, description="seed of the random numbers")


class TrainSettings(Settings):
    """What a model depends on, beside the token rows or pairs."""

    method: str = Field(description="mdlm, udlm, random, pairflow or pairflow-sub<P>")
    seed: Seed = Field(0, description="seed of weights, data order, noise and dropout")
    network: Network = Field(description='network as JSON, e.g. \'{"name": "mlp", "width": 384}\'')
    training: Training


class TeachSettings(TeacherPairs):
    """What a file of a teacher's pairs depends on, beside the teacher."""

    method: str = Field(description="the method that will train on them: <parent>+redi")
    seed: Seed = Field(0, description="seed of the source states and of the sampler")


class DistillSettings(Settings):
    """What a distilled model depends on, beside its parent and the data or pairs."""

    method: str = Field(description="<parent>+dcd or <parent>+redi")
    seed: Seed = Field(0, description="seed of data order, noise and dropout")
    distillation: AnyDistillation = Field(
        description='distillation as JSON, e.g. \'{"name": "dcd", "teacher_every": 2000, ...}\''
    )


class SampleSettings(Sampling):
    """What a file of samples depends on, beside the model."""

    nfe: int = Field(ge=1, le=10_000, description="sampling steps")
    seed: Seed = Field(0, description="seed of the source states and of the sampler")


class DemandSettings(Update):
    """What a file of molecules on demand depends on, beside the model."""

    count: int = Field(ge=1, le=10**8, description="molecules to deliver; with it, they are drawn on demand")
    steps: int = Field(ge=1, le=10_000, description="sampling steps (NFE)")
    valid: bool = Field(False, description="only molecules that RDKit reads, as canonical SMILES")
    unique: bool = Field(False, description="none twice (implies --valid)")
    novel: bool = Field(False, description="none of the data set that the model has learnt (implies --valid)")
    properties: bool = Field(
        False,
        description="with QED, synthetic accessibility, logP and molecular weight in g/mol (implies --valid)",
    )
    seed: Seed = Field(0, description="seed of the source states and of the sampler")

    @property
    def parsed(self) -> bool:
        """Whether every string has to be a molecule."""
        return self.valid or self.unique or self.novel or self.properties


class CorrelateSettings(Correlation):
    """What a model's total correlation depends on, beside the model and the training rows."""

    seed: Seed = Field(0, description="seed of the source states, of the sampler and of the ceiling")


class ClassifySettings(Settings):
    """What the classifier depends on, beside the images and their labels."""

    iterations: ClassifierIterations = 400
    seed: Seed = Field(0, description="seed of its weights and of the order of the images")


class FloorSettings(ExtractorSettings):
    """What the distance of real images from real images depends on, beside the images."""

    samples: int = Field(1024, ge=1, le=10**7, description="images per trial, as many as there are at most")
    trials: Trials = 10
    seed: Seed = Field(0, description="seed of the draws")
