"""Settings of the optimisation: base models and their distillations."""

import functools
import operator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, create_model, model_validator

from pairflow.config.check import Settings
from pairflow.config.sampling import Conversion, Sampler


class Optimisation(Settings):
    """One optimisation run."""

    batch_size: int = Field(ge=1, le=2**20, description="rows per iteration")
    iterations: int = Field(ge=1, description="optimiser updates")
    learning_rate: float = Field(gt=0, le=1, description="peak learning rate of AdamW")
    warmup_iterations: int = Field(0, ge=0, description="iterations of linear warm-up")
    decay: Literal["cosine", "constant"] = Field("constant", description="learning rate after the warm-up")
    final_learning_rate: float = Field(
        0.0, ge=0, le=1, description="learning rate at the end of a cosine decay"
    )
    ema_decay: float = Field(0.9999, ge=0, lt=1, description="d of the weights' moving average")
    gradient_clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    validate_every: int = Field(1000, ge=1, description="iterations between two validations")

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
    """The training of a base model."""

    loss: Literal["nelbo", "cross_entropy"] = Field("nelbo", description="training loss")


class Distillation(Optimisation):
    """A further optimisation run that starts from a finished model, the parent."""

    on_pairs: ClassVar[bool]  # it trains on pairs that the parent made, else on the data

    ema_decay: float = Field(0.999, ge=0, lt=1, description="d of the weights' moving average")
    start_from: Literal["ema", "raw"] = Field("ema", description="the parent's weights to start from")
    ema: Literal["fresh", "inherit"] = Field(
        "fresh", description="moving average: begun anew, or the parent's carried on"
    )


class Dcd(Distillation):
    """Discrete Consistency Distillation (Duo, Sahoo et al. 2025)."""

    on_pairs: ClassVar[bool] = False

    name: Literal["dcd"] = "dcd"
    teacher_every: int = Field(ge=1, description="iterations after which the teacher becomes the student")
    noise_min: float = Field(-4.0, ge=-12, le=12, description="g_min, negative log-SNR at noise time 0")
    noise_max: float = Field(-1.0, ge=-12, le=12, description="g_max, negative log-SNR at noise time 1")

    @model_validator(mode="after")
    def _noise_grows(self) -> "Dcd":
        if self.noise_min >= self.noise_max:
            raise ValueError(f"noise_min: {self.noise_min} is not below noise_max, {self.noise_max}")
        return self


class TeacherPairs(Settings):
    """How ReDi's pairs are drawn from the parent: a uniform source, and the sample that it makes of it."""

    count: int = Field(20_000, ge=1, le=10**8, description="pairs")
    steps: int = Field(256, ge=1, le=10_000, description="sampling steps, before the greedy tail")
    sampler: Sampler = "euler"
    conversion: Conversion = "exact"


class Redi(Distillation):
    """Rectified discrete flow (ReDi, Yoo et al. 2025): the base loss, on pairs that the parent made."""

    on_pairs: ClassVar[bool] = True

    name: Literal["redi"] = "redi"
    pairs: TeacherPairs = Field(TeacherPairs(), description="how they are drawn: `pairflow teach --help`")


# What `+<name>` in a method does: `objective` of the module pairflow.training.<name>, with these settings.
DISTILLATIONS: dict[str, type[Distillation]] = {"dcd": Dcd, "redi": Redi}

AnyDistillation = Annotated[
    functools.reduce(operator.or_, DISTILLATIONS.values()), Field(discriminator="name")
]

Distillations = create_model(
    "Distillations",
    __base__=Settings,
    __doc__="Settings of each distillation, under the name that methods use: `udlm+dcd`.",
    **{name: (each | None, None) for name, each in DISTILLATIONS.items()},
)
