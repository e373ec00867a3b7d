"""A trained model: its network and everything needed to use it. RDKit is not imported."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from pairflow import networks, rng
from pairflow.artifacts import Metadata, digest
from pairflow.config import (
    BaseTraining,
    CorrelateSettings,
    DemandSettings,
    DistillSettings,
    SampleSettings,
    TeachSettings,
    TrainSettings,
    parse_method,
)
from pairflow.data.classes import Properties
from pairflow.errors import InputError
from pairflow.files import Json, require_regular
from pairflow.flow.corruption import Corruption, corruption_of
from pairflow.flow.grammar import Grammar
from pairflow.flow.plan import SamplingPlan
from pairflow.settings.sampling import GuidedUpdate, Update
from pairflow.training.model_files import (
    FREQUENCIES,
    Description,
    ModelFolder,
    read_description,
    read_frequencies,
    read_weights,
    write_description,
)
from pairflow.training.objectives import random_generator

VELOCITY = "velocity"  # the loss of continuous flows, and what their networks predict

MOST_ROWS, MOST_NUMBERS = 4096, 2**20  # in a batch of a continuous flow; others change the samples of a seed
FIRST_ROWS = 64  # size of the first batch of a stream of samples

Weights = Literal["ema", "raw"]
Draws = SampleSettings | DemandSettings | TeachSettings | CorrelateSettings


@dataclass(frozen=True, kw_only=True)
class Model(ModelFolder, ABC):
    """A network that turns sources (rows of noise) into data rows, with its settings and metadata.

    Attributes:
        network: the network, `network_settings` its settings.
        training: the settings of the base method's training, also in distilled models.
        distillation: the settings of the distillation, if there was one.
        length: N, the number of tokens or numbers in a row.
        vocabulary_size: K, the number of symbols; in a continuous flow the grey levels of images, or None.
        mask: the mask symbol of the vocabulary, or None.
        frequencies: the probabilities (N, K) of the symbols of noise by frequency, or None.
        prediction: what the network predicts: "leave_one_out", "posterior" or "velocity".
        shape: (C, H, W) of images.
        vocabulary, data, known, weights: hashes of these parts or files.
        inputs: hashes of the files that the model was made from.
        condition: the properties of a conditional model.
        grammar: which rows fit together, if that is known (`generate.choice.with_grammar`).
        folder: the folder that the model was loaded from.
    """

    network: nn.Module
    network_settings: Json
    method: str
    seed: int = 0
    training: BaseTraining | None = None
    distillation: Json | None = None
    length: int
    vocabulary_size: int | None
    mask: int | None = None
    frequencies: Tensor | None = None
    prediction: str
    vocabulary: str | None
    shape: list[int] | None = None
    data: str | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    known: str | None = None
    condition: Properties | None = None
    weights: str | None = None
    grammar: Grammar | None = None
    folder: Path = Path()

    flow: ClassVar[str]

    @staticmethod
    def create(
        settings: TrainSettings, metadata: Metadata, device: torch.device, **attributes: Any
    ) -> "Model":
        """Return an untrained model for rows with this metadata; its weights are a function of the seed.

        `attributes` are further attributes of `Model`. Raises InputError if the method does not have the
        loss.
        """
        loss, kind = settings.training.loss, model_class(settings.training.loss)
        learnt = kind.predictions(settings.method, metadata.vocabulary_size, metadata.mask)
        if loss not in learnt:
            losses = " or ".join(sorted(learnt)) or "none"
            raise InputError(f"training.loss: {loss} is no loss of {settings.method}; it has {losses}")
        model = kind(
            network=nn.Identity(),
            network_settings=settings.network.model_dump(),
            method=settings.method,
            seed=settings.seed,
            training=settings.training,
            length=metadata.length or 0,
            vocabulary_size=metadata.vocabulary_size,
            mask=metadata.mask,
            prediction=learnt[loss],
            vocabulary=metadata.vocabulary,
            shape=metadata.shape,
            data=metadata.data,
            condition=Properties.from_facts(metadata.condition),
            **attributes,
        )
        # Weights are drawn on the CPU, so that a seed gives the same ones on every device.
        torch.manual_seed(rng.stream_seed(settings.seed, "weights"))
        return replace(model, network=model.build(model.network_settings).to(device))

    @staticmethod
    def load(folder: Path, *, which: Weights = "ema", device: str | torch.device = "cpu") -> "Model":
        """Return the model in a folder, ready to evaluate, with its averaged ("ema") or "raw" weights. Raises
        InputError if its files are missing, altered, or do not fit together."""
        weights, description = Path(folder) / "model.safetensors", Path(folder) / "model.json"
        facts = read_description(description)
        described = Description(**facts)
        require_regular(weights)
        if digest(weights) != facts["weights"]:
            raise InputError(f"{weights}: these are not the weights that {description} describes")
        kind = model_class(described.prediction)
        known = kind.predictions(described.method, described.vocabulary_size, described.mask)
        if described.prediction not in known.values():
            raise InputError(f"{description}: prediction: {described.method} has no '{described.prediction}'")
        pi = None
        if described.noise:
            pi = read_frequencies(weights, described).to(device)
        model = kind(
            network=nn.Identity(),
            network_settings=facts["network"],
            frequencies=pi,
            training=described.training,
            folder=Path(folder),
            condition=Properties.from_facts(facts.get("condition")),
            **{key: facts[key] for key in _STORED if key in facts},
        )
        network_settings = described.network.model_dump()
        # Only shapes are computed here: no memory is allocated before the file is known to fit.
        with torch.device("meta"), networks.Uninitialised():
            tensors = model.build(network_settings).state_dict().items()
            shapes = {f"{which}.{name}": [*tensor.shape] for name, tensor in tensors}
        loaded = read_weights(weights, f"{which}.", shapes)
        network = model.build(network_settings).to(device)
        network.load_state_dict(loaded)
        model = replace(model, network=network.eval())
        if not model.largest_answer().isfinite().all():
            raise InputError(f"{weights}: the network gives no finite numbers: its training diverged")
        return model

    @classmethod
    @abstractmethod
    def predictions(cls, method: str, symbols: int | None, mask: int | None) -> dict[str, str]:
        """Return a dict from each loss of `method` to what its network predicts; empty if it is of the other
        flow. `symbols` is K, and `mask` the mask symbol."""

    @abstractmethod
    def build(self, settings: Json) -> nn.Module:
        """Return a new network with these settings, for the rows of this model."""

    @abstractmethod
    def warm_up(self) -> Tensor:
        """Return the network's output for a row of zeros; so libraries set up before a time is measured."""

    def largest_answer(self) -> Tensor:
        """Return the output for a row of zeros, which is not finite if a training diverged."""
        return self.warm_up()

    @property
    @abstractmethod
    def batch_rows(self) -> int:
        """Rows per batch of samples. A change of this number changes the samples of a seed."""

    def save(self, weights: Path, description: Path, **versions: nn.Module) -> None:
        """Write the networks `versions`, named `raw` and `ema`, and the frequencies of the noise to the file
        `weights`, and model.json to `description`."""
        tensors = {
            f"{prefix}.{name}": tensor.detach().contiguous().cpu()
            for prefix, network in versions.items()
            for name, tensor in network.state_dict().items()
        }
        if self.frequencies is not None:
            tensors[FREQUENCIES] = self.frequencies.cpu()
        save_file(tensors, weights)
        write_description(description, self.describe(), weights)

    def describe(self) -> Json:
        """Return the content of model.json, without the hash of the weights."""
        optional = ("distillation", "known", "condition", "noise")
        facts = {key: getattr(self, key) for key in _STORED if key != "weights"}
        facts["condition"] = self.condition_facts
        facts["noise"] = None if self.frequencies is None else "frequencies"
        return {
            **{key: value for key, value in facts.items() if value is not None or key not in optional},
            "network": self.network_settings,
            "training": self.training and self.training.model_dump(mode="json"),
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
        }

    def distilled(self, settings: DistillSettings, inputs: dict[str, str]) -> Self:
        """Return a copy of this model, the parent, as the start of a distillation with these settings. Its
        `inputs` are the hashes of the parent's weights and, as given in `inputs`, of the files of rows."""
        named = settings.model_dump(mode="json")
        inputs = {"parent": str(self.weights), **inputs}
        return replace(self, **named, training=self.base_training, inputs=inputs, weights=None, folder=Path())

    @property
    def base_training(self) -> BaseTraining:
        """The settings of the base method's training; InputError if model.json lacks them."""
        if self.training is None:
            raise InputError(f"{self.folder}/model.json: no settings of the training, which distilling needs")
        return self.training

    @property
    def condition_facts(self) -> Json | list[Json] | None:
        """The properties of a conditional model as JSON; None if it is unconditional."""
        return self.condition.facts if self.condition else None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of classes of each property of a conditional model; empty if it is unconditional."""
        return self.condition.sizes if self.condition else ()

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    def metadata(self, kind: str, parameters: Json, **more: Any) -> Metadata:
        """Return the metadata of a table of this model's samples or pairs (`kind`), made with these
        parameters. `more` are further fields of `Metadata`."""
        shared = ("length", "vocabulary_size", "vocabulary", "shape", "data")
        facts = {key: getattr(self, key) for key in shared} | {"condition": self.condition_facts}
        return Metadata(
            kind=kind, parameters=parameters, inputs={"model": str(self.weights)}, **facts, **more
        )


@dataclass(frozen=True, kw_only=True)
class DiscreteModel(Model):
    """A denoiser of token rows: N tokens of K symbols."""

    vocabulary_size: int

    flow: ClassVar[str] = "discrete"

    @classmethod
    def predictions(cls, method: str, symbols: int | None, mask: int | None) -> dict[str, str]:
        if cls.flow not in parse_method(method).flows:
            return {}
        return {name: loss.learns for name, loss in corruption_of(method, symbols, mask).losses.items()}

    def build(self, settings: Json) -> nn.Module:
        corruption = self.corruption
        symbols, mask = corruption.symbols, corruption.mask
        sizes: Json = {"length": self.length, "vocabulary_size": symbols, "classes": self.sizes}
        return networks.build(settings, shape=self.shape, mask=mask, **sizes)

    @cached_property
    def corruption(self) -> Corruption:
        """The corruption process of the method, for this vocabulary."""
        return corruption_of(self.method, self.vocabulary_size, self.mask, self.frequencies)

    @torch.no_grad()
    def warm_up(self) -> Tensor:
        row = torch.zeros((1, self.length), dtype=torch.long, device=self.device)
        return self.network(row, torch.zeros(1, device=self.device))

    def largest_answer(self) -> Tensor:
        return self.warm_up().amax(dim=-1)  # the logit of a mask, which is never sampled, is -inf

    @property
    def batch_rows(self) -> int:
        return self.corruption.rows_at_once(self.length)

    def labels(self, conditions: tuple[str, ...], first: int, rows: int) -> Tensor:
        """Return the labels (rows,), or (rows, P) of P properties, that samples are asked to have.
        `conditions` are words such as "qed=high", and `first` is the number of the first sample. Raises
        InputError if the model was not trained for them."""
        if self.condition is None:
            text = f"condition: the model in {self.folder} was trained without data.condition"
            raise InputError(f"{text} (for molecules see `pairflow new --condition`)")
        return torch.tensor(self.condition.targets(conditions, first, rows), device=self.device)

    def plan(self, settings: Draws, nfe: int, rows: int, first: int = 0) -> SamplingPlan:
        """Return the plan of `rows` samples in `nfe` steps; `first` is the number of the first sample.

        `settings` has the sampler, the temperature and so on; the plan's labels are for its `condition`.
        Raises InputError if the model was not trained for this condition, or has no grammar although the
        settings ask for one.
        """
        update = settings.model_dump(include={*Update.model_fields} - {"grammar"})
        if isinstance(settings, Update) and settings.grammar:
            if self.grammar is None:
                raise InputError(f"grammar: only for molecules in groups; {self.folder} has others")
            update["grammar"] = self.grammar
        if isinstance(settings, GuidedUpdate) and settings.condition:
            update["guidance"] = settings.guidance
            update["labels"] = self.labels(settings.condition, first, rows)
        return SamplingPlan(steps=nfe, prediction=self.prediction, **update)

    def draw(
        self,
        plan: SamplingPlan,
        rows: int,
        seed: int,
        *stream: str | int,
        repeats: int = 1,
        sources: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw source states and samples, both (rows * repeats, N) on the CPU, `repeats` for each source.

        All models with the same corruption, and all plans, start from the same source states, by `seed` and
        the `stream`, the name of the random numbers; or they are given as `sources` (rows, N). Raises
        InputError if the plan does not fit.
        """
        generator = random_generator(self.device, seed, *stream)
        x0 = self.corruption.source((rows, self.length), generator, self.device)
        x0 = (x0 if sources is None else sources.to(self.device)).repeat_interleave(repeats, dim=0)
        return x0.cpu(), self.corruption.sample(self.network, x0, plan, generator).cpu()

    def rows_without_end(self, settings: Draws, nfe: int, given: Tensor | None = None) -> Iterator[list[int]]:
        """Yield an endless stream of samples, as rows of N tokens, drawn as `settings` say in `nfe` steps.

        The first batches are small, so that samples come soon. All samples keep the `given` symbols (N,); of
        given rows (R, N), sample number i keeps row i mod R. -1 marks positions that are sampled.
        """
        rows = 0
        for batch in count():
            size = min(self.batch_rows, max(FIRST_ROWS, rows))
            starts = given
            if given is not None and given.ndim == 2:
                starts = given[torch.arange(rows, rows + size) % len(given)]
            plan = replace(self.plan(settings, nfe, size), given=starts)
            _, tokens = self.draw(plan, size, settings.seed, "demand", batch)
            yield from tokens.tolist()
            rows += size


@dataclass(frozen=True, kw_only=True)
class VelocityModel(Model):
    """A velocity network for rows of N numbers. `vocabulary_size` is the number of grey levels of images."""

    flow: ClassVar[str] = "continuous"

    @classmethod
    def predictions(cls, method: str, symbols: int | None, mask: int | None) -> dict[str, str]:
        return {VELOCITY: VELOCITY} if cls.flow in parse_method(method).flows else {}

    def build(self, settings: Json) -> nn.Module:
        return networks.build_velocity(settings, self.row_shape)

    @property
    def row_shape(self) -> list[int]:
        """The shape of a row in the network's input."""
        return self.shape or [self.length]

    @torch.no_grad()
    def warm_up(self) -> Tensor:
        row = torch.zeros((1, *self.row_shape), device=self.device)
        return self.network(row, torch.zeros(1, device=self.device))

    @property
    def batch_rows(self) -> int:
        rows = min(MOST_ROWS, max(1, MOST_NUMBERS // self.length))
        return 1 << (rows.bit_length() - 1)


_STORED = (  # attributes that model.json has under the same name, unchanged
    *("method", "seed", "distillation", "length", "vocabulary_size", "mask", "prediction", "vocabulary"),
    *("shape", "data", "inputs", "known", "weights"),
)


def model_class(learnt: str) -> type[Model]:
    """Return the class of a model whose loss, or whose prediction, is `learnt`."""
    return VelocityModel if learnt == VELOCITY else DiscreteModel
