"""Adaptive layer normalisation (DiT, Peebles and Xie 2023): the time shifts, scales and gates each block."""

from typing import TypeVar

from torch import Tensor, nn

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


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
