"""Layers of all networks: the time, what it does to the blocks, and dropout.

The time is embedded as sinusoids of sigma = -log kappa, then by a two-layer perceptron. It shifts, scales and
gates each block: adaptive layer normalisation (adaLN; DiT, Peebles and Xie 2023). Dropout does not depend on
how a batch is split between passes and processes.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

FREQUENCIES = 128
LABEL_SCALE = 0.02  # standard deviation of labels' embeddings at the start, as in DiT (Peebles and Xie 2023)
SLOWEST, FASTEST = 0.1, 16.0  # radians per unit of sigma: monotone over its range, and fine near the data

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


class TimeEmbedding(nn.Module):
    """(B,) -> (B, width), by default from 128 frequencies. sigma runs from 0 (data) to 6.9 (kappa = 1e-3).

    frequencies: (F,), of the sinusoids of `scale` sigma. persistent: stores them with the weights. waves: the
    two halves of the perceptron's input. linear: makes its layers. classes: the number
    of labels of each of the P properties of a row, whose embeddings are added; one more label stands for rows
    without a value. Between two labels their embeddings are interpolated. The frequencies are NumPy's: on the
    device "meta", where a model's shapes are checked, PyTorch's first arithmetic takes two seconds.
    """

    def __init__(
        self,
        width: int,
        *,
        frequencies: np.ndarray | None = None,
        persistent: bool = False,
        scale: float = 1.0,
        waves: tuple[Callable[[Tensor], Tensor], ...] = (torch.cos, torch.sin),
        linear: Callable[[int, int], nn.Linear] = nn.Linear,
        classes: Sequence[int] = (),
    ):
        super().__init__()
        if frequencies is None:
            frequencies = np.geomspace(FASTEST, SLOWEST, FREQUENCIES, dtype=np.float32)
        self.scale, self.waves = scale, waves
        self.frequencies: Tensor
        self.absent: Tensor
        self.start: Tensor
        self.register_buffer("frequencies", torch.from_numpy(frequencies), persistent=persistent)
        self.perceptron = nn.Sequential(linear(2 * len(frequencies), width), nn.SiLU(), linear(width, width))

        self.classes = classes
        if classes:
            self.labels = nn.Embedding(sum(classes) + len(classes), width)
            nn.init.normal_(self.labels.weight, std=LABEL_SCALE)
            absent = np.array(classes)
            start = np.cumsum(absent + 1) - absent - 1  # of each property in the table of embeddings
            self.register_buffer("absent", torch.from_numpy(absent), persistent=False)
            self.register_buffer("start", torch.from_numpy(start), persistent=False)

    def forward(self, sigma: Tensor, label: Tensor | None = None) -> Tensor:
        """label: of each row (B, P), from 0 to `classes`; None counts as `classes`, which is no label. That
        of a single property may be (B,), or one for all."""
        angles = self.scale * sigma[:, None].float() * self.frequencies  # (B, F)
        time = self.perceptron(torch.cat([wave(angles) for wave in self.waves], dim=-1))
        if not self.classes:
            return time
        if label is None:
            label = self.absent
        elif label.ndim < 2:
            label = label[..., None]
        below = self.labels(self.start + label.long())  # (B, P, width)
        if label.is_floating_point():
            above = self.labels(self.start + label.ceil().long())
            below = below.lerp(above, label.frac()[..., None].to(below.dtype))
        return time + below.sum(dim=-2)


class Modulation(nn.Module):
    """A linear map from the time to `parts` vectors, zero at the start (adaLN-zero).

    (B, time_width) -> a tuple of `parts` tensors (B, 1, width).
    """

    def __init__(self, time_width: int, width: int, parts: int):
        super().__init__()
        self.parts = parts
        self.linear = zeroed(nn.Linear(time_width, parts * width))

    def forward(self, time: Tensor) -> tuple[Tensor, ...]:
        return self.linear(time)[:, None].chunk(self.parts, dim=-1)


def modulate(h: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """h (B, n, width), scaled and shifted by (B, 1, width)."""
    return h * (1 + scale) + shift


def zeroed(layer: Layer) -> Layer:
    """`layer`, whose output is 0 at the start."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


class Dropout(nn.Dropout):
    """Dropout of some rows of a batch, with the mask that they would get in the whole batch.

    The mask is drawn for the whole batch, so that random numbers are the same, and then cut. `seen` holds the
    slice of rows and the size of the batch; it is None where the network gets the whole batch.
    """

    seen: tuple[slice, int] | None = None

    def forward(self, h: Tensor) -> Tensor:
        if self.seen is None or not self.training:
            return super().forward(h)
        rows, batch_size = self.seen
        mask = super().forward(h.new_ones(batch_size, *h.shape[1:]))  # 0 or 1 / (1 - p)
        return h * mask[rows]


def set_batch_slice(network: nn.Module, rows: slice, batch_size: int) -> None:
    """Tell the network's dropout which rows of a batch it gets next."""
    whole = rows == slice(0, batch_size)
    for module in network.modules():
        if isinstance(module, Dropout):
            module.seen = None if whole else (rows, batch_size)
