"""A trained model: its network and everything that is needed to use it. Nothing here needs RDKit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pairflow import networks, rng
from pairflow.artifacts import Metadata, digest
from pairflow.config import (
    BaseTraining,
    DistillSettings,
    TrainSettings,
    parse_method,
)
from pairflow.errors import InputError
from pairflow.flow.corruption import CORRUPTIONS, Corruption
from pairflow.data.classes import Classes
from pairflow.training.model_files import (
    Description,
    read_description,
    read_vocabulary,
    read_weights,
    write_description,
)
from pairflow.training.options import KNOWN, VOCABULARY

VELOCITY = "velocity"  # the loss of continuous flows, and what their networks predict

MOST_ROWS, MOST_NUMBERS = 4096, 2**20  # of a continuous flow, walked together
FIRST_ROWS = 64  # drawn at first where rows are wanted one after another

Weights = Literal["ema", "raw"]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A denoiser of token rows (N tokens of K symbols), or in a continuous flow a velocity of rows of N
    numbers, and what it was trained with.

    A distilled model has the `training` of its base method, and a `distillation` of its own. `shape` is
    (C, H, W) for images; `vocabulary`, `data`, `known` and `weights` are hashes; `inputs` are the hashes of
    the files that it was made from; `folder` is where it was loaded from. `condition` are the classes that a
    conditional model knows.
    """

    network: nn.Module
    network_settings: dict[str, Any]
    method: str
    seed: int = 0
    training: BaseTraining | None = None
    distillation: dict[str, Any] | None = None
    length: int
    vocabulary_size: int | None  # None for vectors
    vocabulary: str | None
    mask: int | None
    shape: list[int] | None = None
    data: str | None = None
    prediction: str
    inputs: dict[str, str] = field(default_factory=dict)
    known: str | None = None
    condition: Classes | None = None
    weights: str | None = None
    folder: Path = Path()

    @classmethod
    def create(
        cls, settings: TrainSettings, metadata: Metadata, device: torch.device, **attributes: Any
    ) -> Self:
        """An untrained model of rows with these metadata; its weights are a function of the seed."""
        rows = (metadata.length or 0, metadata.vocabulary_size, metadata.mask)
        prediction = _prediction(settings, *rows[1:])
        network_settings = settings.network.model_dump()
        torch.manual_seed(rng.stream_seed(settings.seed, "weights"))
        condition = None if metadata.condition is None else Classes(**metadata.condition)
        classes = _classes(condition)
        network = _build(network_settings, settings.method, prediction, metadata.shape, *rows, classes)
        return cls(
            network=network.to(device),
            network_settings=network_settings,
            method=settings.method,
            seed=settings.seed,
            training=settings.training,
            length=rows[0],
            vocabulary_size=metadata.vocabulary_size,
            vocabulary=metadata.vocabulary,
            mask=metadata.mask,
            shape=metadata.shape,
            data=metadata.data,
            prediction=prediction,
            condition=condition,
            **attributes,
        )

    @classmethod
    def load(cls, folder: Path, *, which: Weights = "ema", device: str | torch.device = "cpu") -> Self:
        """The model in a folder, its network in evaluation mode; InputError if the files do not fit."""
        weights, description = Path(folder) / "model.safetensors", Path(folder) / "model.json"
        facts = read_description(description)
        told = Description(**facts)
        if not weights.is_file():
            raise InputError(f"{weights}: no such file")
        if digest(weights) != facts["weights"]:
            raise InputError(f"{weights}: these are not the weights that {description} describes")
        rows = (told.length, told.vocabulary_size, told.mask)
        if told.prediction not in _predictions(told.method, *rows[1:]):
            raise InputError(f"{description}: prediction: {told.method} has no '{told.prediction}'")
        network_settings = told.network.model_dump()
        kind = (told.method, told.prediction, facts.get("shape"), *rows, _classes(told.condition))
        build = partial(_build, network_settings, *kind)
        # No memory is used before the weights are known to fit.
        with torch.device("meta"), _Uninitialised():
            shapes = {f"{which}.{name}": [*tensor.shape] for name, tensor in build().state_dict().items()}
        tensors = read_weights(weights, f"{which}.", shapes)
        network = build().to(device)
        network.load_state_dict(tensors)
        model = cls(
            network=network.eval(),
            network_settings=facts["network"],
            condition=told.condition,
            training=told.training,
            folder=Path(folder),
            **{key: facts[key] for key in _PLAIN if key in facts},
        )
        answer = model.warm_up()
        if not model.continuous:
            answer = answer.amax(dim=-1)  # logits: that of a mask, which no sample has, is -inf
        if not answer.isfinite().all():
            raise InputError(f"{weights}: the network gives no finite numbers: its training diverged")
        return model

    def save(self, weights: Path, description: Path, **versions: nn.Module) -> None:
        """Write the description, and the weights of its versions as `load` calls them: `raw`, `ema`."""
        tensors = {
            f"{prefix}.{name}": tensor.detach().contiguous().cpu()
            for prefix, network in versions.items()
            for name, tensor in network.state_dict().items()
        }
        save_file(tensors, weights)
        write_description(description, self.describe(), weights)

    def describe(self) -> dict[str, Any]:
        """The attributes as JSON, without the hash of the weights."""
        optional = ("distillation", "known")
        facts = {key: getattr(self, key) for key in _PLAIN if key != "weights"}
        return {
            **{key: value for key, value in facts.items() if value is not None or key not in optional},
            **({"condition": self.condition.model_dump(mode="json")} if self.condition else {}),
            "network": self.network_settings,
            "training": self.training and self.training.model_dump(mode="json"),
            "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
        }

    def distilled(self, settings: DistillSettings, inputs: dict[str, str]) -> Self:
        """This model as the start of one that is distilled from it."""
        named = settings.model_dump(mode="json")
        inputs = {"parent": str(self.weights), **inputs}
        return replace(self, **named, training=self.base_training, inputs=inputs, weights=None, folder=Path())

    @property
    def continuous(self) -> bool:
        """Whether it is a velocity of numbers, and no denoiser of tokens."""
        return self.prediction == VELOCITY

    @property
    def corruption(self) -> Corruption:
        """The corruption process of the method, for this vocabulary."""
        return _corruption(self.method, self.vocabulary_size, self.mask)

    @property
    def base_training(self) -> BaseTraining:
        """The settings of the base method's training; InputError if model.json lacks them."""
        if self.training is None:
            raise InputError(f"{self.folder}/model.json: no settings of the training, which distilling needs")
        return self.training

    @property
    def classes(self) -> int:
        """The number of classes that a conditional model knows; 0 if it is unconditional."""
        return _classes(self.condition)

    def label(self, condition: str) -> int:
        """The label of `property=class`; InputError if the model was not trained for it."""
        if self.condition is None:
            raise InputError(
                f"condition: the model in {self.folder} was trained without data.condition, so it knows none"
            )
        return self.condition.parse(condition)

    @property
    def dimensions(self) -> tuple[int, int]:
        """(N, K) of the token rows that it makes; InputError if it makes vectors."""
        if self.vocabulary_size is None:
            raise InputError(f"{self.folder}: a model of vectors, expected one of token rows")
        return self.length, self.vocabulary_size

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    @torch.no_grad()
    def warm_up(self) -> Tensor:
        """What the network says of a row of zeros. What the libraries set up for it is not timed later."""
        row = torch.zeros((1, self.length), dtype=torch.long, device=self.device)
        if self.continuous:
            row = row.float().reshape(1, *(self.shape or [self.length]))
        return self.network(row, torch.zeros(1, device=self.device))

    @property
    def batch_rows(self) -> int:
        """The number of rows that are sampled together: part of the random streams."""
        if self.continuous:
            rows = min(MOST_ROWS, max(1, MOST_NUMBERS // self.length))
            return 1 << (rows.bit_length() - 1)
        return self.corruption.rows_at_once(self.length)

    def draw(
        self,
        settings: Any,
        nfe: int,
        rows: int,
        *labels: str | int,
        repeats: int = 1,
        given: Tensor | None = None,
        classes: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Source states and the samples drawn from them, both (rows * repeats, N) on the CPU.

        They are a function of `settings.seed` and the `labels`; the sampler's other settings are those that
        `settings` has (`sampler`, `conversion`, `greedy_tail`, `temperature`). Every model with the same
        corruption, and every `nfe`, starts from the same `rows` source states, each repeated `repeats` times.
        `given` symbols (N,) are kept, as `flow.samplers` explains. With `settings.condition` they are of that
        class, guided by `settings.guidance`; InputError if the model does not know it. Or `classes` (rows,)
        has the label of each row.
        """
        seed = rng.stream_seed(settings.seed, *labels)
        generator = torch.Generator(self.device).manual_seed(seed)
        corruption = self.corruption
        x0 = corruption.source((rows, self.length), generator, self.device)
        x0 = x0.repeat_interleave(repeats, dim=0)
        update = settings.model_dump(include={"sampler", "conversion", "greedy_tail", "temperature"})
        sampling = {**update, "steps": nfe, "prediction": self.prediction, "generator": generator}
        if given is not None:
            sampling["given"] = given.to(self.device)
        if classes is not None:
            sampling["label"] = classes.repeat_interleave(repeats).to(self.device)
        elif condition := getattr(settings, "condition", None):
            label = torch.tensor(self.label(condition), device=self.device)
            sampling |= {"label": label, "guidance": settings.guidance}
        return x0.cpu(), corruption.sample(self.network, x0, **sampling).cpu()

    def rows_without_end(self, settings: Any, nfe: int, given: Tensor | None = None) -> Iterator[list[int]]:
        """Rows of N tokens from `draw`. The first batches are small, so that a few rows come soon."""
        rows = 0
        for batch in count():
            size = min(self.batch_rows, max(FIRST_ROWS, rows))
            _, tokens = self.draw(settings, nfe, size, "demand", batch, given=given)
            yield from tokens.tolist()
            rows += size

    def metadata(self, kind: str, parameters: dict[str, Any], **more: Any) -> Metadata:
        """The metadata of token rows that were drawn from this model with these parameters."""
        shared = ("length", "vocabulary_size", "vocabulary", "shape", "data")
        facts = {key: getattr(self, key) for key in shared}
        facts["condition"] = self.condition and self.condition.model_dump(mode="json")
        return Metadata(
            kind=kind, parameters=parameters, inputs={"model": str(self.weights)}, **facts, **more
        )

    def vocabulary_file(self) -> Path:
        """The path of vocabulary.json; InputError if it is missing or another model's."""
        path = self.folder / VOCABULARY
        if not path.is_file():
            raise InputError(
                f"{path}: no such file; copy it from the folder of the data that the model was trained on"
            )
        read_vocabulary(path, self.vocabulary, self.vocabulary_size, self.folder / "model.json")
        return path

    def known_file(self) -> Path:
        """The path of known.parquet; InputError if the model has none, or if it is missing or altered."""
        path, description = self.folder / KNOWN, self.folder / "model.json"
        if self.known is None:
            raise InputError(
                f"{description}: the model was saved without {KNOWN}, so --novel is not available"
            )
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        if digest(path) != self.known:
            raise InputError(f"{path}: these are not the known molecules that {description} describes")
        return path

    def stored_files(self) -> dict[str, bytes]:
        """The files beside the weights, by name, for a model that is distilled from this one."""
        files = {}
        if (self.folder / VOCABULARY).is_file():
            files[VOCABULARY] = self.vocabulary_file().read_bytes()
        if self.known is not None:
            files[KNOWN] = self.known_file().read_bytes()
        return files


_PLAIN = (  # attributes that model.json has under the same name, as they are
    *("method", "seed", "distillation", "length", "vocabulary_size", "vocabulary", "mask", "shape", "data"),
    *("prediction", "inputs", "known", "weights"),
)


def _corruption(method: str, vocabulary_size: int | None, mask: int | None) -> Corruption:
    corruption = CORRUPTIONS[parse_method(method).corruption]
    if vocabulary_size is None:
        raise InputError(f"'{method}' as a discrete flow needs token rows; expected a number of symbols (K)")
    return corruption(vocabulary_size, mask)


def _prediction(settings: TrainSettings, vocabulary_size: int | None, mask: int | None) -> str:
    """What a network learns by the loss of these settings."""
    method, loss = settings.method, settings.training.loss
    if loss != VELOCITY:
        return _corruption(method, vocabulary_size, mask).losses[loss].learns
    if "continuous" not in parse_method(method).flows:
        raise InputError(f"training.loss: {method} has no continuous flow, whose loss {VELOCITY} is")
    return VELOCITY


def _predictions(method: str, vocabulary_size: int | None, mask: int | None) -> set[str]:
    """What the networks of a method may have learnt."""
    flows = parse_method(method).flows
    learnt = {VELOCITY} if "continuous" in flows else set()
    if "discrete" in flows and vocabulary_size is not None:
        learnt |= {loss.learns for loss in _corruption(method, vocabulary_size, mask).losses.values()}
    return learnt


def _build(
    settings: dict[str, Any],
    method: str,
    prediction: str,
    shape: Sequence[int] | None,
    length: int,
    vocabulary_size: int | None,
    mask: int | None,
    classes: int,
) -> nn.Module:
    if prediction == VELOCITY:
        return networks.build_velocity(settings, shape or [length])
    corruption = _corruption(method, vocabulary_size, mask)
    symbols, mask = corruption.symbols, corruption.mask
    sizes: dict[str, Any] = {"length": length, "vocabulary_size": symbols, "classes": classes}
    return networks.build(settings, shape=shape, mask=mask, **sizes)


def _classes(condition: Classes | None) -> int:
    return len(condition.names) if condition else 0


class _Uninitialised(TorchFunctionMode):
    """Leaves out the initial values of parameters, whose computation on the device "meta" takes seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == nn.init.__name__:
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))
