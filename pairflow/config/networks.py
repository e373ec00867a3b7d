"""Settings of the networks."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pairflow.config.check import Settings, any_of, by_name
from pairflow.config.flows import CONTINUOUS, DISCRETE


class NetworkSettings(Settings):
    """Settings of a network.

    `modules` is a dict from flow to the network's class in pairflow.networks. `in_slices` says how several
    threads of a CPU train it: each on a slice of the batch, or all on each operation (`training.slices`),
    whichever was faster (benchmarks/README.md).
    """

    modules: ClassVar[dict[str, str]]
    in_slices: ClassVar[bool] = True


class Transformer(NetworkSettings):
    """Settings of a diffusion transformer with rotary position embeddings and adaptive layer norm."""

    modules: ClassVar = {DISCRETE.name: "transformer.DiffusionTransformer"}

    name: Literal["transformer"]
    width: int = Field(768, ge=8, le=8192, description="Width of the residual stream.")
    blocks: int = Field(12, ge=1, le=128, description="Number of transformer blocks.")
    heads: int = Field(12, ge=1, le=128, description="Attention heads; twice their number divides the width.")
    time_width: int = Field(128, ge=8, le=4096, description="Width of the time embedding.")
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout probability.")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Transformer":
        if self.width % (2 * self.heads):
            raise ValueError(f"heads: 2 x {self.heads} does not divide the width {self.width}")
        return self


class Mlp(NetworkSettings):
    """Settings of a residual multilayer perceptron with adaptive layer norm, for short rows and laptops."""

    modules: ClassVar = {DISCRETE.name: "mlp.MLP", CONTINUOUS.name: "velocity.MlpVelocity"}
    in_slices: ClassVar = False

    name: Literal["mlp"]
    width: int = Field(384, ge=8, le=8192, description="Width of the residual stream.")
    blocks: int = Field(2, ge=1, le=128, description="Number of residual blocks.")
    time_width: int = Field(128, ge=8, le=4096, description="Width of the time embedding.")
    dropout: float = Field(0.0, ge=0, lt=1, description="Dropout probability.")


class Unet(NetworkSettings):
    """Settings of the U-Net of D3PM and UDLM for images. Use 3 scales for 28 x 28 pixels, 4 for 32 x 32."""

    modules: ClassVar = {DISCRETE.name: "unet.UNet", CONTINUOUS.name: "velocity.UNetVelocity"}
    in_slices: ClassVar = False

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

    modules: ClassVar = {CONTINUOUS.name: "velocity.EncoderVelocity"}

    name: Literal["encoder"]
    width: int = Field(64, ge=8, le=8192, description="Width of the residual stream.")
    blocks: int = Field(8, ge=1, le=128, description="Number of layers.")
    heads: int = Field(4, ge=1, le=128, description="Number of attention heads; it must divide the width.")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Encoder":
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads} does not divide the width {self.width}")
        return self


NETWORKS: dict[str, type[NetworkSettings]] = by_name(Transformer, Mlp, Unet, Encoder)

if TYPE_CHECKING:
    Network = Any
else:
    Network = any_of(NETWORKS)
