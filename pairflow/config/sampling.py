"""Settings of samples, and of the measurements on them."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from pairflow.config.check import Seed, Settings
from pairflow.limits import MOST_NFE, MOST_SAMPLES

SamplerName = Literal["ancestral", "euler"]
Sampler = Annotated[SamplerName, Field(description="Update rule of the sampler.")]
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
Temperature = Annotated[
    float,
    Field(
        ge=0.01,
        le=100,
        allow_inf_nan=False,
        description="The network's logits are divided by this temperature before a symbol is drawn: below 1 "
        "samples are likelier and less varied, above 1 the other way round.",
    ),
]


class Update(Settings):
    """How a model takes source states to samples."""

    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"
    greedy_tail: bool = Field(
        True,
        description="After the last sampling step, take the symbols that the denoiser finds most likely.",
    )
    temperature: Temperature = Field(1.0, exclude_if=lambda value: value == 1)


GuidanceWeight = Annotated[
    float,
    Field(
        ge=0,
        le=100,
        allow_inf_nan=False,
        description="Weight of classifier-free guidance, only with a condition: 0 ignores it, 1 is the model "
        "of that class, and more follows the class more closely at the cost of variety.",
    ),
]


class GuidedUpdate(Update):
    """The same, of a conditional model."""

    condition: str | None = Field(
        None,
        min_length=1,
        description="Class of the property that the model was trained with, such as qed=high.",
        exclude_if=lambda value: value is None,
    )
    guidance: GuidanceWeight = Field(1.0, exclude_if=lambda value: value == 1)

    def count_calls(self, nfe: int, tail_revises: bool = True) -> int:
        """Calls of the network for a sample, with the greedy tail unless it revises nothing; two at each time
        if the sample is guided."""
        return (nfe + (self.greedy_tail and tail_revises)) * (1 if self.guidance in (0, 1) else 2)

    @model_validator(mode="after")
    def _guidance_needs_a_condition(self) -> Self:
        if self.guidance != 1 and self.condition is None:
            raise ValueError("guidance: needs a condition, such as qed=high")
        return self


class Sampling(GuidedUpdate):
    """How samples are drawn from a model, and how many."""

    samples: int = Field(1024, ge=1, le=MOST_SAMPLES, description="Samples per trial.")
    trials: Trials = 10


class Evaluation(Sampling):
    """A named protocol: numbers of sampling steps (NFE), samples and trials."""

    nfe: tuple[Annotated[int, Field(ge=1, le=MOST_NFE)], ...] = Field(
        min_length=1, description="Numbers of sampling steps (NFE)."
    )
    methods: tuple[str, ...] | None = Field(
        None, min_length=1, description="The methods to evaluate; none: all methods of the experiment."
    )
    temperatures: tuple[Temperature, ...] = Field(
        (),
        description="Further temperatures at which samples are drawn and measured, besides `temperature`.",
        exclude_if=lambda values: not values,
    )
    guidances: tuple[GuidanceWeight, ...] = Field(
        (),
        description="Further guidance weights at which samples are drawn and measured, besides `guidance`.",
        exclude_if=lambda values: not values,
    )
    shown: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] | None = Field(
        None,
        min_length=1,
        description="The numbers among `nfe` whose samples reports show; none: the lowest and the highest.",
    )

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_shown(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `shown` the settings are those of earlier versions, so that no report is made again."""
        return {key: value for key, value in dump(self).items() if key != "shown" or value}

    @model_validator(mode="after")
    def _distinct_nfe(self) -> "Evaluation":
        for key in ("nfe", "shown"):
            values = getattr(self, key) or ()
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: {list(values)} names a number twice")
        for nfe in self.shown or ():
            if nfe not in self.nfe:
                raise ValueError(f"shown: {nfe} is not among nfe, {list(self.nfe)}")
        temperatures = (self.temperature, *self.temperatures)
        if len(set(temperatures)) < len(temperatures):
            raise ValueError(
                f"temperatures: with {self.temperature:g} itself, {list(temperatures)} has one twice"
            )
        weights = (self.guidance, *self.guidances)
        if len(set(weights)) < len(weights):
            raise ValueError(f"guidances: with {self.guidance:g} itself, {list(weights)} has one twice")
        if self.guidances and self.condition is None:
            raise ValueError("guidances: needs a condition, such as qed=high")
        return self

    def repeated(self, name: str) -> dict[str, "Evaluation"]:
        """The evaluations that repeat this one at its further temperatures, by names such as main_t0_7, and
        at its further weights of guidance, by names such as main_g2."""
        once = {"temperatures": (), "guidances": (), "shown": None}
        variants = {f"{name}_t{value:g}": {"temperature": value} for value in self.temperatures}
        variants |= {f"{name}_g{value:g}": {"guidance": value} for value in self.guidances}
        return {
            variant.replace(".", "_"): self.model_copy(update=once | changed)
            for variant, changed in variants.items()
        }


class ModelCorrelation(Settings):
    """How the conditional total correlation of a model is measured."""

    sources: int = Field(20_000, ge=2, le=10**6, description="Number of source states (x0).")
    samples: int = Field(10, ge=2, le=1000, description="Samples (x1) per source state.")
    steps: SamplingSteps = 256
    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"


class Correlation(ModelCorrelation):
    """Conditional total correlation of some methods."""

    methods: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="The methods to measure, which must have uniform noise; none: `udlm` and `pairflow`, "
        "if the experiment has them.",
        exclude_if=lambda value: value is None,
    )


# The classifiers that come with pairflow, by the data set whose training images they learnt, and the SHA-256
# of their weights in pairflow/kinds/images/classifiers. docs/metrics.md has the commands that make them.
CLASSIFIERS = {
    "digits": "29beb117696e08a958661afd1b9e273cb80ca44ef776d8a250313fe794dcafd7",
    "mnist_binary": "7c3529eb3870ae431610528b25b3a351a30b4c0bb892391ef6dea627bcd225a5",
}


ExtractorName = Literal["classifier", "inception", "dinov2"]


class ExtractorSettings(Settings):
    """The network by whose features images are compared."""

    extractor: ExtractorName = Field(
        "classifier",
        description="Network that computes the features: a small `classifier`, "
        "`inception` (the network of FID) or `dinov2` (a self-supervised transformer).",
    )
    weights: str | None = Field(
        None,
        description="Weight file of inception or dinov2, or the name of a classifier that comes with "
        "pairflow (digits or mnist_binary). If it is not given, the published weights are downloaded, "
        "and a classifier is trained by the workflow.",
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 checksum of the weight file. If it is not given, only the published "
        "file is accepted, or the classifier's that comes with pairflow.",
    )

    @model_validator(mode="before")
    @classmethod
    def _know_the_checksum(cls, values: Any) -> Any:
        """The checksum of a classifier that comes with pairflow, so that what it measured follows it."""
        if isinstance(values, dict) and values.get("extractor", "classifier") == "classifier":
            known = CLASSIFIERS.get(str(values.get("weights")))
            return {**values, "sha256": known} if known and values.get("sha256") is None else values
        return values

    @model_validator(mode="after")
    def _weights_fit(self) -> "ExtractorSettings":
        if self.extractor == "classifier" and self.weights not in (None, *CLASSIFIERS):
            known = " or ".join(CLASSIFIERS)
            raise ValueError(
                f"weights: expected {known}, the classifiers that come with pairflow; "
                f"found '{self.weights}'. Without weights, one is trained"
            )
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


class JudgeTransformer(Settings):
    """The second judge of text: a small autoregressive transformer, and its training on the judge's text."""

    width: int = Field(64, ge=8, le=4096, description="Width of the judge's transformer.")
    blocks: int = Field(2, ge=1, le=64, description="Blocks of the judge's transformer.")
    heads: int = Field(4, ge=1, le=64, description="Attention heads in each block.")
    dropout: float = Field(0.2, ge=0, lt=1, description="Dropout, which a short text needs.")
    batch_size: int = Field(64, ge=1, le=2**16, description="Rows per iteration.")
    iterations: int = Field(
        1000,
        ge=1,
        le=10**9,
        description="Optimiser updates. The weights are those of the lowest loss on a tenth of the judge's "
        "rows, which is held back.",
    )
    learning_rate: float = Field(3e-3, gt=0, le=1, description="Peak learning rate of AdamW.")
    seed: Seed = Field(0, description="Seed of the judge's weights and of its batches.")

    @model_validator(mode="after")
    def _heads_fit(self) -> "JudgeTransformer":
        if self.width % (2 * self.heads):
            raise ValueError(f"width: {self.width} is no multiple of 2 x heads, {2 * self.heads}")
        return self


class Judge(Settings):
    """The models whose perplexity samples of text have; the n-gram model leads."""

    order: int = Field(
        6,
        ge=1,
        le=16,
        description="Tokens of the judge's n-grams: 6 suits characters, 3 suits pieces of words.",
    )
    transformer: JudgeTransformer | None = Field(
        None,
        description="A second judge, which the workflow trains on the judge's text: a small autoregressive "
        "transformer with these settings; {} for the defaults.",
        exclude_if=lambda value: value is None,
    )
    gen_ppl: bool = Field(
        False,
        description="Also measure the generative perplexity under GPT-2 large; needs pairflow[text].",
        exclude_if=lambda value: not value,
    )


class Chemistry(Settings):
    """Measures on molecules beyond those that are always computed."""

    fcd: bool = Field(
        False,
        description="Compute the Fréchet ChemNet Distance to the training molecules; needs pairflow[fcd].",
    )
    useful: bool = Field(
        False,
        exclude_if=lambda value: not value,  # so that nothing of earlier versions is made again
        description="Count useful molecules: different, novel, without rings of more than eight atoms, with "
        "properties as in the middle 90 % of the training molecules. Methods are then judged by them first.",
    )
    moses: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="Compare with held-out molecules as MOSES does (fragments, scaffolds, similarity), and "
        "count those that pass filters of medicinal chemistry; takes a few milliseconds per molecule.",
    )
