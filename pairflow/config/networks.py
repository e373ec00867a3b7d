"""Settings of the networks."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, WrapValidator, model_validator

from pairflow.settings.check import Settings, any_of, by_name
from pairflow.settings.flows import CONTINUOUS, DISCRETE


class LinearMap(NamedTuple):
    """Equal linear maps or convolutions of a network, by which its costs are estimated.

    Attributes:
        inputs, outputs: the size of the matrix of each map.
        times: how often a map is applied to a row: once for each position, for example, or never (0) if its
            values are only looked up.
        number: how many such maps the network has.
    """

    inputs: int
    outputs: int
    times: int = 1
    number: int = 1


class NetworkSettings(Settings):
    """Settings of a network.

    `flows` are the flows that the network supports; its classes are in pairflow.networks. `in_slices` says
    how several threads of a CPU train it: each on a slice of the batch, or all on each operation
    (`training.slices`), whichever was faster (benchmarks/records/speed.md). `operations_on_gpu` is the number
    of arithmetic operations a second by which the paper's times on an RTX A6000 follow from `maps`. A
    training keeps `logits_kept` numbers for each logit.
    """

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """The name by which a configuration selects it; each subclass defines it."""

    flows: ClassVar[tuple[str, ...]]
    in_slices: ClassVar[bool] = True
    operations_on_gpu: ClassVar[float] = 3e13
    logits_kept: ClassVar[float] = 1.5

    def maps(self, length: int, symbols: int, shape: Sequence[int] | None = None) -> list[LinearMap]:
        """Return the network's linear maps for rows of `length` N, K `symbols` (0: real numbers) and
        images of `shape` (C, H, W), from which time and memory are estimated; none if unknown."""
        return []

    @property
    def at_once(self) -> float:
        """The share of all maps' outputs that is in memory at once in a pass without gradients."""
        return min(1.0, 1.3 / getattr(self, "blocks", 1))

    def smaller(self, share: float) -> Self:
        """Return the settings of a smaller network, with this share of the width and depth. A network that is
        small already, for a laptop, stays as it is."""
        return self


class Transformer(NetworkSettings):
    """Settings of a diffusion transformer with rotary position embeddings and adaptive layer norm."""

    flows: ClassVar = (DISCRETE.name,)

    name: Literal["transformer"]
    width: int = Field(768, ge=8, le=8192, description="Width of the residual stream.")
    blocks: int = Field(12, ge=1, le=128, description="Number of transformer blocks.")
    heads: int = Field(
        12,
        ge=1,
        le=128,
        description="Number of attention heads; the width must be a multiple of twice this number.",
    )
    time_width: int = Field(128, ge=8, le=4096, description="Width of the time embedding.")
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout probability.")

    def maps(self, length: int, symbols: int, shape: Sequence[int] | None = None) -> list[LinearMap]:
        ends = [LinearMap(symbols, self.width, 0), LinearMap(self.width, symbols, length)]
        modulation = LinearMap(self.time_width, 6 * self.width, number=self.blocks)
        return [*ends, modulation, *_attention_blocks(self.width, self.blocks, length)]

    def smaller(self, share: float) -> Self:
        wide = self.width // self.heads
        heads = _shrunk(self.heads, share, -(-128 // wide))
        return self.model_copy(
            update={"width": wide * heads, "heads": heads, "blocks": _shrunk(self.blocks, share, 4)}
        )

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Transformer":
        if self.width % (2 * self.heads):
            raise ValueError(f"heads: 2 x {self.heads} does not divide the width {self.width}")
        return self


class Mlp(NetworkSettings):
    """Settings of a residual multilayer perceptron with adaptive layer norm, for short rows and laptops."""

    flows: ClassVar = (DISCRETE.name, CONTINUOUS.name)
    in_slices: ClassVar = False

    name: Literal["mlp"]
    width: int = Field(384, ge=8, le=8192, description="Width of the residual stream.")
    blocks: int = Field(2, ge=1, le=128, description="Number of residual blocks.")
    time_width: int = Field(128, ge=8, le=4096, description="Width of the time embedding.")
    dropout: float = Field(0.0, ge=0, lt=1, description="Dropout probability.")

    def maps(self, length: int, symbols: int, shape: Sequence[int] | None = None) -> list[LinearMap]:
        size, width = length * (symbols or 1), self.width
        ends = [LinearMap(size, width, 0 if symbols else 1), LinearMap(width, size)]
        sizes = ((self.time_width, 3 * width), (width, 2 * width), (2 * width, width))
        return [*ends, *(LinearMap(*pair, number=self.blocks) for pair in sizes)]


class Unet(NetworkSettings):
    """Settings of the U-Net of D3PM and UDLM for images. Use 3 scales for 28 x 28 pixels, 4 for 32 x 32."""

    flows: ClassVar = (DISCRETE.name, CONTINUOUS.name)
    in_slices: ClassVar = False
    operations_on_gpu: ClassVar = 1.4e13  # in float32
    logits_kept: ClassVar = 9.0  # bins of a logistic distribution

    name: Literal["unet"]
    channels: int = Field(128, ge=8, le=2048, multiple_of=4, description="Channels at the first scale.")
    multipliers: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1, 2, 2),
        min_length=1,
        description="Width of each scale as a multiple of `channels`; every scale after the first "
        "halves height and width.",
    )
    blocks: int = Field(2, ge=1, le=16, description="Residual blocks per scale; the way up has one more.")
    attention: tuple[Annotated[int, Field(ge=0, le=30)], ...] = Field(
        (1,), description="Scales with attention, counted from 0; the middle always has attention."
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout probability.")
    head: Literal["logistic", "categorical"] = Field(
        "logistic",
        description="Output per pixel and colour: a truncated logistic distribution, or "
        "one free logit for each level.",
    )

    def maps(self, length: int, symbols: int, shape: Sequence[int] | None = None) -> list[LinearMap]:
        """Return the linear maps and convolutions of the network, for images of `shape` (C, H, W) or of
        `length` pixels in a line, with K = `symbols` (0 for real numbers). A 3x3 convolution counts as a map
        of nine times its inputs."""
        colours, *sides = shape or (1, length)
        pixels = math.prod(sides)
        width, maps = self.channels, [LinearMap(9 * colours, self.channels, pixels)]
        skips = [width]

        def block(inputs: int, outputs: int, scale: int, attends: bool) -> None:
            positions = pixels // 4**scale
            maps.extend(LinearMap(9 * size, outputs, positions) for size in (inputs, outputs))
            maps.append(LinearMap(4 * self.channels, outputs))
            if inputs != outputs:
                maps.append(LinearMap(inputs, outputs, positions))
            if attends:
                maps.append(LinearMap(outputs, outputs, positions, number=4))

        for scale, multiplier in enumerate(self.multipliers):
            if scale:
                maps.append(LinearMap(9 * width, width, pixels // 4**scale))
                skips.append(width)
            for _ in range(self.blocks):
                block(width, self.channels * multiplier, scale, scale in self.attention)
                width = self.channels * multiplier
                skips.append(width)
        for attends in (True, False):
            block(width, width, len(self.multipliers) - 1, attends)
        for scale, multiplier in reversed([*enumerate(self.multipliers)]):
            for _ in range(self.blocks + 1):
                block(width + skips.pop(), self.channels * multiplier, scale, scale in self.attention)
                width = self.channels * multiplier
            if scale:
                maps.append(LinearMap(9 * width, width, pixels // 4 ** (scale - 1)))
        outputs = colours * (symbols if self.head == "categorical" and symbols else 2)
        return [*maps, LinearMap(9 * width, outputs, pixels)]

    @property
    def at_once(self) -> float:
        return 0.85  # the way up needs what the way down puts out

    def smaller(self, share: float) -> Self:
        channels = 4 * _shrunk(self.channels // 4, share, 8)
        return self.model_copy(update={"channels": channels, "blocks": _shrunk(self.blocks, share, 1)})

    @model_validator(mode="after")
    def _attention_at_scales(self) -> "Unet":
        for scale in self.attention:
            if scale >= len(self.multipliers):
                raise ValueError(
                    f"attention: there is no scale {scale}, multipliers name 0 to {len(self.multipliers) - 1}"
                )
        return self


class Encoder(NetworkSettings):
    """Settings of a transformer encoder for vectors in continuous flows; a token has two coordinates."""

    flows: ClassVar = (CONTINUOUS.name,)

    name: Literal["encoder"]
    width: int = Field(64, ge=8, le=8192, description="Width of the residual stream.")
    blocks: int = Field(8, ge=1, le=128, description="Number of layers.")
    heads: int = Field(4, ge=1, le=128, description="Number of attention heads; it must divide the width.")

    def maps(self, length: int, symbols: int, shape: Sequence[int] | None = None) -> list[LinearMap]:
        return _attention_blocks(self.width, self.blocks, -(-length // 2))

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Encoder":
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads} does not divide the width {self.width}")
        return self


def _shrunk(number: int, share: float, least: int) -> int:
    return min(number, max(least, round(number * share)))


def _attention_blocks(width: int, blocks: int, positions: int) -> list[LinearMap]:
    sizes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    return [LinearMap(*pair, times=positions, number=blocks) for pair in sizes]


NETWORKS: dict[str, type[NetworkSettings]] = by_name(Transformer, Mlp, Unet, Encoder)
SHIPPED = frozenset(NETWORKS)  # without networks of the user's own, which join the list


def _own_or(values: object, shipped: Callable[[object], object]) -> object:
    """Check settings of a network by the user's own class of that name (`networks.own`), or else by
    `shipped`."""
    name = str(values.get("name") if isinstance(values, Mapping) else getattr(values, "name", ""))
    own = name in NETWORKS and name not in SHIPPED
    return NETWORKS[name].model_validate(values) if own else shipped(values)


if TYPE_CHECKING:
    Network = NetworkSettings
else:
    Network = Annotated[SerializeAsAny[any_of(NETWORKS)], WrapValidator(_own_or)]
