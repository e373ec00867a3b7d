"""Denoisers: logits (B, N, K) over x1 from tokens x_t (B, N) and sigma = -log kappa (B,).

The networks of continuous flows are in `velocity`; `config.networks.NETWORKS` lists all networks.
"""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from pairflow.config import CONTINUOUS, DISCRETE, NETWORKS
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.networks.mlp import MLP
from pairflow.networks.transformer import DiffusionTransformer
from pairflow.networks.unet import UNet
from pairflow.networks.velocity import EncoderVelocity, MlpVelocity, UNetVelocity

# The class of each network of `config.NETWORKS`, for tokens and for continuous data.
DENOISERS: dict[str, type[nn.Module]] = {
    "transformer": DiffusionTransformer,
    "mlp": MLP,
    "unet": UNet,
}
VELOCITIES: dict[str, type[nn.Module]] = {
    "mlp": MlpVelocity,
    "unet": UNetVelocity,
    "encoder": EncoderVelocity,
}


def build(
    settings: Json,
    *,
    length: int,
    vocabulary_size: int,
    shape: Sequence[int] | None = None,
    mask: int | None = None,
    classes: Sequence[int] = (),
) -> nn.Module:
    """Make a new denoiser from its settings, for rows of the given size.

    Args:
        settings: {"name": ..., and keywords of the network's constructor}. The constructor also gets the
            arguments below that it has parameters for.
        length: N, positions of a row.
        vocabulary_size: the number of symbols in states and logits.
        shape: (C, H, W) of images.
        mask: the symbol of a masked position, or None if states have no masks.
        classes: the number of classes of each property that a conditional model is asked for, else none.

    Raises:
        InputError: for an unknown name, rows that the network cannot take, or classes that it does not
            support.
    """
    name = settings["name"]
    names = names_of(DISCRETE.name)
    if name not in names:
        raise InputError(f"network: expected one of {', '.join(names)}, found {name!r}")
    network = DENOISERS[name]
    rows = {"length": length, "vocabulary_size": vocabulary_size, "shape": shape, "mask": mask}
    rows |= {"classes": classes}
    parameters = signature(network).parameters
    if classes and "classes" not in parameters:
        raise InputError(f"network {name}: takes no condition; use an mlp or a transformer")
    sizes = {key: value for key, value in settings.items() if key != "name"}
    return network(**{key: value for key, value in rows.items() if key in parameters}, **sizes)


def build_velocity(settings: Json, shape: Sequence[int]) -> nn.Module:
    """Make a new velocity network, which is called with x (B, *shape) and t (B,).

    Args:
        settings: {"name": ..., and keywords of the network's constructor}. The `head` of a U-Net's settings
            has no effect here.
        shape: the shape of a row, (d,) or (C, H, W).

    Raises:
        InputError: for an unknown name, or rows that the network cannot take.
    """
    name = settings["name"]
    names = names_of(CONTINUOUS.name)
    if name not in names:
        raise InputError(f"network: continuous data take {', '.join(names)}, found {name!r}")
    sizes = {key: value for key, value in settings.items() if key != "name"}
    return VELOCITIES[name](tuple(shape), **sizes)


def names_of(flow: str) -> list[str]:
    """Return the names of the networks for `flow`, "discrete" or "continuous", sorted."""
    return sorted(name for name, settings in NETWORKS.items() if flow in settings.flows)


class Uninitialised(TorchFunctionMode):
    """Makes the functions of nn.init do nothing in a `with` block; on the device "meta" they take seconds."""

    def __torch_function__(
        self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        kwargs = kwargs or {}
        # The functions of nn.init hand over their tensor by name.
        initialises = getattr(func, "__module__", None) == nn.init.__name__
        return kwargs["tensor"] if initialises else func(*args, **kwargs)
