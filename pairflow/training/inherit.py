"""Fine-tuning: a new model starts from the weights of a trained one. See docs/molecules.md, "Fine-tune"."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pairflow.errors import InputError
from pairflow.training.model import DiscreteModel, Model
from pairflow.training.model_files import read_symbols


def start_from(folder: Path, model: Model, vocabulary: Path | None) -> tuple[Model, str]:
    """An untrained model with the weights of the parent in `folder` and its hash among the inputs, and a
    sentence about both; InputError as `inherit`."""
    parent = Model.load(folder, device=model.device)
    new = inherit(model, parent, vocabulary)
    symbols = f"; symbols that it did not know: {' '.join(new)}" if new else ""
    said = f"starts from the {parent.method} in {folder}{symbols}"
    return replace(model, inputs={**model.inputs, "parent": str(parent.weights)}), said


def inherit(model: Model, parent: Model, vocabulary: Path | None) -> list[str]:
    """Give an untrained model the averaged weights of its parent, and return the symbols that are new.

    Symbols are recognised by their text, whatever their order in the `vocabulary` of the data (JSON). Those
    that the parent lacks keep the weights of the untrained model. Where only the new model is conditional,
    its labels' embeddings are zero, so that at first it does what the parent does, whatever the label.

    Raises InputError unless both have the same network, N, shape and noise, and learn the same, and unless
    the parent has no classes or the same.
    """
    _require_alike(model, parent)
    places, new = _places(model, parent, vocabulary)
    by_symbol = getattr(model.network, "BY_SYMBOL", ())
    tensors = parent.network.state_dict()
    with torch.no_grad():
        for name, own in model.network.state_dict().items():
            if name not in tensors:
                own.zero_()
            elif name in by_symbol and places is not None:
                _copy_symbols(own, tensors[name], places)
            else:
                own.copy_(tensors[name])
    return new


def _requirements(model: Model) -> dict[str, Any]:
    """What a model and its parent must have in common, by the names of messages."""
    facts = {f"network {key}": value for key, value in model.network_settings.items()}
    facts |= {"N": model.length, "shape": model.shape, "noise": model.flow}
    if isinstance(model, DiscreteModel):
        facts |= {"noise": type(model.corruption).__name__.lower(), "prediction": model.prediction}
        own = model.condition
        facts |= {"condition": own and (own.properties[0].names if own.are_integers else own.sizes)}
    return facts


def _require_alike(model: Model, parent: Model) -> None:
    ours, theirs = _requirements(model), _requirements(parent)
    ignored = {"network dropout"}  # no tensor depends on it
    if theirs.get("condition") is None:  # the labels' embeddings are new
        ignored.add("condition")
    for key in {**theirs, **ours}:
        if key not in ignored and ours.get(key) != theirs.get(key):
            raise InputError(
                f"{parent.folder}: cannot start from this model: its {key} is {theirs.get(key)}, expected "
                f"{ours.get(key)}"
            )


def _places(model: Model, parent: Model, vocabulary: Path | None) -> tuple[Tensor | None, list[str]]:
    """The place (K,) of each symbol among the parent's, -1 for a new one, and the new ones; None for numbers,
    which have no symbols."""
    symbols = model.corruption.symbols if isinstance(model, DiscreteModel) else 0
    if model.vocabulary == parent.vocabulary:
        return (torch.arange(symbols) if symbols else None), []
    if vocabulary is None:
        raise InputError(f"{parent.folder}: has another vocabulary; give that of the data by --vocabulary")
    ours, theirs = (read_symbols(path) for path in (vocabulary, parent.vocabulary_file()))
    if not symbols or ours.tokens is None or theirs.tokens is None or ours.kind != theirs.kind:
        raise InputError(
            f"{parent.folder}: cannot start from this model: its symbols ({theirs.kind}) are others "
            f"than those of the data ({ours.kind})"
        )
    places = {token: place for place, token in enumerate(theirs.tokens)}
    new = [token for token in ours.tokens if token not in places]
    extra = symbols - len(ours.tokens)  # a mask that the vocabulary lacks comes last
    taken_over = [places.get(token, -1) for token in ours.tokens]
    return torch.tensor(taken_over + [len(theirs.tokens)] * extra), new


def _copy_symbols(own: Tensor, parents: Tensor, places: Tensor) -> None:
    """Copy what belongs to known symbols, between tensors of (N * K, ...) or (K, ...) values."""
    known = places >= 0
    positions = len(own) // len(places)
    new, old = (tensor.unflatten(0, (positions, -1)) for tensor in (own, parents))
    new[:, known] = old[:, places[known]]
