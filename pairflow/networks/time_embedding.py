"""What every network knows of the time."""

import torch
from torch import nn

FREQUENCIES = 128
SLOWEST, FASTEST = 0.1, 16.0  # radians per unit of sigma: monotone over its range, and fine near the data


class TimeEmbedding(nn.Module):
    """Sinusoids of sigma = -log kappa at 128 frequencies, then a two-layer perceptron. (B,) -> (B, width).

    sigma runs from 0 (data) to 6.9 (noise, kappa = 1e-3).
    """

    def __init__(self, width):
        super().__init__()
        position = torch.linspace(0, 1, FREQUENCIES)
        self.register_buffer("frequencies", FASTEST * (SLOWEST / FASTEST) ** position, persistent=False)
        self.perceptron = nn.Sequential(nn.Linear(2 * FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, sigma):
        angles = sigma[:, None].float() * self.frequencies  # (B, 128)
        return self.perceptron(torch.cat([angles.cos(), angles.sin()], dim=-1))
