"""A corruption process: its source distribution, noising, network read-out, losses and samplers.

Time runs from noise (t = 0) to data (t = 1). kappa(t), also written alpha, is the probability that a position
already holds its data symbol. See docs/method.md, "Noising and losses".
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from pairflow.arguments import checked_choice, checked_integer, checked_number
from pairflow.config import SAMPLERS
from pairflow.errors import InputError
from pairflow.flow.arguments import as_integers, as_tokens, each_row, require_below, require_shape
from pairflow.flow.losses import Level, Loss, absorbing_nelbo, cross_entropy, uniform_nelbo
from pairflow.flow.posterior import posterior_to_leave_one_out
from pairflow.flow.samplers import (
    FREE,
    PREDICTIONS,
    CachedDenoiser,
    Denoiser,
    Guidance,
    ancestral,
    as_given,
    euler,
    unmask,
)
from pairflow.flow.schedule import DIFFUSION, Linear
from pairflow.limits import MAX_VOCABULARY

SMALLEST_NOISE_TIME = 1e-3  # training never sees less noise than this, so no loss weight diverges

MOST_ROWS, MOST_BYTES = 1024, 2**29  # of a network's output in float64: part of the random streams

CPU_TOKENS = 2**16  # in a network at once: with more a U-Net takes twice as long per row, out of the caches

Device = torch.device | str | None
Network = Callable[..., Tensor]
"""Tokens (B, N) and sigma = -log kappa (B,) in, logits (B, N, K) out: the modules of `pairflow.networks`.

Those of conditional models take a `label` too: integers (B,), one for all, or numbers (B, P), as
`networks.layers.TimeEmbedding` has them.
"""


class Corruption(ABC):
    """What training and sampling need to know of a noise; `Uniform` and `Absorbing` are the two kinds.

    symbols: number of symbols that states and logits have. mask: the symbol that stands for a mask in states,
    or None. losses: by the names that settings use. InputError unless K is at least 2 and the mask is below
    it.
    """

    symbols: int
    mask: int | None
    losses: ClassVar[dict[str, Loss]]

    def __init__(self, vocabulary_size: int, mask: int | None = None):
        self.symbols = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
        self.mask = None if mask is None else checked_integer("mask", mask, 0, self.symbols - 1)

    @abstractmethod
    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        """Draw source states x0 of `shape`, the states at t = 0."""

    @abstractmethod
    def log_probabilities(self, network: Network, x_t: Tensor, kappa: Tensor) -> Tensor:
        """The network's log x_theta (B, N, K) float32 from tokens x_t (B, N) and kappa (B,) or a number.

        InputError unless these have such shapes, and the network's logits the shape (B, N, K).
        """

    @abstractmethod
    def bound(
        self, log_p: Tensor, prediction: str, x1: Tensor, x_t: Tensor, alpha: Level, derivative: Level
    ) -> Tensor:
        """The NELBO (B, N) in nats, for log x_theta of the kind `prediction` (see `Loss.learns`)."""

    def _logits(self, network: Network, x_t: Tensor, sigma: Tensor) -> Tensor:
        logits = network(x_t, sigma)
        require_shape("network", logits, (*x_t.shape, self.symbols))
        return logits.float()  # (B, N, K)

    def denoiser(self, network: Network, label: Tensor | None = None) -> Denoiser:
        """`log_probabilities` of the network, given a label, in the form that a sampler calls."""
        return partial(self.log_probabilities, partial(in_parts, network, label=label))

    def sample(
        self,
        network: Network,
        x0: Tensor,
        *,
        sampler: str,
        steps: int,
        prediction: str,
        conversion: str = "exact",
        greedy_tail: bool = True,
        temperature: float = 1.0,
        generator: Generator | None = None,
        given: Tensor | None = None,
        label: Tensor | int | None = None,
        guidance: float = 1.0,
        schedule: Linear = DIFFUSION,
        **own: Any,
    ) -> Tensor:
        """Draw tokens (B, N) from source states x0 (B, N); `flow.samplers` explains the settings.

        With a `schedule` that does not begin at 0, x0 are states on the way from noise to data.

        A `label`, of each row (B, ...) or of all, is what the samples are to be; `guidance` is its weight.
        `own` are settings that only some samplers take; the others leave them out. InputError for a setting
        that is not known or out of range, and for tokens that are no symbols.
        """
        update = self.sampler(sampler)
        checked_choice("conversion", conversion, ("exact", "none"))
        checked_number("guidance", guidance, 0, 100)
        x0 = as_tokens("x0", x0)
        require_below("x0", x0, self.symbols)
        if given is not None:
            given = as_given(given, x0)
            require_below("given", given, self.symbols, low=FREE)
        if label is not None:
            label = torch.as_tensor(label, device=x0.device)
            if label.ndim < 2:
                label = as_integers("label", each_row("label", label, len(x0), dimensions=1))
            else:
                require_shape("label", label, (len(x0), *label.shape[1:]))
        elif guidance != 1:
            raise InputError(f"guidance: expected 1 where there is no label, found {guidance!r}")
        return update(
            self.denoiser(network, label),
            x0,
            steps=steps,
            prediction=prediction,
            convert=conversion == "exact",
            greedy_tail=greedy_tail,
            temperature=temperature,
            generator=generator,
            given=given,
            guidance=None if label is None else Guidance(self.denoiser(network), guidance),
            schedule=schedule,
            **_taken(sampler, own),
        )

    def sampler(self, name: str) -> Callable[..., Tensor]:
        """The sampler of that name (see `flow.samplers`); InputError if there is none for this noise."""
        rule = SAMPLERS[checked_choice("sampler", name, SAMPLERS)]
        return getattr(import_module(f"pairflow.flow.{rule.module}"), name)

    def rows_at_once(self, length: int) -> int:
        """A power of two, 1,024 at most, whose log-probabilities (B, N, K) take half a GiB at most."""
        rows = min(MOST_ROWS, max(1, MOST_BYTES // (8 * length * self.symbols)))
        return 1 << (rows.bit_length() - 1)


class Uniform(Corruption):
    """Uniform-state noise (UDLM, Schiff et al. 2024): a noised position holds any of the K symbols.

    The source is uniform over K^N, and the network is given sigma = -log kappa. A mask in the vocabulary is
    a symbol like any other.
    """

    losses: ClassVar = {
        "nelbo": Loss(uniform_nelbo, "leave_one_out"),
        "cross_entropy": Loss(cross_entropy, "posterior"),
    }

    def __init__(self, vocabulary_size: int, mask: int | None = None):
        super().__init__(vocabulary_size)

    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        return torch.randint(self.symbols, shape, generator=generator, device=device)

    def log_probabilities(self, network: Network, x_t: Tensor, kappa: Tensor) -> Tensor:
        x_t, kappa = _state(x_t, kappa)
        return F.log_softmax(self._logits(network, x_t, -kappa.log()), dim=-1)

    def bound(
        self, log_p: Tensor, prediction: str, x1: Tensor, x_t: Tensor, alpha: Level, derivative: Level
    ) -> Tensor:
        if checked_choice("prediction", prediction, PREDICTIONS) == "posterior":
            log_p = posterior_to_leave_one_out(log_p, x_t, alpha)
        return uniform_nelbo(log_p, x1, x_t, alpha, derivative)


class Absorbing(Corruption):
    """Absorbing-state noise (MDLM, Sahoo et al. 2024): a noised position holds the mask.

    The source is all masks, and the network is not given the time. `mask` is the vocabulary's own mask
    symbol; without one, symbol K is added. The network is read by MDLM's SUBS parameterisation: the mask is
    never predicted, and a position that is not masked predicts itself. Posterior and leave-one-out are then
    the same, and the ancestral update is the Euler update.
    """

    mask: int
    losses: ClassVar = {
        "nelbo": Loss(absorbing_nelbo, "posterior"),
        "cross_entropy": Loss(cross_entropy, "posterior"),
    }

    def __init__(self, vocabulary_size: int, mask: int | None = None):
        super().__init__(vocabulary_size, mask)
        if mask is None:
            self.mask, self.symbols = self.symbols, self.symbols + 1

    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        return torch.full(shape, self.mask, device=device)

    def log_probabilities(self, network: Network, x_t: Tensor, kappa: Tensor) -> Tensor:
        x_t, kappa = _state(x_t, kappa)
        logits = self._logits(network, x_t, torch.zeros_like(kappa))
        logits = logits.index_fill(-1, torch.tensor([self.mask], device=logits.device), -torch.inf)
        itself = torch.full_like(logits, -torch.inf).scatter_(-1, x_t[..., None], 0)  # 0 at x_t, else -inf
        return torch.where((x_t == self.mask)[..., None], F.log_softmax(logits, dim=-1), itself)

    def bound(
        self, log_p: Tensor, prediction: str, x1: Tensor, x_t: Tensor, alpha: Level, derivative: Level
    ) -> Tensor:
        checked_choice("prediction", prediction, PREDICTIONS)
        return absorbing_nelbo(log_p, x1, x_t, alpha, derivative)

    def sampler(self, name: str) -> Callable[..., Tensor]:
        if super().sampler(name) not in (ancestral, euler):
            raise InputError(f"sampler: {name} is not for masks")
        return unmask

    def denoiser(self, network: Network, label: Tensor | None = None) -> Denoiser:
        return CachedDenoiser(super().denoiser(network, label))


def _taken(sampler: str, own: dict[str, Any]) -> dict[str, Any]:
    """Those settings of some samplers that this one takes; InputError for one that none takes."""
    known = {key for rule in SAMPLERS.values() for key in rule.takes}
    if unknown := sorted(own.keys() - known):
        raise InputError(f"{unknown[0]}: no sampler has such a setting")
    return {key: own[key] for key in SAMPLERS[sampler].takes if key in own}


def stratified_times(batch: int, generator: Generator | None = None, device: Device = None) -> Tensor:
    """One data time per row and per stratum: t = (1 - 1e-3) (i + u_i) / batch, each row with its own u_i.

    The noise time 1 - t lies in [1e-3, 1], so t lies in [0, 1 - 1e-3]. Returns (batch,) float32, ascending.
    """
    strata = torch.arange(batch, device=device)
    u = torch.rand(batch, generator=generator, device=device)
    return (1 - SMALLEST_NOISE_TIME) * (strata + u) / batch


def interpolate(x0: Tensor, x1: Tensor, kappa: Level, generator: Generator | None = None) -> Tensor:
    """Draw x_t on the mixture path: every position holds x1 with probability kappa, else x0.

    x0, x1: (B, N) integer tokens; kappa: (B,) in [0, 1], or a number. Returns (B, N) int64.
    InputError for other shapes and types.
    """
    x1 = as_tokens("x1", x1)
    x0, kappa = as_tokens("x0", x0, x1.shape), each_row("kappa", kappa, len(x1))
    u = torch.rand(x1.shape, generator=generator, device=x1.device)
    return torch.where(u < kappa, x1, x0)


def _state(x_t: Tensor, kappa: Level) -> tuple[Tensor, Tensor]:
    """Tokens (B, N) int64 and kappa (B,) for a network; InputError for other shapes and types."""
    x_t = as_tokens("x_t", x_t)
    level = each_row("kappa", kappa, len(x_t), dimensions=1)
    return x_t, torch.as_tensor(level, device=x_t.device).expand(len(x_t))


def in_parts(network: Network, x_t: Tensor, sigma: Tensor, label: Tensor | None = None) -> Tensor:
    """The network's output (B, N, K), with labels if there are any; on a CPU for a few rows at a time,
    which is faster.
    """
    rows = max(1, CPU_TOKENS // x_t.shape[1]) if x_t.device.type == "cpu" else len(x_t)
    inputs = [x_t.split(rows), sigma.split(rows)]
    if label is None:
        parts = [network(*part) for part in zip(*inputs, strict=True)]
    else:
        labels = label.expand(len(x_t), *label.shape[1:]).split(rows)
        parts = [network(*part, label=of) for *part, of in zip(*inputs, labels, strict=True)]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


CORRUPTIONS: dict[str, type[Corruption]] = {"uniform": Uniform, "absorbing": Absorbing}
