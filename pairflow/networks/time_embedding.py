"""How a network is given the time: sinusoids of sigma = -log kappa, then a two-layer perceptron."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

FREQUENCIES = 128
SLOWEST, FASTEST = 0.1, 16.0  # radians per unit of sigma: monotone over its range, and fine near the data


class TimeEmbedding(nn.Module):
    """(B,) -> (B, width), by default from 128 frequencies. sigma runs from 0 (data) to 6.9 (kappa = 1e-3).

    frequencies: (F,), of the sinusoids of `scale` sigma. persistent: stores them with the weights. waves: the
    two halves of the perceptron's input. linear: makes its layers. The frequencies are NumPy's: on the device
    "meta", where a model's shapes are checked, PyTorch's first arithmetic takes two seconds.
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
    ):
        super().__init__()
        if frequencies is None:
            frequencies = np.geomspace(FASTEST, SLOWEST, FREQUENCIES, dtype=np.float32)
        self.scale, self.waves = scale, waves
        self.frequencies: Tensor
        self.register_buffer("frequencies", torch.from_numpy(frequencies), persistent=persistent)
        self.perceptron = nn.Sequential(linear(2 * len(frequencies), width), nn.SiLU(), linear(width, width))

    def forward(self, sigma: Tensor) -> Tensor:
        angles = self.scale * sigma[:, None].float() * self.frequencies  # (B, F)
        return self.perceptron(torch.cat([wave(angles) for wave in self.waves], dim=-1))
