"""The folder of a trained model, and the checks when it is read. torch is not imported here.

- `model.safetensors`: the weights, raw and averaged (published models: averaged only).
  With noise by frequency, also its probabilities.
- `model.json`: attributes of `Model`, and a hash of the weights.
- `log.parquet`: the losses of its training.
- `vocabulary.json`: the vocabulary of its data set; model.json has the hash of the canonical JSON.
- `known.parquet`: hashes of its data set's molecules, if it has any; model.json has the file's SHA-256.

A model of a user's token rows may lack its vocabulary, and a published model lacks the log.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator
from safetensors import SafetensorError, safe_open

from pairflow import published
from pairflow.artifacts import Metadata, digest, read_object, read_table
from pairflow.config import BaseTraining, Settings, check, nearest
from pairflow.config.networks import NETWORKS, Network
from pairflow.data.classes import Facts
from pairflow.errors import InputError
from pairflow.files import Json, require_regular
from pairflow.limits import MAX_VOCABULARY
from pairflow.training.options import KNOWN, VOCABULARY

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
FREQUENCIES = "noise.frequencies"  # the tensor pi (N, K) of a model with noise by frequency
FLOATS = ("F16", "BF16", "F32", "F64")  # the types of weights, as safetensors calls them

_Size = Annotated[int, Field(ge=1, le=2**20, strict=True)]


class Description(Settings, extra="ignore"):
    """The content of a model.json; its keys are attributes of `training.model.Model`."""

    method: str
    seed: int = Field(0, ge=0, strict=True)
    network: Network
    training: BaseTraining | None = None
    distillation: Json | None = None
    length: _Size
    vocabulary_size: int | None = Field(ge=2, le=MAX_VOCABULARY, strict=True)
    vocabulary: str | None
    mask: int | None = Field(ge=0, strict=True)
    noise: Literal["frequencies"] | None = None
    shape: tuple[_Size, _Size, _Size] | None = None
    data: str | None = None
    prediction: Literal["leave_one_out", "posterior", "velocity"]
    inputs: dict[str, str] = Field(default_factory=dict)
    known: str | None = None
    condition: Facts | None = None
    weights: str

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.shape is not None and math.prod(self.shape) != self.length:
            raise ValueError(f"shape: expected C, H, W of {self.length} pixel values, found {[*self.shape]}")
        if self.mask is not None and self.mask >= (self.vocabulary_size or 0):
            raise ValueError(f"mask: expected one of {self.vocabulary_size} symbols, found {self.mask}")
        return self


class Symbols(Settings, extra="ignore"):
    """The part of a vocabulary.json that all kinds of data share: the kind, and its symbols, if any."""

    kind: str
    tokens: tuple[str, ...] | None = None


class ModelFolder:
    """Finds and checks vocabulary.json and known.parquet in a model's folder; `Model` sets the attributes."""

    folder: Path
    vocabulary: str | None
    vocabulary_size: int | None
    known: str | None

    def vocabulary_file(self) -> Path:
        """Return the path of vocabulary.json; InputError if it is missing or belongs to another model."""
        path = self.folder / VOCABULARY
        if not path.is_file():
            raise InputError(
                f"{path}: no such file; copy it from the folder of the data that the model was trained on"
            )
        read_vocabulary(path, self.vocabulary, self.vocabulary_size, self.folder / "model.json")
        return path

    def known_file(self) -> Path:
        """Return the path of known.parquet; InputError if the model has none, or it is missing or altered."""
        path, description = self.folder / KNOWN, self.folder / "model.json"
        if self.known is None:
            raise InputError(
                f"{description}: the model was saved without {KNOWN}, so --novel is not available"
            )
        require_regular(path)
        if digest(path) != self.known:
            raise InputError(f"{path}: these are not the known molecules that {description} describes")
        return path

    def stored_files(self) -> dict[str, bytes]:
        """Return the data set's files (name -> content); a model distilled from this one gets them, too."""
        files = {}
        if (self.folder / VOCABULARY).is_file():
            files[VOCABULARY] = self.vocabulary_file().read_bytes()
        if self.known is not None:
            files[KNOWN] = self.known_file().read_bytes()
        return files


def files_of_data(
    vocabulary: Path | None, known: Path | None, data: Path, metadata: Metadata
) -> dict[str, bytes]:
    """Return the data set's files to store with a new model: a dict from name to content.

    `metadata` is the metadata of `data`, the training rows. Raises InputError unless the files belong to it.
    """
    files = {}
    if vocabulary:
        files[VOCABULARY] = read_vocabulary(vocabulary, metadata.vocabulary, metadata.vocabulary_size, data)
    if known:
        _, origin = read_table(known, "known molecules")
        origin.require_same_vocabulary(metadata.vocabulary, known, data)
        origin.require_same_data(metadata.data, known, data)
        files[KNOWN] = known.read_bytes()
    return files


def known_digest(files: dict[str, bytes]) -> str | None:
    """Return the SHA-256 of known.parquet among a model's files, for its attribute `known`."""
    return hashlib.sha256(files[KNOWN]).hexdigest() if KNOWN in files else None


def write_description(path: Path, facts: Json, weights: Path) -> None:
    """Write a model.json with these facts and the hash of the weights."""
    facts = {"format": FORMAT, **facts, "weights": digest(weights)}
    facts["checksum"] = _checksum(facts)
    path.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


def read_description(path: Path) -> Json:
    """Return the content of a model.json, checked by `Description`.

    Raises InputError if it is missing, altered, of another version, or not a model description.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file{_suggestions(path)}")
    try:
        facts = read_object(path)
        version = facts["format"]
    except (ValueError, KeyError) as error:
        raise InputError(f"{path}: not a model description of pairflow: {error}") from error
    if version != FORMAT:
        raise InputError(f"{path}: format {version}, this version reads {FORMAT}")
    if facts.pop("checksum", None) != _checksum(facts):
        raise InputError(f"{path}: altered since it was written")
    name = network.get("name") if isinstance(network := facts.get("network"), dict) else None
    if isinstance(name, str) and name not in NETWORKS:
        raise InputError(
            f"{path}: network: unknown name '{name}': known are {', '.join(NETWORKS)}; a class of your own "
            "with this name works only in Python: pairflow.load(..., network=<the class>)"
        )
    check(Description, facts, path)
    return facts


def _suggestions(description: Path) -> str:
    """Return the end of a message about a missing model: a similar name, and the names of models near it.

    These are the models in the folder of `description`, which may be an experiment's. If there are none, they
    are the models and experiments beside this folder, or else the models that come with pairflow.
    """
    folder = description.parent
    patterns = ("*/model.json", "seed*/models/*/model.json")
    inside = [str(path.parent.relative_to(folder)) for pattern in patterns for path in folder.glob(pattern)]
    siblings = [
        path.parent.name
        for name in ("model.json", "metrics.parquet")
        for path in folder.parent.glob(f"*/{name}")
    ]
    names, where = sorted(inside or siblings), f"{folder if inside else folder.parent} has"
    near = nearest(folder.name, [*names, *published.names()])
    if not names and not near and len(folder.parts) == 1:
        names, where = published.names(), "with pairflow come"
    return near + (f": {where} {', '.join(names)}" if names else "")


def _checksum(facts: Json) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def read_weights(path: Path, prefix: str, shapes: dict[str, list[int]]) -> dict[str, "Tensor"]:
    """Return the tensors in a file whose names begin with `prefix`, as a dict from names without it.

    Raises InputError unless these names have exactly the shapes in `shapes`, and all weights are finite
    floats.
    """
    try:
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 (not iterable)
            slices = {name: file.get_slice(name) for name in names}
            stored = {name: part.get_shape() for name, part in slices.items()}
            if stored != shapes:
                name = next(key for key in {**shapes, **stored} if stored.get(key) != shapes.get(key))
                raise InputError(
                    f"{path}: does not fit the network that its description names: "
                    f"{name} is {stored.get(name, 'missing')} there, expected {shapes.get(name, 'nothing')}; "
                    f"train the model again"
                )
            for name, part in slices.items():
                if part.get_dtype() not in FLOATS:
                    expected = ", ".join(FLOATS)
                    raise InputError(f"{path}: {name}: expected one of {expected}, found {part.get_dtype()}")
            tensors = {name.removeprefix(prefix): file.get_tensor(name) for name in shapes}
    except SafetensorError as error:
        raise InputError(f"{path}: not a safetensors file") from error
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise InputError(f"{path}: holds weights that are not finite: its training diverged; train it again")
    return tensors


def read_frequencies(path: Path, described: Description) -> "Tensor":
    """Return the noise's probabilities (N, K) in a model's weights; InputError for another shape."""
    shape = [described.length, described.vocabulary_size or 0]
    return read_weights(path, FREQUENCIES, {FREQUENCIES: shape})[""]


def read_symbols(path: Path) -> Symbols:
    """Return the content of a vocabulary.json; InputError if it is missing or not a vocabulary."""
    require_regular(path)
    try:
        facts = read_object(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a vocabulary: {error}") from None
    return check(Symbols, facts, path)


def read_vocabulary(path: Path, expected: str | None, size: int | None, owner: Path) -> bytes:
    """Return the content of a vocabulary file.

    Raises InputError if its hash (without the final line end) is not `expected`, or if it lists another
    number of symbols than K = `size`. `owner` is the file, named in messages, that gives these two.
    """
    tokens = read_symbols(path).tokens
    content = path.read_bytes()
    actual = hashlib.sha256(content.removesuffix(b"\n")).hexdigest()
    if actual != expected:
        raise InputError(
            f"{path} and {owner} do not belong together: "
            f"vocabulary {actual[:12]} against {str(expected)[:12]}"
        )
    if tokens is not None and len(tokens) != size:
        raise InputError(f"{path}: expected {size} symbols, as {owner} says, found {len(tokens)}")
    return content
