"""Denoisers: tokens x_t (B, N) and sigma = -log kappa (B,) in, logits (B, N, K) over x1 out.

`velocity` has the networks of continuous data. `config.networks.NETWORKS` is the list of all.
"""

from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from typing import Any

from torch import nn

from pairflow.config import CONTINUOUS, DISCRETE, NETWORKS
from pairflow.errors import InputError


def build(
    settings: dict[str, Any],
    *,
    length: int,
    vocabulary_size: int,
    shape: Sequence[int] | None = None,
    mask: int | None = None,
    classes: Sequence[int] = (),
) -> nn.Module:
    """The network that `settings` names: {"name": ..., then the constructor's own keywords}.

    vocabulary_size: number of symbols in states and logits; `mask` is one of them where states have masks.
    shape: (C, H, W) of images. classes: numbers of labels of rows (see `TimeEmbedding`). A network gets those
    of these that its constructor has. Raises InputError for an unknown name, for rows that the network cannot
    take, and for classes where it has none.
    """
    name = settings["name"]
    names = names_of(DISCRETE.name)
    if name not in names:
        raise InputError(f"network: expected one of {', '.join(names)}, found {name!r}")
    network = load(name, DISCRETE.name)
    rows = {"length": length, "vocabulary_size": vocabulary_size, "shape": shape, "mask": mask}
    taken = signature(network).parameters
    if classes and "classes" not in taken:
        raise InputError(f"network {name}: takes no condition; use an mlp or a transformer")
    rows |= {"classes": classes}
    sizes = {key: value for key, value in settings.items() if key != "name"}
    return network(**{key: value for key, value in rows.items() if key in taken}, **sizes)


def build_velocity(settings: dict[str, Any], shape: Sequence[int]) -> nn.Module:
    """The velocity network(x, t) that `settings` name, for rows of `shape`: x (B, *shape), t (B,).

    settings: {"name": "encoder", "width", "blocks", "heads"}, or those of a denoiser, {"name": "mlp", ...} or
    {"name": "unet", ...}, whose `head` has no meaning here. Raises InputError for an unknown name, and for
    rows that the network cannot take.
    """
    name = settings["name"]
    names = names_of(CONTINUOUS.name)
    if name not in names:
        raise InputError(f"network: continuous data take {', '.join(names)}, found {name!r}")
    sizes = {key: value for key, value in settings.items() if key != "name"}
    return load(name, CONTINUOUS.name)(tuple(shape), **sizes)


def names_of(flow: str) -> list[str]:
    """The networks that a flow has, by name."""
    return sorted(name for name, settings in NETWORKS.items() if flow in settings.modules)


def load(name: str, flow: str) -> type[nn.Module]:
    """The class of a network in a flow."""
    module, _, kind = NETWORKS[name].modules[flow].rpartition(".")
    return getattr(import_module(f"pairflow.networks.{module}"), kind)
