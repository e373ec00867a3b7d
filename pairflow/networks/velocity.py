"""Velocity networks: v (B, *shape) from points x (B, *shape) and times t (B,) in [0, 1].

They use the blocks of the denoisers, with other first and last layers. An untrained network returns 0.
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pairflow.errors import InputError
from pairflow.networks.layers import Modulation, TimeEmbedding, modulate, zeroed
from pairflow.networks.mlp import MlpBlock
from pairflow.networks.transformer import FREQUENCIES
from pairflow.networks.unet import ImageTrunk, halvable_shape

TIME_SCALE = 1000  # factor of t in the sinusoids, as in the U-Net


class MlpVelocity(nn.Module):
    """A velocity network v_t(x): the residual blocks of `mlp` on the flattened row x."""

    def __init__(self, shape: tuple[int, ...], *, width: int, blocks: int, time_width: int, dropout: float):
        super().__init__()
        size = math.prod(shape)
        self.time = scaled_time(time_width)
        self.inputs = nn.Linear(size, width)
        self.blocks = nn.ModuleList(MlpBlock(width, time_width, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, bias=False)
        self.modulation = Modulation(time_width, width, parts=2)
        self.head = zeroed(nn.Linear(width, size))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """Return the velocities v_t(x) (B, *shape) at points x (B, *shape) and times t (B,)."""
        time = F.silu(self.time(t))  # (B, time_width)
        h = self.inputs(x.flatten(1))[:, None]  # (B, 1, width)
        for block in self.blocks:
            h = block(h, time)
        return self.head(modulate(self.norm(h), *self.modulation(time))).reshape(x.shape)


class EncoderVelocity(nn.Module):
    """A transformer encoder with one token per pair of coordinates, for vectors of even length.

    Position embeddings are learnt, and the time is added to every token (PairFlow, appendix E: the N-fold
    two-moons). The layers are PyTorch's, with normalisation first and no dropout.
    """

    def __init__(self, shape: tuple[int, ...], *, width: int, blocks: int, heads: int):
        super().__init__()
        if len(shape) != 1 or shape[0] % 2:
            raise InputError(
                f"network encoder needs vectors of an even length; the data have rows of shape {shape}"
            )
        [size] = shape
        self.time = scaled_time(width)
        self.inputs = nn.Linear(2, width)
        self.positions = nn.Parameter(0.02 * torch.randn(size // 2, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = zeroed(nn.Linear(width, 2))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """Return the velocities v_t(x) (B, d) at points x (B, d) and times t (B,)."""
        h = self.inputs(x.unflatten(1, (-1, 2))) + self.positions + self.time(t)[:, None]  # (B, d / 2, width)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h)).flatten(1)


class UNetVelocity(ImageTrunk):
    """The U-Net with a regression head, in float32, also under autocast.

    Continuous MNIST uses 64 channels and the multipliers 1-2-4-8: 61.8 M parameters.
    """

    def __init__(self, shape: tuple[int, ...], *, head: str = "", **sizes: Any):
        """Make a network for images of `shape` (C, H, W); InputError for other rows.

        `sizes` are channels, multipliers, blocks, attention and dropout, as in `ImageTrunk`. `head` belongs
        to the settings of a denoiser and is ignored.
        """
        if len(shape) != 3:
            raise InputError(f"network unet needs images (C, H, W); the data have rows of shape {shape}")
        halvable_shape(shape, len(sizes["multipliers"]))
        super().__init__(shape[0], shape[0], **sizes)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """Return the velocities v_t(x) (B, C, H, W) at images x (B, C, H, W) and times t (B,)."""
        with torch.autocast(x.device.type, enabled=False):
            return self.transform(x.float(), t)


def scaled_time(width: int) -> TimeEmbedding:
    """Make an embedding of t in [0, 1], with the transformer's frequencies."""
    return TimeEmbedding(width, frequencies=FREQUENCIES.astype(np.float32), scale=TIME_SCALE)
