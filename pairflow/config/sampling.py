"""Settings of samples and of what is measured on them."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pairflow.config.check import Settings

Sampler = Annotated[Literal["ancestral", "euler"], Field(description="update rule")]
Conversion = Annotated[
    Literal["exact", "none"],
    Field(description="of a denoiser into the kind that the update needs; none: taken as it is"),
]
Trials = Annotated[int, Field(ge=1, le=1000, description="independent repetitions, for mean and deviation")]
ClassifierIterations = Annotated[
    int, Field(ge=1, le=10**6, description="updates of the classifier's training")
]


class Update(Settings):
    """How a model takes source states to samples."""

    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"
    greedy_tail: bool = Field(True, description="end on the denoiser's most likely symbols")


class Sampling(Update):
    """How samples are drawn from a model, and how many."""

    samples: int = Field(1024, ge=1, le=10**7, description="samples per trial")
    trials: Trials = 10


class Evaluation(Sampling):
    """A named protocol: at which numbers of steps, how many samples."""

    nfe: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] = Field(
        min_length=1, description="sampling steps"
    )
    methods: tuple[str, ...] | None = Field(None, min_length=1, description="only these; none: all methods")

    @model_validator(mode="after")
    def _distinct_nfe(self) -> "Evaluation":
        if len(set(self.nfe)) < len(self.nfe):
            raise ValueError(f"nfe: {list(self.nfe)} names a number twice")
        return self


class Correlation(Settings):
    """Conditional total correlation of each method with uniform noise.

    Not of mdlm: its source is one state, all masks, so that there is nothing to condition on.
    """

    sources: int = Field(20_000, ge=2, le=10**6, description="source states x0")
    samples: int = Field(10, ge=2, le=1000, description="samples of x1 per source state")
    steps: int = Field(256, ge=1, le=10_000, description="sampling steps, before the greedy tail")
    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"


class ExtractorSettings(Settings):
    """The network whose features images are compared by."""

    extractor: Literal["classifier", "inception", "dinov2"] = Field(
        "classifier", description="trained here on the labels; FID's own; a self-supervised transformer"
    )
    weights: str | None = Field(
        None, description="file of its weights (inception, dinov2); without one, inception's are fetched"
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="checksum of that file; without one, it must be inception's published file",
    )

    @model_validator(mode="after")
    def _weights_fit(self) -> "ExtractorSettings":
        if self.extractor == "classifier" and self.weights is not None:
            raise ValueError("weights: the classifier is trained here, it takes none")
        if self.sha256 is not None and self.weights is None:
            raise ValueError("sha256: there are no weights that it could be the checksum of")
        if self.extractor == "dinov2" and (self.weights is None or self.sha256 is None):
            raise ValueError("weights, sha256: dinov2 needs both, a file and its checksum")
        return self


class Features(ExtractorSettings):
    """What images are compared by."""

    iterations: ClassifierIterations = 400


class Chemistry(Settings):
    """What is measured on molecules beyond what always is."""

    fcd: bool = Field(
        False, description="Fréchet ChemNet Distance to the training molecules; needs pairflow[fcd]"
    )
