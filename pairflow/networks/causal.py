"""An autoregressive transformer: each token of a row from those before it, by the blocks of the denoiser."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pairflow.networks.transformer import AttentionBlock, rotary_table

_LOGITS = 2**24  # that `mean_nll` holds at once


class CausalTransformer(nn.Module):
    """Tokens (B, N), -1 where a row has none -> log p(symbol | tokens before it in its row), (B, N, K).

    The blocks are the denoiser's, with a causal mask and at one fixed time. Symbol K stands before each row
    and where there is no token.
    """

    def __init__(
        self, *, length: int, vocabulary_size: int, width: int, blocks: int, heads: int, dropout: float
    ):
        super().__init__()
        self.none = vocabulary_size
        self.embedding = nn.Embedding(vocabulary_size + 1, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(
            AttentionBlock(width, heads, 1, dropout, causal=True) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary_size)
        self.cos: Tensor
        self.sin: Tensor
        for name, table in zip(("cos", "sin"), rotary_table(length, width // heads), strict=True):
            self.register_buffer(name, table, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        before = F.pad(tokens[:, :-1], (1, 0), value=-1)
        h = self.embedding(torch.where(before < 0, self.none, before))  # (B, N, width)
        time = h.new_ones(1, 1)
        for block in self.blocks:
            h = block(h, time, self.cos, self.sin)
        return F.log_softmax(self.head(self.norm(h)).float(), dim=-1)

    def losses(self, tokens: Tensor) -> Tensor:
        """(B, N): -log p of each token, 0 where there is none."""
        return F.nll_loss(self(tokens).transpose(1, 2), tokens, ignore_index=-1, reduction="none")


@torch.no_grad()
def mean_nll(network: CausalTransformer, rows: np.ndarray) -> float:
    """Mean of -log p over the tokens of rows (B, N), which are -1 where there is none."""
    tokens = torch.from_numpy(np.ascontiguousarray(rows)).long()
    at_once = max(1, _LOGITS // (rows.shape[1] * network.none))
    total = sum(float(network.losses(part).sum(dtype=torch.float64)) for part in tokens.split(at_once))
    return total / int((tokens >= 0).sum())
