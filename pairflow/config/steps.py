"""The settings that a rule passes to its step: all that the output depends on besides the input files."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from pairflow.config.methods import BASES, KNOWN, PAIRINGS, Method, parse_method
from pairflow.config.networks import Network
from pairflow.config.training import FREQUENCIES, TAU, AnyDistillation, BaseTraining, Noise, Tau
from pairflow.limits import KEYS, MOST_DRAWS, least_subsets
from pairflow.settings.check import Seed, Settings
from pairflow.settings.flows import DISCRETE, FlowName
from pairflow.settings.sampling import ModelCorrelation

if TYPE_CHECKING:
    CouplingName = str
    BalancedName = str
else:
    CouplingName = Literal[tuple(PAIRINGS["pair"])]
    BalancedName = Literal[tuple(PAIRINGS["potentials"])]


Keys = Annotated[
    int, Field(ge=1, le=10**9, description="Largest number of rows in a subset, for `subsets: auto`.")
]


def require_auto(subsets: int | str | None, keys: int) -> None:
    """Raise ValueError if `keys` is set although `subsets` is not "auto", because it would have no effect."""
    if subsets != "auto" and keys != KEYS:
        raise ValueError(f"keys: only with subsets: auto, found {keys:,}")


def require_tokens(noise: str, flow: str) -> None:
    """Raise ValueError for noise by frequency in a continuous flow, which has no symbols."""
    if noise == FREQUENCIES and flow != DISCRETE.name:
        raise ValueError(f"noise: {noise} is for discrete flows, and flow is {flow}")


class PairSettings(Settings):
    """Settings of `pairflow pair`: what a file of pairs depends on besides the data rows."""

    coupling: CouplingName = Field(
        "pairflow", description="Sources: closed-form (pairflow) or drawn (random)."
    )
    steps: int | None = Field(20, ge=1, le=10_000, description="Steps of the pairing (T); only for pairflow.")
    subsets: Annotated[int, Field(ge=1, le=10**9)] | Literal["auto"] = Field(
        1,
        description="Number of random subsets (P), each paired separately; only for pairflow. `auto`: as "
        "few as possible with at most --keys rows each, so that the time grows in proportion to the rows.",
    )
    keys: Keys = KEYS
    seed: Seed = Field(0, description="Seed of the random numbers.")
    flow: FlowName = Field(
        DISCRETE.name,
        description="`discrete`: from token rows back to their sources, by Algorithm 1. `continuous`: from "
        "Gaussian sources forward to vectors or images.",
    )
    noise: Noise = "uniform"

    def count_subsets(self, rows: int) -> int:
        """Return P, the number of subsets in which data of `rows` rows are paired."""
        return least_subsets(rows, self.keys) if self.subsets == "auto" else self.subsets

    @model_validator(mode="after")
    def _steps_for_pairflow(self) -> "PairSettings":
        if BASES[self.coupling].closed_form and self.steps is None:
            raise ValueError(f"steps: the coupling {self.coupling} needs a number of steps")
        require_auto(self.subsets, self.keys)
        require_tokens(self.noise, self.flow)
        parts = 2 if self.subsets == "auto" else self.subsets
        if self.flow not in Method(name=self.coupling, base=self.coupling, subsets=parts).flows:
            raise ValueError(f"flow: a {self.flow} flow supports only the coupling pairflow, without subsets")
        return self


class AdoptSettings(Settings):
    """Settings of `pairflow adopt`: what its pairs depend on besides the user's pairs and the token rows."""

    coupling: str = Field(pattern=r"^pairs-[a-z0-9]+$", description="Name of the coupling: pairs-<name>.")
    seed: Seed = Field(0, description="Seed of the experiment; it changes nothing but the metadata.")


class PotentialsSettings(Settings):
    """Settings of `pairflow potentials`: what the potentials depend on besides the data rows."""

    coupling: BalancedName = Field(PAIRINGS["potentials"][0], description="Semidiscrete transport.")
    tau: Tau = TAU
    seed: Seed = Field(0, description="Seed of the random numbers.")
    flow: FlowName = Field(
        DISCRETE.name,
        description="`discrete`: token rows, by Hamming distances; `continuous`: vectors or images of "
        "numbers, by squared distances.",
    )
    noise: Noise = "uniform"

    @model_validator(mode="after")
    def _noise_of_tokens(self) -> "PotentialsSettings":
        require_tokens(self.noise, self.flow)
        return self


class CoverSettings(Settings):
    """Settings of `pairflow cover`: what the measured coverage depends on besides the token rows."""

    steps: int = Field(20, ge=1, le=10_000, description="Forward steps from source to data (T).")
    seed: Seed = Field(0, description="Seed of the random numbers.")


class TrainSettings(Settings):
    """Settings of `pairflow train`: what a model depends on besides the data rows or pairs."""

    method: str = Field(description=f"Base method: {KNOWN}. P: random subsets; <name>: pairs of your own.")
    seed: Seed = Field(0, description="Seed of weights, data order, noise and dropout.")
    network: Network = Field(description='Network as JSON, e.g. \'{"name": "mlp", "width": 384}\'.')
    training: BaseTraining
    noise: Noise = "uniform"

    @model_validator(mode="after")
    def _noise_of_tokens(self) -> "TrainSettings":
        if self.noise == FREQUENCIES and BASES[parse_method(self.method).base].corruption != "uniform":
            raise ValueError(f"noise: {self.noise} is not for {self.method}")
        return self


class DistillSettings(Settings):
    """Settings of `pairflow distill`: what a model depends on besides its parent and the data or pairs."""

    method: str = Field(description="Distilled method: its parent's name and +<distillation>: pairflow+dcd.")
    seed: Seed = Field(0, description="Seed of data order, noise and dropout.")
    distillation: AnyDistillation = Field(
        description='Distillation as JSON: {"name": "dcd", "teacher_every": 2000, ...}.'
    )


class ScoreSettings(Settings):
    """Settings of `pairflow score`: what scores depend on besides the model and the rows to score."""

    draws: int = Field(
        128,
        ge=2,
        le=MOST_DRAWS,
        multiple_of=2,
        description="Number of noised copies of each row; it must be even. Four times as many copies at "
        "least halve the standard error.",
    )
    seed: Seed = Field(0, description="Seed of the noise, which depends only on the seed and the row.")


class CorrelateSettings(ModelCorrelation):
    """Settings of `pairflow correlate`: what the total correlation depends on besides model and data."""

    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of the ceiling.")
