"""DINOv2's vision transformer (Oquab et al. 2023), for the weights that its authors publish.

ViT-S/14, B/14 and L/14 without registers: https://github.com/facebookresearch/dinov2. Every size is read from
the weights.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIDE = 224  # pixels of the resized image
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's
_HEAD = 64  # width of an attention head in every published size
_OFFSET = 0.1  # grid cells added in the interpolation of positions, as the authors do


class TransformerBlock(nn.Module):
    """Pre-norm attention and MLP, each scaled per channel (`ls1`, `ls2`)."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.heads = max(1, width // _HEAD)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, hidden), "fc2": nn.Linear(hidden, width)})
        self.ls1 = nn.ParameterDict({"gamma": torch.ones(width)})
        self.ls2 = nn.ParameterDict({"gamma": torch.ones(width)})

    def forward(self, x: Tensor) -> Tensor:  # (B, L, width)
        qkv = self.attn["qkv"](self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        attended = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))  # (B, heads, L, width / heads)
        x = x + self.ls1["gamma"] * self.attn["proj"](attended.transpose(1, 2).flatten(2))
        return x + self.ls2["gamma"] * self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class DinoV2(nn.Module):
    """Images (B, 3, H, W) in [0, 1] -> the class token after the last norm, (B, width)."""

    def __init__(self, width: int, depth: int, hidden: int, patch: int, positions: int):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, positions, width))
        self.mask_token = nn.Parameter(torch.zeros(1, width))  # in the published files, unused here
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, stride=patch)})
        self.blocks = nn.ModuleList(TransformerBlock(width, hidden) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION).view(3, 1, 1), persistent=False)

    @classmethod
    def from_weights(cls, weights: dict[str, Tensor]) -> "DinoV2":
        """The network of these weights; KeyError or RuntimeError if they are of another one."""
        network = cls(
            width=weights["cls_token"].shape[-1],
            depth=sum(name.endswith(".norm1.weight") for name in weights),
            hidden=len(weights["blocks.0.mlp.fc1.bias"]),
            patch=weights["patch_embed.proj.weight"].shape[-1],
            positions=weights["pos_embed"].shape[1],
        )
        network.load_state_dict(weights)
        return network.eval()

    def forward(self, images: Tensor) -> Tensor:
        images = F.interpolate(images, (SIDE, SIDE), mode="bicubic", antialias=True).clamp(0, 1)
        grid = self.patch_embed["proj"]((images - self.mean) / self.deviation)  # (B, width, h, w)
        x = torch.cat([self.cls_token.expand(len(grid), -1, -1), grid.flatten(2).transpose(1, 2)], dim=1)
        x = x + self._positions(grid.shape[-1])
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 0]

    def _positions(self, side: int) -> Tensor:
        """The position embeddings, brought from their own square grid to side x side."""
        own = round((self.pos_embed.shape[1] - 1) ** 0.5)
        if own == side:
            return self.pos_embed
        grid = self.pos_embed[:, 1:].unflatten(1, (own, own)).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, scale_factor=(side + _OFFSET) / own, mode="bicubic")
        return torch.cat([self.pos_embed[:, :1], grid.flatten(2).transpose(1, 2)], dim=1)
