"""Denoisers: tokens x_t (B, N) and sigma = -log kappa (B,) in, logits (B, N, K) over x1 out.

`velocity` has the networks of continuous data.
"""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from torch import nn

from pairflow.errors import InputError
from pairflow.networks.mlp import MLP
from pairflow.networks.transformer import DiffusionTransformer
from pairflow.networks.unet import UNet, checked_shape
from pairflow.networks.velocity import build_velocity

NETWORKS: dict[str, type[nn.Module]] = {
    "mlp": MLP,
    "transformer": DiffusionTransformer,
    "unet": UNet,
}


def build(
    settings: dict[str, Any],
    *,
    length: int,
    vocabulary_size: int,
    shape: Sequence[int] | None = None,
    mask: int | None = None,
    classes: int = 0,
) -> nn.Module:
    """The network that `settings` names: {"name": ..., then the constructor's own keywords}.

    vocabulary_size: number of symbols in states and logits; `mask` is one of them where states have masks.
    shape: (C, H, W) of images. Only the U-Net uses shape and mask. classes: labels of rows (see
    `TimeEmbedding`), which the U-Net lacks. Raises InputError for an unknown name, and
    for a U-Net with classes, on rows that are not images, or on images that its scales cannot halve.
    """
    arguments = dict(settings)
    name = arguments.pop("name")
    if name not in NETWORKS:
        raise InputError(f"network: expected one of {', '.join(sorted(NETWORKS))}, found {name!r}")
    if classes and "classes" not in signature(NETWORKS[name]).parameters:
        raise InputError(f"network {name}: takes no condition; use an mlp or a transformer")
    if name == "unet":
        scales = len(arguments["multipliers"])
        sizes = checked_shape(shape, length=length, vocabulary_size=vocabulary_size, mask=mask, scales=scales)
        return UNet(shape=sizes, vocabulary_size=vocabulary_size, mask=mask, **arguments)
    if classes:
        arguments["classes"] = classes
    return NETWORKS[name](length=length, vocabulary_size=vocabulary_size, **arguments)
