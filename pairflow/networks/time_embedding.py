"""How a network is given the time: sinusoids of sigma = -log kappa, then a two-layer perceptron."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

FREQUENCIES = 128
LABEL_SCALE = 0.02  # standard deviation of labels' embeddings at the start, as in DiT (Peebles and Xie 2023)
SLOWEST, FASTEST = 0.1, 16.0  # radians per unit of sigma: monotone over its range, and fine near the data


class TimeEmbedding(nn.Module):
    """(B,) -> (B, width), by default from 128 frequencies. sigma runs from 0 (data) to 6.9 (kappa = 1e-3).

    frequencies: (F,), of the sinusoids of `scale` sigma. persistent: stores them with the weights. waves: the
    two halves of the perceptron's input. linear: makes its layers. classes: labels that rows may have, whose
    embedding is added; one more stands for rows without a label. The frequencies are NumPy's: on the device
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
        classes: int = 0,
    ):
        super().__init__()
        if frequencies is None:
            frequencies = np.geomspace(FASTEST, SLOWEST, FREQUENCIES, dtype=np.float32)
        self.scale, self.waves = scale, waves
        self.frequencies: Tensor
        self.register_buffer("frequencies", torch.from_numpy(frequencies), persistent=persistent)
        self.perceptron = nn.Sequential(linear(2 * len(frequencies), width), nn.SiLU(), linear(width, width))

        self.classes = classes
        if classes:
            self.labels = nn.Embedding(classes + 1, width)
            nn.init.normal_(self.labels.weight, std=LABEL_SCALE)

    def forward(self, sigma: Tensor, label: Tensor | None = None) -> Tensor:
        """label: of each row (B,), or of all, from 0 to `classes`; None counts as `classes`, no label."""
        angles = self.scale * sigma[:, None].float() * self.frequencies  # (B, F)
        time = self.perceptron(torch.cat([wave(angles) for wave in self.waves], dim=-1))
        if not self.classes:
            return time
        if label is None:
            label = torch.full((), self.classes, device=sigma.device)
        return time + self.labels(label)
