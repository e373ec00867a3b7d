"""Settings of samples, and of the measurements on them."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from pairflow.config.check import Settings

Sampler = Annotated[Literal["ancestral", "euler"], Field(description="Update rule of the sampler.")]
Conversion = Annotated[
    Literal["exact", "none"],
    Field(
        description="`exact` converts the model's prediction to the kind that the sampler expects (posterior "
        "or leave-one-out); `none` uses it unchanged."
    ),
]
SamplingSteps = Annotated[
    int,
    Field(
        ge=1,
        le=10_000,
        description="Number of sampling steps (number of function evaluations, NFE), not counting the greedy "
        "step at the end.",
    ),
]
Trials = Annotated[int, Field(ge=1, le=1000, description="Independent repetitions, for mean and deviation.")]
ClassifierIterations = Annotated[
    int, Field(ge=1, le=10**6, description="Optimiser updates of the classifier's training.")
]


class Update(Settings):
    """How a model takes source states to samples."""

    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"
    greedy_tail: bool = Field(
        True,
        description="After the last sampling step, take the symbols that the denoiser finds most likely.",
    )


class Sampling(Update):
    """How samples are drawn from a model, and how many."""

    samples: int = Field(1024, ge=1, le=10**7, description="Samples per trial.")
    trials: Trials = 10


class Evaluation(Sampling):
    """A named protocol: numbers of sampling steps (NFE), samples and trials."""

    nfe: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] = Field(
        min_length=1, description="Numbers of sampling steps (NFE)."
    )
    methods: tuple[str, ...] | None = Field(
        None, min_length=1, description="The methods to evaluate; none: all methods of the experiment."
    )

    @model_validator(mode="after")
    def _distinct_nfe(self) -> "Evaluation":
        if len(set(self.nfe)) < len(self.nfe):
            raise ValueError(f"nfe: {list(self.nfe)} names a number twice")
        return self


class Correlation(Settings):
    """Conditional total correlation of each method with uniform noise.

    mdlm is left out: its only source state is all masks, so that there is nothing to condition on.
    """

    sources: int = Field(20_000, ge=2, le=10**6, description="Number of source states (x0).")
    samples: int = Field(10, ge=2, le=1000, description="Samples (x1) per source state.")
    steps: SamplingSteps = 256
    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"


ExtractorName = Literal["classifier", "inception", "dinov2"]


class ExtractorSettings(Settings):
    """The network by whose features images are compared."""

    extractor: ExtractorName = Field(
        "classifier",
        description="Network that computes the features: the `classifier` that the workflow trains, "
        "`inception` (the network of FID) or `dinov2` (a self-supervised transformer).",
    )
    weights: str | None = Field(
        None,
        description="Weight file of inception or dinov2. If it is not given, the published "
        "weights are downloaded.",
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 checksum of the weight file. If it is not given, only the published "
        "file is accepted.",
    )

    @model_validator(mode="after")
    def _weights_fit(self) -> "ExtractorSettings":
        if self.extractor == "classifier" and self.weights is not None:
            raise ValueError("weights: the classifier is trained here and takes none")
        if self.sha256 is not None and self.weights is None:
            raise ValueError("sha256: there are no weights to which it could belong")
        return self


class ComparisonSettings(ExtractorSettings):
    """What the comparison of images depends on, besides the images."""

    pixels: bool = Field(
        True,
        description="Also measure the distance of pixels to the nearest training image.",
        exclude_if=lambda value: value,  # as in the files of earlier versions, which always measured it
    )


class Features(ExtractorSettings):
    """A feature extractor of an experiment on images."""

    iterations: ClassifierIterations = 400


def _with_settings(extractor: Any) -> Any:
    """An extractor that is named without settings has their defaults."""
    return {"extractor": extractor} if isinstance(extractor, str) else extractor


Extractor = Annotated[
    Features, BeforeValidator(_with_settings, json_schema_input_type=ExtractorName | Features)
]
# The tags' brackets tell them from keys of the configuration.
Extractors = Annotated[
    Annotated[Extractor, Tag("<one>")]
    | Annotated[tuple[Extractor, ...], Field(min_length=1), Tag("<several>")],
    Discriminator(lambda value: "<several>" if isinstance(value, list | tuple) else "<one>"),
]


class Chemistry(Settings):
    """Measures on molecules beyond those that are always computed."""

    fcd: bool = Field(
        False,
        description="Compute the Fréchet ChemNet Distance to the training molecules; needs pairflow[fcd].",
    )
