"""The diffusion transformer of MDLM and UDLM: adaLN time conditioning, rotary positions, full attention."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pairflow.networks.layers import Dropout, Modulation, TimeEmbedding, modulate, zeroed

ROTARY_BASE = 10_000
FREQUENCIES = 10_000.0 ** (-np.arange(128) / 128)  # of the time embedding, as in the code of UDLM and Duo


class DiffusionTransformer(nn.Module):
    """A denoiser of token rows. Width 768, 12 blocks and 12 heads make 92.4 M parameters, as in the paper.

    The frequencies of the time embedding are saved with the weights, so that models with the frequencies of
    earlier versions are refused.
    """

    BY_POSITION = True  # takes `where`
    BY_SYMBOL = ("embedding.weight", "head.weight", "head.bias")  # (K, ...), by symbol

    def __init__(
        self,
        *,
        length: int,
        vocabulary_size: int,
        width: int,
        blocks: int,
        heads: int,
        time_width: int,
        dropout: float,
        classes: Sequence[int] = (),
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        frequencies = FREQUENCIES.astype(np.float32)
        self.time = TimeEmbedding(time_width, frequencies=frequencies, persistent=True, classes=classes)
        self.blocks = nn.ModuleList(AttentionBlock(width, heads, time_width, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, bias=False)
        self.modulation = Modulation(time_width, width, parts=2)
        self.head = zeroed(nn.Linear(width, vocabulary_size))
        cos, sin = rotary_table(length, width // heads)
        self.cos: Tensor
        self.sin: Tensor
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(
        self, x_t: Tensor, sigma: Tensor, label: Tensor | None = None, where: Tensor | None = None
    ) -> Tensor:
        """Return logits (B, N, K) over x1 from tokens x_t (B, N), sigma = -log kappa (B,) and labels, if any.

        With `where` (B, N) bool, they are (M, K), of its M true positions.
        """
        time = F.silu(self.time(sigma, label))  # (B, time_width)
        h = self.embedding(x_t)  # (B, N, width)
        for block in self.blocks:
            h = block(h, time, self.cos, self.sin)
        shift, scale = self.modulation(time)
        h = modulate(self.norm(h), shift, scale)
        return self.head(h if where is None else h[where])  # (B, N, K) or (M, K)


class AttentionBlock(nn.Module):
    """Adds to h (B, N, width) the output of attention, then of a perceptron; the time is (B, time_width).

    The time scales and shifts the normalised input of both, and scales their output (adaLN-zero).
    """

    def __init__(self, width: int, heads: int, time_width: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.modulation = Modulation(time_width, width, parts=6)
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.perceptron_norm = nn.LayerNorm(width, bias=False)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, h: Tensor, time: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        shift_a, scale_a, gate_a, shift_p, scale_p, gate_p = self.modulation(time)  # each (B, 1, width)
        attended = self.attend(modulate(self.attention_norm(h), shift_a, scale_a), cos, sin)
        h = h + gate_a * self.dropout(attended)
        return h + gate_p * self.dropout(self.perceptron(modulate(self.perceptron_norm(h), shift_p, scale_p)))

    def attend(self, h: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        qkv = self.qkv(h).unflatten(-1, (3, self.heads, -1))  # (B, N, 3, heads, d)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, heads, N, d)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        # No causal mask: a noisy row is seen as a whole, unlike a text that is written word by word.
        attended = F.scaled_dot_product_attention(q, k, v)
        return self.attention_out(attended.transpose(1, 2).flatten(2))  # (B, N, width)


def rotary_table(length: int, head_width: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (N, d / 2) of rotary positions (Su et al. 2021), for d = `head_width`."""
    # Never on the device "meta": PyTorch imports its compiler for a division there, which takes seconds.
    with torch.device("cpu"):
        frequencies = ROTARY_BASE ** -(torch.arange(0, head_width, 2) / head_width)
        angles = torch.outer(torch.arange(length), frequencies)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (x_j, x_{j + d/2}) of x (B, heads, N, d) by the angles of their position."""
    first, second = x.chunk(2, dim=-1)
    # The tables are float32: without the cast, q and k would not have the type of v under autocast.
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
