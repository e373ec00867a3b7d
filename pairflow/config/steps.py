"""What the output of each step depends on besides its input files: the only parameter of its rule."""

from typing import Literal

from pydantic import Field, model_validator

from pairflow.config.check import Seed, Settings
from pairflow.config.networks import Network
from pairflow.config.sampling import ModelCorrelation, Sampling, Trials
from pairflow.config.training import AnyDistillation, BaseTraining, Flow, SolvedPairs, TeacherPairs
from pairflow.limits import MOST_NFE, MOST_SAMPLES


class PairSettings(Settings):
    """What a file of pairs depends on, besides the token rows."""

    coupling: Literal["pairflow", "random"] = Field(
        "pairflow", description="Source states: closed-form (pairflow) or independent (random)."
    )
    steps: int | None = Field(
        20, ge=1, le=10_000, description="Backward steps from data to source (T); only for pairflow."
    )
    subsets: int = Field(
        1, ge=1, le=10**9, description="Random subsets (P) that are paired separately; only for pairflow."
    )
    seed: Seed = Field(0, description="Seed of the random numbers.")
    flow: Flow = Field(
        "discrete",
        description="`discrete` walks from token rows back to their sources, by Algorithm 1; `continuous` "
        "walks from Gaussian sources to the vectors or images that they belong to.",
    )

    @model_validator(mode="after")
    def _steps_for_pairflow(self) -> "PairSettings":
        if self.coupling == "pairflow" and self.steps is None:
            raise ValueError("steps: the coupling pairflow needs a number of steps")
        if self.flow == "continuous" and (self.coupling != "pairflow" or self.subsets > 1):
            raise ValueError("flow: a continuous flow is paired by pairflow, all rows at once")
        return self


class AdoptSettings(Settings):
    """What pairs for training depend on, besides the user's own pairs and the token rows."""

    coupling: str = Field(pattern=r"^pairs-[a-z0-9]+$", description="Name of the coupling: pairs-<name>.")
    seed: Seed = Field(0, description="Seed of the experiment; it changes nothing but the metadata.")


class CoverSettings(Settings):
    """What the coverage of the forward velocity depends on, besides the token rows."""

    steps: int = Field(20, ge=1, le=10_000, description="Forward steps from source to data (T).")
    seed: Seed = Field(0, description="Seed of the random numbers.")


class TrainSettings(Settings):
    """What a model depends on, besides the token rows or pairs."""

    method: str = Field(
        description="Base method: mdlm, udlm, random, pairflow, pairflow-sub<P> "
        "(P random subsets, paired separately), or pairs-<name> (pairs of your own); in a continuous flow "
        "condot, ot or pairflow."
    )
    seed: Seed = Field(0, description="Seed of weights, data order, noise and dropout.")
    network: Network = Field(description='Network as JSON, e.g. \'{"name": "mlp", "width": 384}\'.')
    training: BaseTraining


class TeachSettings(TeacherPairs):
    """What a file of a teacher's pairs depends on, besides the teacher."""

    method: str = Field(description="Method that will train on the pairs: <parent>+redi.")
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class SolveSettings(SolvedPairs):
    """What a file of pairs for ReFlow depends on, besides the teacher."""

    solver: Literal["euler"] = Field(
        "euler", description="Solver of a continuous flow, which selects the pairs of ReFlow (+rf)."
    )
    method: str = Field(description="Method that will train on the pairs: <parent>+rf.")
    seed: Seed = Field(0, description="Seed of the sources.")


class DistillSettings(Settings):
    """What a distilled model depends on, besides its parent and the data or pairs."""

    method: str = Field(
        description="Distilled method, whose name is its parent's and +<distillation>: pairflow+dcd."
    )
    seed: Seed = Field(0, description="Seed of data order, noise and dropout.")
    distillation: AnyDistillation = Field(  # type: ignore[valid-type]
        description='Distillation as JSON, e.g. \'{"name": "dcd", "teacher_every": 2000, ...}\'.'
    )


class SampleSettings(Sampling):
    """What a file of samples depends on, besides the model."""

    nfe: int = Field(
        ge=1, le=MOST_NFE, description="Number of sampling steps (number of function evaluations, NFE)."
    )
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class FlowSampleSettings(Settings):
    """What a file of samples of a continuous flow depends on, besides the model."""

    solver: Literal["euler", "heun", "dopri5"] = Field(
        "euler",
        description="Solver of a continuous flow, which selects its samples: `euler` with uniform steps; as "
        "references, `heun` (two calls of the network per step) and `dopri5` (its own steps; torchdiffeq).",
    )
    samples: int = Field(1024, ge=1, le=MOST_SAMPLES, description="Samples per trial.")
    trials: Trials = 10
    nfe: int = Field(
        ge=1, le=MOST_NFE, description="Number of sampling steps (number of function evaluations, NFE)."
    )
    seed: Seed = Field(0, description="Seed of the source states and of the sampler.")


class ScoreSettings(Settings):
    """What scores depend on, besides the model and the rows."""

    draws: int = Field(
        128,
        ge=2,
        le=10**6,
        multiple_of=2,
        description="Noised copies of each row, an even number. The standard error falls at least as fast as "
        "one over its square root.",
    )
    seed: Seed = Field(0, description="Seed of the noise, which depends on nothing else but the row.")


class CorrelateSettings(ModelCorrelation):
    """What a model's total correlation depends on, besides the model and the training rows."""

    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of the ceiling.")
