"""Settings for drawing samples, and for measuring them."""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, WithJsonSchema, field_serializer, field_validator, model_validator

from pairflow.limits import MOST_NFE, MOST_SAMPLES
from pairflow.settings.check import Seed, Settings
from pairflow.settings.conditions import split_conditions

# Sampler -> the module of pairflow.flow that defines it under its name.
SAMPLERS = {"ancestral": "samplers", "euler": "samplers"}
# Solvers of a continuous flow: see `flow.continuous.solve`.
SOLVERS = EULER, HEUN = "euler", "heun"
if TYPE_CHECKING:
    SamplerName = str
    SolverName = str
else:
    SamplerName, SolverName = Literal[tuple(SAMPLERS)], Literal[SOLVERS]
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
Nfe = Annotated[
    int,
    Field(ge=1, le=MOST_NFE, description="Number of sampling steps (number of function evaluations, NFE)."),
]
Samples = Annotated[int, Field(ge=1, le=MOST_SAMPLES, description="Samples per trial.")]
Trials = Annotated[
    int, Field(ge=1, le=1000, description="Independent repetitions, for a mean and a standard deviation.")
]
Temperature = Annotated[
    float,
    Field(
        ge=0.01,
        le=100,
        allow_inf_nan=False,
        description="The network's logits are divided by this temperature before a symbol is drawn. Below "
        "1, samples are likelier and less varied; above 1, less likely and more varied.",
    ),
]


GreedyTail = Annotated[
    bool,
    Field(description="Call the denoiser once more after the last step, and take its most likely symbols."),
]
UsesGrammar = Annotated[
    bool,
    Field(
        description="Only for molecules in groups: make only rows in which no group is left over, and no "
        "place for a group stays empty.",
        exclude_if=lambda uses: not uses,  # as if the setting were not there
    ),
]


class Update(Settings):
    """Settings of a sampler, which turns source states (rows of noise) into samples."""

    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"
    greedy_tail: GreedyTail = True
    temperature: Temperature = Field(1.0)
    grammar: UsesGrammar = False


GuidanceWeight = Annotated[
    float,
    Field(
        ge=0,
        le=100,
        allow_inf_nan=False,
        description="Weight of classifier-free guidance; only with a condition. 0 ignores the condition, 1 "
        "is the conditional model, and more follows the condition more closely but varies less.",
    ),
]


_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}


class GuidedUpdate(Update):
    """Settings of a sampler with a condition on the samples, for conditional models."""

    condition: Annotated[tuple[str, ...], WithJsonSchema(_TEXTS)] = Field(
        (),
        description="Class that samples should have, such as qed=high; only for conditional models. Classes "
        "of several properties: qed=high,logp=low, or several values.",
    )
    guidance: GuidanceWeight = Field(1.0)

    def count_calls(self, nfe: int, tail_revises: bool = True) -> int:
        """Return the number of network calls for a sample: one per step, and one for the greedy tail.

        The tail only counts if `tail_revises`: if it can change a sample. With guidance the number is twice
        as large, because the network is also called without the condition.
        """
        return (nfe + (self.greedy_tail and tail_revises)) * (1 if self.guidance in (0, 1) else 2)

    @model_validator(mode="after")
    def _guidance_needs_a_condition(self) -> Self:
        if self.guidance != 1 and not self.condition:
            raise ValueError("guidance: needs a condition, such as qed=high")
        return self

    _split = field_validator("condition", mode="before")(split_conditions)

    @field_serializer("condition")
    def _one_text(self, condition: tuple[str, ...]) -> str | None:
        return ",".join(condition) or None


class MeasuredAt(Settings):
    """The settings of the sampler with which a model was measured, as stored in the model's folder."""

    nfe: SamplingSteps
    temperature: Temperature = Field(1.0)
    sampler: Sampler = "ancestral"
    greedy_tail: GreedyTail = True
    grammar: UsesGrammar = False

    @property
    def words(self) -> str:
        """The settings as options of `pairflow sample`, without those that have their defaults."""
        options = self.model_dump(exclude_defaults=True)
        tail, grammar = options.pop("greedy_tail", True), options.pop("grammar", False)
        flags = ["--no-greedy-tail"] * (not tail) + ["--grammar"] * grammar
        return " ".join([*(f"--{name} {value}" for name, value in options.items()), *flags])


class Sampling(GuidedUpdate):
    """Settings of a sampler, and of how many samples it draws in how many trials."""

    samples: Samples = 1024
    trials: Trials = 10


class SampleSettings(Sampling):
    """Settings of a file of samples: everything that it depends on besides the model."""

    nfe: Nfe
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class FlowSampleSettings(Settings):
    """Settings of a file of samples of a continuous flow: everything that it depends on besides the model."""

    solver: SolverName = Field(
        EULER,
        description="Solver of a continuous flow, with equal steps: `euler`, or `heun` as a reference, "
        "which calls the network twice per step.",
    )
    samples: Samples = 1024
    trials: Trials = 10
    nfe: Nfe
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")

    def count_calls(self, nfe: int, tail_revises: bool = True) -> int:
        """Return the number of network calls for a sample: one per step with `euler`, two with `heun`."""
        return nfe * (2 if self.solver == HEUN else 1)


# The key of an evaluation's further values -> the setting that has them, one in each copy of the evaluation.
REPEATED = {"temperatures": "temperature", "guidances": "guidance"}


class Evaluation(Sampling):
    """A protocol by which methods are evaluated: numbers of sampling steps (NFE), samples and trials."""

    nfe: tuple[Annotated[int, Field(ge=1, le=MOST_NFE)], ...] = Field(
        min_length=1, description="Numbers of sampling steps (NFE)."
    )
    methods: tuple[str, ...] | None = Field(
        None, min_length=1, description="Methods to evaluate. Default: all methods of the experiment."
    )
    temperatures: tuple[Temperature, ...] = Field(
        (),
        description="Further temperatures, besides `temperature`, at which samples are drawn and measured.",
    )
    guidances: tuple[GuidanceWeight, ...] = Field(
        (),
        description="Further guidance weights, besides `guidance`, at which samples are drawn and measured.",
    )
    shown: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] | None = Field(
        None,
        min_length=1,
        description="The numbers of `nfe` whose samples reports show. Default: the lowest and the highest.",
    )

    @model_validator(mode="after")
    def _distinct_nfe(self) -> "Evaluation":
        for key in ("nfe", "shown"):
            values = getattr(self, key) or ()
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: {list(values)} contains a duplicate")
        for nfe in self.shown or ():
            if nfe not in self.nfe:
                raise ValueError(f"shown: {nfe} is not among nfe, {list(self.nfe)}")
        for further, setting in REPEATED.items():
            every = (getattr(self, setting), *getattr(self, further))
            if len(set(every)) < len(every):
                raise ValueError(f"{further}: with {every[0]:g} itself, {list(every)} contains a duplicate")
        if self.guidances and not self.condition:
            raise ValueError("guidances: needs a condition, such as qed=high")
        return self

    def repeated(self, name: str) -> dict[str, "Evaluation"]:
        """Return the copies of this evaluation at its further temperatures and guidance weights, by name:
        main_t0_7 (temperature 0.7) or main_g2 (guidance 2), if `name`, its own, is main."""
        once = {**dict.fromkeys(REPEATED, ()), "shown": None}  # copies are not copied again
        return {
            f"{name}_{setting[0]}{value:g}".replace(".", "_"): self.model_copy(update=once | {setting: value})
            for further, setting in REPEATED.items()
            for value in getattr(self, further)
        }


class ModelCorrelation(Settings):
    """Settings of a measurement: how much positions of samples from the same source depend on each other."""

    sources: int = Field(20_000, ge=2, le=10**6, description="Number of source states (x0).")
    samples: int = Field(10, ge=2, le=1000, description="Samples (x1) per source state.")
    steps: SamplingSteps = 256
    sampler: Sampler = "ancestral"
    conversion: Conversion = "exact"


class Correlation(ModelCorrelation):
    """Settings of the measurement of the conditional total correlation, and the methods to measure."""

    methods: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="The methods to measure, which must have uniform noise. Default: `udlm` and `pairflow`, "
        "if the experiment has them.",
    )


class RealDraws(Settings):
    """Settings for drawing real rows, which are then measured as if they were samples."""

    samples: int = Field(1024, ge=1, le=10**7, description="Rows per trial; all rows, if there are fewer.")
    trials: Trials = 10
    seed: Seed = Field(0, description="Seed of the random draws.")


# The settings of samples on demand that apply to every kind of data.
DEMANDED = frozenset({"count", "nfe", "unique", "seed", *Update.model_fields})


class CommonDemand(GuidedUpdate):
    """Settings of samples on demand; a kind of data may add its own."""

    count: int = Field(
        ge=1, le=10**8, description="Molecules, texts or images to generate. Switches to on-demand mode."
    )
    nfe: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Number of sampling steps (number of function evaluations, NFE). Optional if --model is "
        "the folder of an experiment: its metrics then decide.",
    )
    prefix: str | None = Field(None, min_length=1, description="Start of every sample, as SMILES or text.")
    template: str | None = Field(
        None,
        min_length=1,
        description="Start of every sample, like --prefix, but each `*` leaves one token open.",
    )
    raw: bool = Field(False, description="Write all samples as the model made them, valid or not.")
    unique: bool = Field(False, description="Drop duplicates.")
    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of --3d.")

    @model_validator(mode="after")
    def _one_start(self) -> "CommonDemand":
        if self.prefix is not None and self.template is not None:
            raise ValueError("template: does not go with prefix; write the start into the template")
        return self
