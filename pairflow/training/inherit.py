"""Fine-tuning: a new model starts from the weights of a trained one. See docs/molecules.md, "Fine-tune"."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.training.model import DiscreteModel, Model
from pairflow.training.model_files import read_symbols

_SHOWN = 5  # most new symbols that a sentence names


def start_from(folder: Path, model: Model, vocabulary: Path | None) -> tuple[Model, str]:
    """Give an untrained model the weights of the parent in `folder`, and their hash among its inputs.

    `vocabulary` is the file with the data's symbols, if any. Returns the model and a sentence about its
    start. Raises InputError unless parent and model have the same network and kind of rows, as `inherit`
    requires.
    """
    parent = Model.load(folder, device=model.device)
    new = inherit(model, parent, vocabulary)
    shown = " ".join(new[:_SHOWN]) + " ..." * (len(new) > _SHOWN)
    symbols = f"; it did not know {len(new):,} of the symbols: {shown}" if new else ""
    sentence = f"starts from the {parent.method} in {folder}{symbols}"
    return replace(model, inputs={**model.inputs, "parent": str(parent.weights)}), sentence


def inherit(model: Model, parent: Model, vocabulary: Path | None) -> list[str]:
    """Give an untrained model the averaged weights of its parent, and return the new symbols.

    Symbols are matched by their text in the `vocabulary` of the data (JSON), in any order. Symbols that the
    parent lacks get the weights of the untrained model. If only the new model is conditional, the embeddings
    of its labels are zero, so that at first it does what the parent does, whatever the label.

    Raises InputError unless both have the same network, N, shape, noise and prediction, and unless the parent
    has the same classes or none.
    """
    _require_alike(model, parent)
    sources, new = _parent_symbols(model, parent, vocabulary)
    by_symbol = getattr(model.network, "BY_SYMBOL", ())
    tensors = parent.network.state_dict()
    with torch.no_grad():
        for name, tensor in model.network.state_dict().items():
            if name not in tensors:
                tensor.zero_()  # the embeddings of labels
            elif name in by_symbol and sources is not None:
                _copy_symbols(tensor, tensors[name], sources)
            else:
                tensor.copy_(tensors[name])
    return new


def _requirements(model: Model) -> Json:
    """Return the properties that a model and its parent must share, by their names in messages."""
    facts = {f"network {key}": value for key, value in model.network_settings.items()}
    facts |= {"N": model.length, "shape": model.shape, "noise": model.flow}
    if isinstance(model, DiscreteModel):
        facts |= {"noise": type(model.corruption).__name__.lower(), "prediction": model.prediction}
        asked = model.condition
        facts["condition"] = asked and (asked.properties[0].names if asked.are_integers else asked.sizes)
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


def _parent_symbols(model: Model, parent: Model, vocabulary: Path | None) -> tuple[Tensor | None, list[str]]:
    """Return the parent's number of each symbol of the data (K,), -1 if new; and the new symbols, as text.

    `vocabulary` is the file with the data's symbols. Continuous data have no symbols: the numbers are None.
    Raises InputError if the vocabularies differ and cannot be compared.
    """
    symbols = model.corruption.symbols if isinstance(model, DiscreteModel) else 0
    if model.vocabulary == parent.vocabulary:
        return (torch.arange(symbols) if symbols else None), []
    if vocabulary is None:
        raise InputError(f"{parent.folder}: has another vocabulary; give that of the data by --vocabulary")
    ours, theirs = (read_symbols(path) for path in (vocabulary, parent.vocabulary_file()))
    if not symbols or ours.tokens is None or theirs.tokens is None or ours.kind != theirs.kind:
        raise InputError(
            f"{parent.folder}: cannot start from this model: its vocabulary is {theirs.kind}, "
            f"but the data's is {ours.kind}"
        )
    numbers = {token: number for number, token in enumerate(theirs.tokens)}
    new = [token for token in ours.tokens if token not in numbers]
    extra = symbols - len(ours.tokens)  # a mask that the vocabulary lacks comes last
    known = [numbers.get(token, -1) for token in ours.tokens]
    return torch.tensor(known + [len(theirs.tokens)] * extra), new


def _copy_symbols(target: Tensor, source: Tensor, sources: Tensor) -> None:
    """Copy the entries of known symbols from `source` to `target`, both (N * K, ...) or (K, ...).

    K may differ between the two. `sources` (K,) has the parent's number of each symbol of `target`, -1 if
    new.
    """
    known = sources >= 0
    positions = len(target) // len(sources)
    new, old = (tensor.unflatten(0, (positions, -1)) for tensor in (target, source))
    new[:, known] = old[:, sources[known]]
