"""The discrete U-Net of D3PM (Austin et al. 2021), tauLDR (Campbell et al. 2022), UDLM (Schiff et al. 2024).

It is the U-Net of DDPM (Ho et al. 2020) on pixels in [-1, 1]:

- Each scale has `blocks` residual blocks on the way down and blocks + 1 on the way up, where their input is
  concatenated with a skip connection. The middle has two blocks with attention between them. At the scales in
  `attention`, single-head attention comes after every block.
- A residual block is: norm, swish, 3x3 convolution, plus the time (linear), norm, swish, dropout, 3x3
  convolution; a 1x1 convolution on its skip where the width changes.
- Downsampling is a 3x3 convolution of stride 2. Upsampling is nearest neighbour, then a 3x3 convolution.
- All convolutions and linear layers have biases.
"""

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pairflow.errors import InputError
from pairflow.networks.layers import Dropout, Layer, TimeEmbedding, zeroed

TIME_SCALE = 1000  # factor of sigma in the sinusoids
SLOWEST = 1e-4  # the lowest frequency of the sinusoids; the highest is 1
LOG_SCALE_AT_ZERO = -2.0  # log-scale of the logistic at the start of training: neither wide nor narrow
# From one pixel value of K = 256 to the uniform distribution; finite in float32.
LOG_SCALE_RANGE = (-9.0, 9.0)


class ImageTrunk(nn.Module):
    """The U-Net from `inputs` to `outputs` channels of an image. An untrained network returns 0.

    Its scale s has `channels` * multipliers[s] channels and, on the way down, `blocks` residual blocks (on
    the way up one more). `attention` has the numbers of the scales where attention follows each block.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        channels: int,
        multipliers: Sequence[int],
        blocks: int,
        attention: Collection[int],
        dropout: float,
    ):
        super().__init__()
        self.time = TimeEmbedding(
            4 * channels,
            frequencies=np.geomspace(1, SLOWEST, channels // 2, dtype=np.float32),
            scale=TIME_SCALE,
            waves=(torch.sin, torch.cos),
            linear=linear,
        )
        level = partial(ResolutionLevel, time_width=4 * channels, dropout=dropout)
        self.inputs = convolution(inputs, channels)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        # `skips` are the widths of all outputs on the way down; the way up takes them from the end.
        width, skips = channels, [channels]
        for scale, multiplier in enumerate(multipliers):
            if scale:
                self.down.append(Downsampling(width))
                skips.append(width)
            for _ in range(blocks):
                self.down.append(level(width, channels * multiplier, attends=scale in attention))
                width = channels * multiplier
                skips.append(width)
        self.middle = nn.ModuleList(level(width, width, attends=attends) for attends in (True, False))
        for scale, multiplier in reversed(list(enumerate(multipliers))):
            for _ in range(blocks + 1):
                wide = width + skips.pop()
                self.up.append(level(wide, channels * multiplier, attends=scale in attention))
                width = channels * multiplier
            if scale:
                self.up.append(Upsampling(width))
        self.norm = group_norm(width)
        self.outputs = zeroed(convolution(width, outputs))

    def transform(self, h: Tensor, time: Tensor) -> Tensor:
        """Compute output channels (B, outputs, H, W) from input channels (B, inputs, H, W) and times (B,)."""
        time = F.silu(self.time(time))
        h = self.inputs(h)
        skips = [h]  # a stack: the way up takes them in reverse order
        for module in self.down:
            h = module(h, time)
            skips.append(h)
        for module in self.middle:
            h = module(h, time)
        for module in self.up:
            h = module(h if isinstance(module, Upsampling) else torch.cat([h, skips.pop()], dim=1), time)
        return self.outputs(F.silu(self.norm(h)))


class UNet(ImageTrunk):
    """A denoiser of images: 25.84 M parameters for MNIST and 35.75 M for CIFAR-10, as in the paper.

    MNIST has the multipliers 1-2-2, and CIFAR-10 1-2-2-2 (with `head: categorical` 36.6 M parameters). The
    authors' code scales pixels, bins the logistic and initialises weights differently ("remaining" in
    benchmarks/paper/names.json).

    Args:
        length: N = C H W.
        vocabulary_size: the number of symbols, including the mask.
        shape: (C, H, W); tokens are in channel-height-width order.
        mask: the last symbol, for absorbing noise, or None. A masked pixel enters as 0 and is flagged by an
            additional channel; the mask's logit is -inf.
        head: "logistic" or "categorical".
        sizes: channels, multipliers, blocks, attention and dropout, as in `ImageTrunk`.

    Raises:
        InputError: if `shape` is missing or does not fit `length`, or if height or width cannot be halved
            between the scales.
    """

    def __init__(
        self,
        *,
        length: int,
        vocabulary_size: int,
        shape: Sequence[int] | None,
        mask: int | None,
        head: str,
        **sizes: Any,
    ):
        scales = len(sizes["multipliers"])
        shape = checked_shape(shape, length=length, vocabulary_size=vocabulary_size, mask=mask, scales=scales)
        levels, colours = vocabulary_size - (mask is not None), shape[0]
        # The shift of the mean and the log-scale of a logistic, or a logit for every level.
        outputs = colours * (2 if head == "logistic" else levels)
        super().__init__(colours * (1 + (mask is not None)), outputs, **sizes)
        self.shape, self.mask, self.head = shape, mask, head
        self.levels = levels  # K, without the mask

    def forward(self, x_t: Tensor, sigma: Tensor) -> Tensor:
        """Return logits (B, N, K) over x1 from tokens x_t (B, N) and sigma = -log kappa (B,)."""
        # float32, even under autocast. (On a CPU channels_last does not help: group norms take 4x as long.)
        with torch.autocast(x_t.device.type, enabled=False):
            pixels, masked = self._pixels(x_t)
            out = self.transform(torch.cat([pixels, *masked], dim=1), sigma)
            if self.head == "logistic":
                shift, log_scale = out.flatten(2).chunk(2, dim=1)  # each (B, C, H W)
                # As in D3PM, the network predicts how far the mean is from the noisy pixel.
                mean = torch.tanh(pixels.flatten(2) + shift).flatten(1)  # (B, N)
                logits = truncated_logistic(mean, log_scale.flatten(1) + LOG_SCALE_AT_ZERO, self.levels)
            else:
                logits = out.unflatten(1, (-1, self.levels)).movedim(2, -1).flatten(1, 3)  # (B, N, K)
            return logits if self.mask is None else F.pad(logits, (0, 1), value=-torch.inf)

    def _pixels(self, x_t: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return pixels (B, C, H, W) in [-1, 1], 0 at masks; and [1 at masks], or [] without a mask."""
        tokens = x_t.unflatten(-1, self.shape)
        pixels = tokens.float() * (2 / (self.levels - 1)) - 1
        if self.mask is None:
            return pixels, []
        masked = tokens == self.mask
        # As a number the mask, K, would be a pixel that is brighter than white.
        return pixels.masked_fill(masked, 0.0), [masked.float()]


class ResolutionLevel(nn.Module):
    """A residual block, followed by attention if `attends`."""

    def __init__(self, width: int, width_out: int, *, time_width: int, dropout: float, attends: bool):
        super().__init__()
        self.block = ResidualBlock(width, width_out, time_width, dropout)
        self.attention = PixelAttention(width_out) if attends else nn.Identity()

    def forward(self, h: Tensor, time: Tensor) -> Tensor:
        return self.attention(self.block(h, time))


class ResidualBlock(nn.Module):
    """Two convolutions with the embedded time added between them; returns (skip + result) / sqrt(2)."""

    def __init__(self, width: int, width_out: int, time_width: int, dropout: float):
        super().__init__()
        self.first_norm, self.first = group_norm(width), convolution(width, width_out)
        self.time = linear(time_width, width_out)
        self.second_norm, self.second = group_norm(width_out), zeroed(convolution(width_out, width_out))
        self.dropout = Dropout(dropout)
        self.skip = nn.Identity() if width == width_out else convolution(width, width_out, size=1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.first(F.silu(self.first_norm(x))) + self.time(time)[..., None, None]
        h = self.second(self.dropout(F.silu(self.second_norm(h))))
        # The factor keeps the variance of a sum of two (Song et al. 2021).
        return (self.skip(x) + h) * 2**-0.5


class PixelAttention(nn.Module):
    """Single-head attention between all pixels. Returns (skip + result) / sqrt(2)."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = group_norm(width)
        self.qkv = linear(width, 3 * width)
        self.out = zeroed(linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x).flatten(2).transpose(1, 2)[:, None]  # (B, 1, H W, width)
        h = self.out(F.scaled_dot_product_attention(*self.qkv(h).chunk(3, dim=-1)))
        return (x + h[:, 0].transpose(1, 2).unflatten(2, x.shape[2:])) * 2**-0.5


class Downsampling(nn.Module):
    """Halves the height and the width of an image's channels."""

    def __init__(self, width: int):
        super().__init__()
        self.convolution = convolution(width, width, stride=2)

    def forward(self, h: Tensor, time: Tensor) -> Tensor:
        return self.convolution(h)


class Upsampling(nn.Module):
    """Doubles the height and the width of an image's channels."""

    def __init__(self, width: int):
        super().__init__()
        self.convolution = convolution(width, width)

    def forward(self, h: Tensor, time: Tensor) -> Tensor:
        return self.convolution(F.interpolate(h, scale_factor=2, mode="nearest"))


def truncated_logistic(mean: Tensor, log_scale: Tensor, levels: int) -> Tensor:
    """Return logits (..., K) of a logistic distribution in K bins, centred at the pixel values.

    The bins have the width 2 / (K - 1). The distribution has `mean` (...) and `log_scale` (...) and is
    truncated to the bins, as in D3PM (Austin et al. 2021): the softmax spreads the mass outside over all
    bins. See docs/method.md, "Image likelihood head". A bin with the ends a < b, relative to the mean and in
    units of the scale, has the mass

        sigmoid(b) - sigmoid(a) = sigmoid(b) sigmoid(-a) (1 - exp(a - b))

    The last factor is the same for all bins, so the logits are exact without subtracting nearly equal
    numbers.
    """
    ends = (2 * torch.arange(levels + 1, device=mean.device) - levels) / (levels - 1)  # (K + 1,)
    scales = torch.exp(-log_scale.clamp(*LOG_SCALE_RANGE))
    z = (ends - mean[..., None]) * scales[..., None]
    return F.logsigmoid(z[..., 1:]) + F.logsigmoid(-z[..., :-1])


def checked_shape(
    shape: Sequence[int] | None, *, length: int, vocabulary_size: int, mask: int | None, scales: int
) -> tuple[int, int, int]:
    """Return the `shape` (C, H, W) of rows of N = `length` tokens, for a U-Net with `scales` scales.

    Raises InputError without a shape, if C H W is not N, if the mask is not the last symbol, or if the scales
    cannot halve H or W.
    """
    if shape is None:
        raise InputError(f"network unet needs images; the data holds rows of {length} tokens without a shape")
    if math.prod(shape) != length:
        size = " x ".join(map(str, shape))
        raise InputError(f"network unet: images of {size} are not rows of {length} tokens")
    if mask not in (None, vocabulary_size - 1):
        raise InputError(f"network unet: the mask {mask} is a pixel value, expected {vocabulary_size - 1}")
    return halvable_shape(shape, scales)


def halvable_shape(shape: Sequence[int], scales: int) -> tuple[int, int, int]:
    """Return `shape` as (C, H, W). Raise InputError if `scales` scales cannot halve the height or width."""
    colours, height, width = shape
    if height % 2 ** (scales - 1) or width % 2 ** (scales - 1):
        raise InputError(
            f"network unet: {scales} scales halve an image {scales - 1} times, "
            f"but {2 ** (scales - 1)} does not divide {colours} x {height} x {width}"
        )
    return colours, height, width


def group_norm(width: int) -> nn.GroupNorm:
    """Make a group normalisation with 32 groups, or fewer so that each has at least four channels."""
    return nn.GroupNorm(math.gcd(32, width // 4), width, eps=1e-6)


def convolution(width: int, width_out: int, *, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return initialised(nn.Conv2d(width, width_out, size, stride, padding=size // 2))


def linear(width: int, width_out: int) -> nn.Linear:
    return initialised(nn.Linear(width, width_out))


def initialised(layer: Layer) -> Layer:
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
