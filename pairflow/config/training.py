"""Settings of the training of base models, and of their distillations."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, create_model, model_validator

from pairflow.settings.check import Seed, Settings, any_of, by_name
from pairflow.settings.flows import CONTINUOUS, DISCRETE, LossName
from pairflow.settings.sampling import Conversion, Sampler, SamplingSteps

EmaDecay = Annotated[float, Field(ge=0, lt=1, description="Decay of the moving average of the weights.")]


class Optimisation(Settings):
    """Settings of the optimiser in one training run: batches, learning rate, averaging and validation."""

    batch_size: int = Field(ge=1, le=2**20, description="Rows per iteration.")
    iterations: int = Field(ge=1, le=10**9, description="Number of optimiser updates.")
    learning_rate: float = Field(gt=0, le=1, description="Peak learning rate of AdamW.")
    warmup_iterations: int = Field(0, ge=0, le=10**9, description="Iterations of linear warm-up.")
    decay: Literal["cosine", "constant"] = Field(
        "constant",
        description="Learning rate after the warm-up: `cosine` falls to final_learning_rate, `constant` "
        "stays.",
    )
    final_learning_rate: float = Field(
        0.0, ge=0, le=1, description="Learning rate at the end of a cosine decay."
    )
    ema_decay: EmaDecay = 0.9999
    gradient_clip: float = Field(
        1.0, gt=0, le=1e9, description="Largest norm of the gradient; longer gradients are scaled down to it."
    )
    validate_every: int = Field(1000, ge=1, le=10**9, description="Iterations between two validations.")

    @model_validator(mode="after")
    def _schedule_fits(self) -> "Optimisation":
        if self.warmup_iterations >= self.iterations:
            raise ValueError(
                f"warmup_iterations: {self.warmup_iterations} is not below {self.iterations} iterations"
            )
        if self.final_learning_rate > self.learning_rate:
            raise ValueError(f"final_learning_rate: {self.final_learning_rate} is above {self.learning_rate}")
        return self


class Training(Optimisation):
    """Settings of the training of base models."""

    loss: LossName = Field(
        "nelbo",
        description="Training loss: the negative ELBO (`nelbo`), the cross-entropy of the denoiser, or, in "
        "a continuous flow, the squared error of the velocity.",
    )
    ignore_padding: bool = Field(False, description="Leave padding out of the training loss of base models.")


Pool = Annotated[
    int | None,
    Field(
        ge=1,
        le=2**14,  # a matrix of 2 GiB
        description="Rows that ot assigns to sources at a time, a multiple of training.batch_size. Default: "
        "one batch. The time of an assignment grows with the cube of this number.",
    ),
]


TAU = 0.2
Tau = Annotated[
    float,
    Field(
        ge=0.01,
        le=100,
        description="Temperature of sdot, in positions; in a continuous flow, in half squared distances. "
        "Near 0, a source goes to the nearest row, as far as all rows get equally many sources. A high "
        "temperature makes sources and rows independent.",
    ),
]


FREQUENCIES = "frequencies"
Noise = Annotated[
    Literal["uniform", "frequencies"],
    Field(
        description="How noise other than masks draws symbols. `uniform`: all equally likely. "
        "`frequencies`: as likely as at the same position of the training rows.",
        exclude_if=lambda noise: noise == "uniform",  # as if the setting were not there
    ),
]


class BaseTraining(Training):
    """Settings of the training of a base model, and those settings of `pairing` that affect it."""

    pool: Pool = None

    @model_validator(mode="after")
    def _pool_of_whole_batches(self) -> "BaseTraining":
        require_whole_batches(self.pool, self.batch_size)
        return self

    @property
    def pooled_batches(self) -> int:
        """The number of batches whose sources (rows of noise) are assigned to data rows together."""
        return (self.pool or self.batch_size) // self.batch_size


def require_whole_batches(pool: int | None, batch_size: int) -> None:
    """Raise ValueError unless `pool`, a number of rows or None, is a multiple of the batch size."""
    if pool is not None and pool % batch_size:
        raise ValueError(
            f"pairing.pool: expected a multiple of training.batch_size, {batch_size}; found {pool}"
        )


class Distillation(Optimisation):
    """Settings of a distillation: a training run that starts from a finished model, its parent."""

    label: ClassVar[str] = ""  # its name on pages (default: the name in methods)
    on_pairs: ClassVar[bool]  # whether it trains on pairs that the parent generates, or on the data
    flow: ClassVar[str] = DISCRETE.name
    drawing: ClassVar[
        "type[TeachSettings | SolveSettings]"
    ]  # the settings of the step that generates these pairs

    learning_rate_of: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(
        {}, description="Different peak learning rates for some bases, such as {pairflow: 3.0e-4}."
    )
    ema_decay: EmaDecay = 0.999
    start_from: Literal["ema", "raw"] = Field(
        "ema", description="Which of the parent's weights to start from: averaged (`ema`) or `raw`."
    )
    ema: Literal["fresh", "inherit"] = Field(
        "fresh",
        description="Moving average of the weights: `fresh` starts one, `inherit` continues the parent's.",
    )

    if TYPE_CHECKING:  # each subclass defines them
        name: str
        pairs: Settings

    @model_validator(mode="after")
    def _rates_fit(self) -> Self:
        for base, rate in self.learning_rate_of.items():
            if self.final_learning_rate > rate:
                final = f"final_learning_rate: {self.final_learning_rate}"
                raise ValueError(f"{final} is above learning_rate_of.{base}, {rate}")
        return self

    def of_base(self, base: str) -> Self:
        """Return these settings with the learning rate for methods with the base method `base`."""
        rate = self.learning_rate_of.get(base, self.learning_rate)
        return self.model_copy(update={"learning_rate": rate, "learning_rate_of": {}})


class Dcd(Distillation):
    """Settings of Discrete Consistency Distillation (Duo, Sahoo et al. 2025)."""

    label: ClassVar[str] = "DCD"
    on_pairs: ClassVar[bool] = False

    name: Literal["dcd"] = "dcd"
    teacher_every: int = Field(
        ge=1,
        le=10**9,
        description="Number of iterations after which the teacher becomes a copy of the student, each time.",
    )
    noise_min: float = Field(-4.0, ge=-12, le=12, description="Negative log-SNR at noise time 0 (g_min).")
    noise_max: float = Field(-1.0, ge=-12, le=12, description="Negative log-SNR at noise time 1 (g_max).")

    @model_validator(mode="after")
    def _noise_grows(self) -> "Dcd":
        if self.noise_min >= self.noise_max:
            raise ValueError(f"noise_min: {self.noise_min} is not below noise_max, {self.noise_max}")
        return self


class TeacherPairs(Settings):
    """Settings of ReDi's pairs: a source (a row of noise) and the parent model's sample from it."""

    count: int = Field(20_000, ge=1, le=10**8, description="Number of pairs.")
    steps: SamplingSteps = 256
    sampler: Sampler = "euler"
    conversion: Conversion = "exact"


class TeachSettings(TeacherPairs):
    """Settings of a file of ReDi's pairs: all that it depends on besides the model that generates them."""

    method: str = Field(description="Method that will train on the pairs: <parent>+redi.")
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class Redi(Distillation):
    """Settings of ReDi (rectified discrete flow, Yoo et al. 2025): training on the parent model's pairs."""

    label: ClassVar[str] = "ReDi"
    on_pairs: ClassVar[bool] = True
    drawing: ClassVar[type[TeachSettings]] = TeachSettings

    name: Literal["redi"] = "redi"
    pairs: TeacherPairs = Field(
        TeacherPairs(), description="How the pairs are drawn, as `pairflow teach --help` explains."
    )


class SolvedPairs(Settings):
    """Settings of ReFlow's pairs: x0 ~ N(0, I), and the end of the parent model's flow from x0."""

    count: int = Field(60_000, ge=1, le=10**8, description="Number of pairs.")
    steps: int = Field(100, ge=1, le=10_000, description="Euler steps of the parent's flow.")


class SolveSettings(SolvedPairs):
    """Settings of a file of ReFlow's pairs: all that it depends on besides the model that generates them."""

    solver: Literal["euler"] = Field(
        "euler", description="Solver of a continuous flow. This option selects pairs for ReFlow (+rf)."
    )
    method: str = Field(description="Method that will train on the pairs: <parent>+rf.")
    seed: Seed = Field(0, description="Seed of the sources.")


class Rf(Distillation):
    """Settings of ReFlow (Liu et al. 2023): training on the parent model's pairs."""

    label: ClassVar[str] = "ReFlow"
    on_pairs: ClassVar[bool] = True
    flow: ClassVar[str] = CONTINUOUS.name
    drawing: ClassVar[type[SolveSettings]] = SolveSettings

    name: Literal["rf"] = "rf"
    pairs: SolvedPairs = Field(SolvedPairs(), description="How the pairs are drawn.")


# `+<name>` in a method stands for this objective of pairflow.training.catalogue, with these settings.
DISTILLATIONS: dict[str, type[Distillation]] = by_name(Dcd, Redi, Rf)

if TYPE_CHECKING:
    AnyDistillation = Distillation
else:
    AnyDistillation = any_of(DISTILLATIONS)

Distillations = create_model(  # type: ignore[call-overload]
    "Distillations",
    __base__=Settings,
    __doc__="Settings of each distillation, under the name that methods use: `udlm+dcd`.",
    **{name: (settings | None, None) for name, settings in DISTILLATIONS.items()},
)
