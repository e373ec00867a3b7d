"""An experiment: an entry of workflow_config.yaml, from which each step gets its settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import AliasChoices, Discriminator, Field, Tag, field_validator, model_validator

from pairflow.config.methods import BASES, INDEPENDENT, parse_method, tail_revises
from pairflow.config.networks import Network
from pairflow.config.steps import (
    AdoptSettings,
    CorrelateSettings,
    CoverSettings,
    DistillSettings,
    Keys,
    PairSettings,
    PotentialsSettings,
    TrainSettings,
    require_auto,
)
from pairflow.config.training import (
    TAU,
    BaseTraining,
    Distillation,
    Distillations,
    Noise,
    Pool,
    SolveSettings,
    Tau,
    TeachSettings,
    Training,
)
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.kinds.registry import SETTINGS
from pairflow.limits import KEYS, LONGEST_NAME
from pairflow.settings.check import Seed, Settings, nearest
from pairflow.settings.fields import DataSettings, OwnFile
from pairflow.settings.flows import DISCRETE, FLOWS, FlowName
from pairflow.settings.sampling import (
    REPEATED,
    Correlation,
    Evaluation,
    FlowSampleSettings,
    RealDraws,
    SampleSettings,
)

CORRELATED = ("udlm", "pairflow")  # methods whose total correlation is measured by default


def _claim(data: object) -> str:
    """Return the kind of a section `data`, in brackets: `check` leaves such parts out of messages."""
    values = data if isinstance(data, Mapping) else getattr(data, "__dict__", {})
    return f"<{next(settings.kind for settings in SETTINGS if settings.claims(values))}>"


if TYPE_CHECKING:
    Data = DataSettings
else:
    Data = Annotated[
        Union[tuple(Annotated[settings, Tag(f"<{settings.kind}>")] for settings in SETTINGS)],  # noqa: UP007
        Discriminator(_claim),
    ]


class Pairing(Settings):
    """Settings of the methods that pair noise with data, such as Algorithm 1 of PairFlow."""

    steps: int = Field(
        20,
        ge=1,
        le=10_000,
        description="Steps of the pairing (T): from data to source; in a continuous flow, from source to "
        "data.",
    )
    subsets: Literal["auto"] | None = Field(
        None,
        description="`auto`: the method `pairflow` divides the rows at random into subsets of at most "
        "`keys` rows, and pairs each subset separately. So its time grows in proportion to the rows. "
        "Default: one subset. The method `pairflow-sub<P>` always has P subsets.",
    )
    keys: Keys = KEYS
    coverage: bool = Field(False, description="Measure the share of data that the forward velocity reaches.")
    coverage_steps: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Forward steps of the measurement `coverage`. Default: `steps`. Fewer steps reach fewer "
        "rows.",
    )
    pool: Pool = None
    tau: Tau = TAU

    @model_validator(mode="after")
    def _keys_for_automatic_subsets(self) -> "Pairing":
        require_auto(self.subsets, self.keys)
        return self


class CommonExperiment(Settings):
    """An experiment: an entry of workflow_config.yaml, with the settings of all its steps."""

    description: str = Field(description="One line about the experiment, for the report.")
    scale: Literal["paper", "reduced"] = Field(
        description="`paper` if all settings follow the paper's protocol, otherwise `reduced`."
    )
    flow: FlowName = Field(
        DISCRETE.name,
        description="`discrete`: a flow of tokens. `continuous`: a flow of real numbers: of vectors, or of "
        "images, whose pixels count as numbers from -1 to 1.",
    )
    seeds: tuple[Seed, ...] = Field(
        (0,), min_length=1, description="Seeds: everything after the split of the data runs once per seed."
    )
    data: Data = Field(description="The data set and its preprocessing.")
    network: Network = Field(description="The network and its sizes.")
    parent: OwnFile | None = Field(
        None,
        validation_alias=AliasChoices("from", "parent"),
        description="Folder of a trained model, or the name of one that comes with pairflow (`zinc250k`). "
        "The base methods start from its weights (fine-tuning), and the data keep its symbols.",
    )
    noise: Noise = "uniform"
    pairing: Pairing = Pairing()
    pairs: dict[Annotated[str, Field(pattern=r"^[a-z0-9]+$", max_length=LONGEST_NAME)], OwnFile] = Field(
        {},
        description="Files of your own pairs (x0, x1), written by `pairflow.write_pairs`, each under a name. "
        "The method `pairs-<name>` trains on them.",
    )
    training: Training
    distillation: Distillations = Distillations()
    methods: tuple[str, ...] = Field(min_length=1, description="Methods to train and compare.")
    evaluations: dict[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", max_length=LONGEST_NAME)], Evaluation
    ] = Field(min_length=1, description="The protocols by which samples are drawn and measured, by name.")
    correlation: Correlation | None = Field(None, description="How the total correlation is measured.")

    @field_validator("evaluations")
    @classmethod
    def _at_all_temperatures(cls, evaluations: dict[str, Evaluation]) -> dict[str, Evaluation]:
        """Return the evaluations, by name, and after each its copies at the further temperatures and guidance
        weights that it lists. Raise ValueError if another evaluation has the name of a copy."""
        every: dict[str, Evaluation] = {}
        for name, evaluation in evaluations.items():
            for repeated, settings in evaluation.repeated(name).items():
                if evaluations.get(repeated, settings) != settings:
                    [setting] = (
                        f"{varied} {getattr(settings, varied):g}"
                        for varied in REPEATED.values()
                        if getattr(settings, varied) != getattr(evaluation, varied)
                    )
                    raise ValueError(
                        f"'{repeated}' is the name of '{name}' at {setting}; choose another name"
                    )
            every |= {name: evaluation, **evaluation.repeated(name)}
        return every

    def repeated(self, further: str) -> dict[str, dict[str, float]]:
        """Return the values of a repeated setting in each evaluation and its copies: {"main": {"main": 1.0,
        "main_t0_7": 0.7}}.

        `further`, a key of REPEATED such as `temperatures`, is the list of further values. Evaluations
        without this list are left out, and so are copies that differ from their evaluation in another
        setting.
        """
        others = {setting for key, setting in REPEATED.items() if key != further}
        return {
            name: {
                repeated: getattr(settings, REPEATED[further])
                for repeated, settings in {name: evaluation, **evaluation.repeated(name)}.items()
                if all(getattr(settings, key) == getattr(evaluation, key) for key in others)
            }
            for name, evaluation in self.evaluations.items()
            if getattr(evaluation, further)
        }

    def evaluated(self, evaluation: str) -> tuple[str, ...]:
        """Return the methods that an evaluation measures. Raises InputError if its name is unknown."""
        return self._protocol(evaluation).methods or self.methods

    def _protocol(self, evaluation: str) -> Evaluation:
        if evaluation not in self.evaluations:
            raise InputError(f"unknown evaluation '{evaluation}'{nearest(evaluation, self.evaluations)}")
        return self.evaluations[evaluation]

    def _last_distillation(self, method: str) -> Distillation:
        name = parse_method(method).distillations[-1]
        if (settings := getattr(self.distillation, name)) is None:
            raise InputError(f"'{method}' needs the settings distillation.{name}, which are not given")
        return settings

    def trained(self) -> list[str]:
        """Return the names of all models to train: the methods and their parents, parents first."""
        return list(dict.fromkeys(model for name in self.methods for model in parse_method(name).lineage))

    def couplings(self) -> list[str]:
        """Return the names of the couplings that the methods need. Each coupling is a file of pairs."""
        names = (parse_method(name).coupling for name in self.methods)
        return sorted({name for name in names if name})

    def taught(self) -> list[str]:
        """Return the methods, of all `trained` ones, that train on pairs which their parent generates."""
        return [name for name in self.trained() if parse_method(name).on_pairs]

    def correlated(self) -> list[str]:
        """Return the methods whose total correlation is measured."""
        if self.correlation is None:
            return []
        chosen = self.correlation.methods or CORRELATED
        return [name for name in self.methods if name in chosen]

    def own_pairs(self, coupling: str) -> str | None:
        """Return the user's file with the pairs of a coupling; None if the workflow computes them."""
        name = parse_method(coupling).pairs_name
        return self.pairs[name] if name else None

    def pair_settings(self, coupling: str, seed: int) -> PairSettings | AdoptSettings | PotentialsSettings:
        method = parse_method(coupling)
        if BASES[method.base].balanced:
            shared: Json = {"seed": seed, "flow": self.flow, "noise": self.noise}
            return PotentialsSettings(coupling=method.base, tau=self.pairing.tau, **shared)
        if method.pairs_name:
            return AdoptSettings(coupling=coupling, seed=seed)
        steps = self.pairing.steps if BASES[method.base].closed_form else None
        chosen: Json = {"subsets": method.subsets, "noise": self.noise}
        if self.pairing.subsets and steps and method.subsets == 1:
            chosen |= {"subsets": self.pairing.subsets, "keys": self.pairing.keys}
        return PairSettings(coupling=method.base, steps=steps, seed=seed, flow=self.flow, **chosen)

    def cover_settings(self, seed: int) -> CoverSettings:
        return CoverSettings(steps=self.pairing.coverage_steps or self.pairing.steps, seed=seed)

    def train_settings(self, method: str, seed: int) -> TrainSettings:
        parsed = parse_method(method)
        pool = self.pairing.pool if parsed.couple != INDEPENDENT and not parsed.coupling else None
        training = BaseTraining(**self.training.model_dump(), pool=pool)
        noise: Noise = self.noise if BASES[parsed.base].corruption == "uniform" else "uniform"
        return TrainSettings(method=method, seed=seed, network=self.network, training=training, noise=noise)

    def teach_settings(self, method: str, seed: int) -> TeachSettings | SolveSettings:
        how = self._last_distillation(method)
        return how.drawing(method=method, seed=seed, **how.pairs.model_dump())

    def distill_settings(self, method: str, seed: int) -> DistillSettings:
        how = self._last_distillation(method).of_base(parse_method(method).base)
        return DistillSettings(method=method, seed=seed, distillation=how)

    def sample_settings(self, evaluation: str, nfe: int, seed: int) -> SampleSettings | FlowSampleSettings:
        kind = FLOWS[self.flow].sampling
        protocol = self._protocol(evaluation).model_dump(include={*kind.model_fields} - {"nfe"})
        return kind(**protocol, nfe=nfe, seed=seed)

    def count_calls(self, method: str, nfe: int, evaluation: str) -> int:
        """Return how often the network is called for a sample, as pages show it: for each of `nfe` sampling
        steps, and once more at the end if this call can change the sample."""
        known = evaluation in self.evaluations
        settings = self.sample_settings(evaluation, 1, 0) if known else FLOWS[self.flow].sampling(nfe=1)
        return settings.count_calls(nfe, tail_revises(method))

    def correlate_settings(self, seed: int) -> CorrelateSettings:
        if self.correlation is None:
            raise InputError("the experiment has no settings 'correlation'")
        return CorrelateSettings(**self.correlation.model_dump(exclude={"methods"}), seed=seed)

    def real_draws(self, evaluation: str) -> RealDraws:
        """Return settings for drawing as many real rows as an evaluation draws samples. All seeds of an
        experiment share the data, so the first seed is used."""
        protocol = self._protocol(evaluation).model_dump(include={"samples", "trials"})
        return RealDraws(**protocol, seed=self.seeds[0])
