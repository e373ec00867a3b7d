"""Layers that the networks share: time embedding, adaptive layer normalisation, and dropout.

The time enters as sinusoids of sigma = -log kappa, from which a two-layer perceptron makes an embedding. In
adaptive layer normalisation (adaLN; DiT, Peebles and Xie 2023), the embedding decides how a block scales and
shifts its normalised input, and by what it multiplies its output. Dropout masks do not depend on how a batch
is split between forward passes and processes.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

FREQUENCIES = 128
LABEL_SCALE = 0.02  # initial standard deviation of label embeddings, as in DiT (Peebles and Xie 2023)
# Radians per unit of sigma: the slowest wave is monotone up to sigma = 6.9, the fastest resolves small sigma.
SLOWEST, FASTEST = 0.1, 16.0

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


class TimeEmbedding(nn.Module):
    """Embeds sigma (B,), from 0 (data) to 6.9 (kappa = 1e-3), and labels as vectors (B, width).

    Args:
        width: the width of the embedding.
        frequencies: (F,), the frequencies of the sinusoids of `scale` * sigma; 128 by default.
        persistent: whether to save the frequencies with the weights.
        scale: a factor of sigma.
        waves: the functions that make the two halves of the perceptron's input.
        linear: makes the perceptron's layers.
        classes: the number of labels of each of the P properties of a row. One more label of each means "no
            label". The embeddings of the properties are added.
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
        if frequencies is None:  # of NumPy: on the device "meta" PyTorch's first operation takes two seconds
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
        """Embed sigma (B,) and `label` as vectors (B, width).

        A label has a number for each row and property, (B, P). With one property it may also be (B,), or one
        number for all rows. A property with C classes has the numbers 0 to C - 1, and C for "no label"; None
        means "no label" everywhere.
        """
        angles = self.scale * sigma[:, None].float() * self.frequencies  # (B, F)
        time = self.perceptron(torch.cat([wave(angles) for wave in self.waves], dim=-1))
        if not self.classes:
            return time
        if label is None:
            label = self.absent
        elif label.ndim < 2:
            label = label[..., None]
        return time + self.labels(self.start + label.long()).sum(dim=-2)


class Modulation(nn.Module):
    """A linear map from time embeddings (B, time_width) to a tuple of `parts` tensors (B, 1, width).

    An untrained map returns zeros (adaLN-zero).
    """

    def __init__(self, time_width: int, width: int, parts: int):
        super().__init__()
        self.parts = parts
        self.linear = zeroed(nn.Linear(time_width, parts * width))

    def forward(self, time: Tensor) -> tuple[Tensor, ...]:
        return self.linear(time)[:, None].chunk(self.parts, dim=-1)


def modulate(h: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Scale h (B, n, width) by 1 + `scale`, and shift it; `shift` and `scale` are (B, 1, width)."""
    return h * (1 + scale) + shift


def zeroed(layer: Layer) -> Layer:
    """Set the weights and the bias of a layer to 0; return it."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


class Dropout(nn.Dropout):
    """Dropout of a slice of a batch, with the same mask as in the whole batch.

    `batch_slice` is the slice of rows and the batch size, or None if the network gets the whole batch. The
    masks come from `generator`, or, if it is None, from that of the device. On a CPU the probability is
    rounded to a multiple of 2^-16, because 16 random bits a number are drawn faster than PyTorch's masks.
    """

    batch_slice: tuple[slice, int] | None = None
    generator: torch.Generator | None = None

    def forward(self, h: Tensor) -> Tensor:
        if not (self.training and self.p):
            return h
        rows, batch_size = self.batch_slice or (slice(None), len(h))
        # Drawn for the whole batch, so that every slice uses the same random numbers.
        shape = (batch_size, *h.shape[1:])
        if h.device.type != "cpu":
            # Dropout of ones is the mask of the whole batch, with its scale 1 / (1 - p).
            return h * super().forward(h.new_ones(shape))[rows] if self.batch_slice else super().forward(h)
        kept = min(max(round((1 - self.p) * 2**16), 1), 2**16 - 1)
        mask = random_bits(shape, self.generator)[rows] < kept - 2**15
        return h * mask.to(h.dtype).mul_(2**16 / kept)


def random_bits(shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    """Draw random numbers of `shape` (int16, on the CPU), uniform from -2^15 to 2^15 - 1."""
    size = math.prod(shape)
    words = torch.empty(math.ceil(size / 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return words.view(torch.int16)[:size].view(shape)


def set_batch_slice(
    network: nn.Module, rows: slice, batch_size: int, generator: torch.Generator | None = None
) -> None:
    """Tell the network's dropout layers which slice of a batch of `batch_size` rows they get next.

    Their masks are drawn by `generator`, or by that of the device if it is None.
    """
    whole = rows == slice(0, batch_size)
    for module in network.modules():
        if isinstance(module, Dropout):
            module.batch_slice = None if whole else (rows, batch_size)
            module.generator = generator
