"""What the output of each step depends on besides its input files: the only parameter of its rule."""

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pairflow.config.check import Name, Seed, Settings
from pairflow.config.fields import Share
from pairflow.config.networks import Network
from pairflow.config.sampling import GuidedUpdate, ModelCorrelation, Sampling, Trials
from pairflow.config.training import AnyDistillation, BaseTraining, Flow, SolvedPairs, TeacherPairs
from pairflow.kinds.molecules.settings import LongShare, Notation, Split, Standardisation
from pairflow.limits import MOST_NFE, MOST_SAMPLES


class NewSettings(Standardisation):
    """What an experiment on a user's own file depends on, besides the file."""

    name: Name | None = Field(
        None,
        description="Name of the experiment; none: derived from the file's name.",
    )
    column: str | None = Field(None, description="SMILES column of a CSV file; detected if not given.")
    representation: Notation = "selfies"
    fragments: Literal["keep", "largest", "reject"] = Field(
        "largest", description=Standardisation.model_fields["fragments"].description
    )
    dummies: Literal["keep", "reject"] = Field(
        "reject", description=Standardisation.model_fields["dummies"].description
    )
    metals: Literal["keep", "reject"] = Field(
        "reject", description=Standardisation.model_fields["metals"].description
    )
    split: Split = "random"
    validation_fraction: Share = Field(
        0.05, gt=0, description="Share of the molecules that is held out for validation."
    )
    max_too_long_share: LongShare = 0.001
    hours: float | None = Field(
        None,
        gt=0,
        le=10_000,
        description="Hours that the experiment may take on this machine, to which its training is fitted. If "
        "not given: half an hour, but minutes for short molecules, and a training of fixed length on a GPU.",
    )
    compare: bool = Field(
        False, description="Train the baseline udlm and the distilled pairflow+dcd as well, to compare them."
    )


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


def parse_range(text: str) -> tuple[float, float]:
    """The bounds of a range LOW:HIGH, an open one infinite; ValueError if the text is not such a range."""
    low, colon, high = text.partition(":")
    try:
        bounds = float(low or "-inf"), float(high or "inf")
    except ValueError:
        bounds = math.nan, math.nan
    if bounds[0] > bounds[1]:
        raise ValueError(f"expected the smaller number first, found {text!r}")
    if not colon or not (low or high) or not bounds[0] <= bounds[1]:
        raise ValueError(f"expected a range such as 1:3, 1: or :3, found {text!r}")
    return bounds


def _require_range(text: str | None) -> str | None:
    if text is not None:
        parse_range(text)
    return text


Range = Annotated[str | None, AfterValidator(_require_range)]


class DemandSettings(GuidedUpdate):
    """What a file of molecules on demand depends on, besides the model."""

    count: int = Field(
        ge=1, le=10**8, description="Number of molecules to generate. Switches to on-demand mode."
    )
    nfe: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Number of sampling steps (number of function evaluations, NFE). Optional if --model is "
        "the folder of an experiment, whose metrics then decide.",
    )
    prefix: str | None = Field(
        None,
        min_length=1,
        description="Start of every sample, as SMILES or text, which all updates keep.",
    )
    template: str | None = Field(
        None,
        min_length=1,
        description="Like --prefix, but each `*` leaves one token open.",
    )
    raw: bool = Field(
        False,
        description="Write every sample as the string that the model made, whether or not RDKit can read it.",
    )
    unique: bool = Field(False, description="Drop duplicates.")
    novel: bool = Field(False, description="Drop molecules of the training data set.")
    min_qed: float | None = Field(
        None, ge=0, le=1, description="Smallest drug-likeness (QED, 0 to 1) to keep."
    )
    logp: Range = Field(None, description="Range of logP to keep, such as 1:3, or open: 1: or :3.")
    weight: Range = Field(None, description="Range of the molecular weight in g/mol to keep, such as :450.")
    smarts: tuple[str, ...] = Field(
        (), description="Substructure (SMARTS) that a molecule must have. May be given several times."
    )
    not_smarts: tuple[str, ...] = Field(
        (), description="Substructure (SMARTS) that a molecule must not have. May be given several times."
    )
    properties: bool = Field(
        False,
        description="Add QED, synthetic accessibility, logP, molecular weight in g/mol, Murcko scaffold and "
        "InChIKey.",
    )
    nearest: bool = Field(
        False,
        description="Add the most similar training molecule, its name in your library, and the similarity "
        "(Tanimoto; Morgan fingerprints, radius 2, 2,048 bits).",
    )
    three_d: bool = Field(
        False,
        description="Write coordinates in space and all hydrogens (.sdf), by RDKit's ETKDGv3 and MMFF94. "
        "Drops molecules for which there are none.",
    )
    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of --3d.")

    @model_validator(mode="after")
    def _one_start(self) -> "DemandSettings":
        if self.prefix is not None and self.template is not None:
            raise ValueError("template: does not go with prefix; write the start into the template")
        return self

    @model_validator(mode="after")
    def _raw_strings_are_not_filtered(self) -> "DemandSettings":
        filters = ("unique", "novel", "min_qed", "logp", "weight", "smarts", "not_smarts")
        needing = (*filters, "properties", "nearest", "three_d")
        given = [name for name in needing if getattr(self, name) not in (None, False, ())]
        if self.raw and given:
            raise ValueError(f"raw: does not go with {given[0]}, which needs valid molecules")
        return self


class CorrelateSettings(ModelCorrelation):
    """What a model's total correlation depends on, besides the model and the training rows."""

    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of the ceiling.")
