"""The kinds of noise of discrete flows: drawing and adding noise, reading the network, and sampling.

Time runs from noise (t = 0) to data (t = 1). kappa(t), also written alpha, is the probability that a position
holds its data symbol. See docs/method.md, "Noising and losses".
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from pairflow.arguments import checked_choice, checked_integer
from pairflow.config import SAMPLERS, parse_method
from pairflow.errors import InputError
from pairflow.flow.arguments import as_tokens, each_row, require_below, require_shape
from pairflow.flow.losses import Level, Loss, absorbing_nelbo, cross_entropy, frequency_nelbo, uniform_nelbo
from pairflow.flow.plan import SamplingPlan
from pairflow.flow.posterior import PREDICTIONS, posterior_to_leave_one_out
from pairflow.flow.samplers import FREE, CachedDenoiser, Denoiser, Sampler, ancestral, euler, unmask
from pairflow.limits import MAX_VOCABULARY

SMALLEST_NOISE_TIME = 1e-3  # the least 1 - t in training: loss weights diverge at t = 1

# Largest batch of samples: rows, and bytes of float64 outputs. A change of either changes a seed's samples.
MOST_ROWS, MOST_BYTES = 1024, 2**29
# Tokens per forward pass on a CPU: larger batches fall out of cache and double a U-Net's time per row.
CPU_TOKENS = 2**16
# From so many symbols on, sampling computes only the positions that can change, and on a CPU so many
# probabilities at once. A change of MANY_SYMBOLS changes a seed's samples.
MANY_SYMBOLS, PART_VALUES = 512, 2**20

Device = torch.device | str | None
Network = Callable[..., Tensor]
"""A module of `pairflow.networks`: it maps tokens (B, N) and sigma = -log kappa (B,) to logits (B, N, K).

The network of a conditional model also takes `label`: integers (B,), one for all rows, or numbers (B, P) of
P properties, as `networks.layers.TimeEmbedding` explains.
"""


class Corruption(ABC):
    """The noise of a discrete flow: `Uniform`, `Frequencies` or `Absorbing`.

    Attributes:
        symbols: the number of symbols in states and logits, with an added mask.
        mask: the symbol of a masked position, or None.
        losses: the losses by their names in the settings.
        pi: the probabilities (N, K) of the symbols of noise by frequency, else None.

    Args:
        vocabulary_size: K, the number of symbols of the data, at least 2.
        mask: the mask symbol of the vocabulary, if it has one.

    Raises:
        InputError: if K or the mask is out of range.
    """

    symbols: int
    mask: int | None
    losses: dict[str, Loss]
    pi: Tensor | None = None

    def __init__(self, vocabulary_size: int, mask: int | None = None):
        self.symbols = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
        self.mask = None if mask is None else checked_integer("mask", mask, 0, self.symbols - 1)

    @abstractmethod
    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        """Draw source states x0 at t = 0: int64 tokens of `shape`, usually (B, N)."""

    @abstractmethod
    def log_probabilities(
        self, network: Network, x_t: Tensor, kappa: Tensor, where: Tensor | None = None
    ) -> Tensor:
        """Return the network's prediction of x1, the log-probabilities log x_theta.

        Args:
            network: the denoiser.
            x_t: noised tokens (B, N).
            kappa: kappa(t), the probability that a position holds its data symbol, (B,) or a number.
            where: (B, N) bool, true at the M positions to compute; the network must take it by this name.

        Returns:
            (B, N, K) float32, or (M, K) with `where`.

        Raises:
            InputError: if an argument or the network's logits have the wrong shape.
        """

    def bound(
        self, log_p: Tensor, prediction: str, x1: Tensor, x_t: Tensor, alpha: Level, derivative: Level
    ) -> Tensor:
        """Compute the NELBO (B, N), an upper bound on -log p(x1), in nats per token.

        `log_p` (B, N, K) is a denoiser's prediction of x1, and `prediction` the denoiser's kind,
        "leave_one_out" or "posterior". x1 are data and x_t noised tokens (B, N); `alpha` is kappa(t) and
        `derivative` kappa'(t), each (B,) or a number. Raises InputError for an unknown kind, wrong shapes or
        dtypes.
        """
        nelbo = self.losses["nelbo"]
        is_posterior = checked_choice("prediction", prediction, PREDICTIONS) == "posterior"
        if is_posterior and nelbo.learns != "posterior":  # with masks both kinds are equal
            log_p = posterior_to_leave_one_out(log_p, x_t, alpha, self.pi)
        return nelbo.function(log_p, x1, x_t, alpha, derivative)

    def _logits(self, network: Network, x_t: Tensor, sigma: Tensor, where: Tensor | None) -> Tensor:
        logits = network(x_t, sigma) if where is None else network(x_t, sigma, where=where)
        shape = x_t.shape if where is None else logits.shape[:1]
        require_shape("network", logits, (*shape, self.symbols))
        # Under autocast logits may come in bfloat16, but softmax and losses are computed in float32.
        return logits.float()  # (B, N, K) or (M, K)

    def denoiser(self, network: Network, label: Tensor | None = None) -> Denoiser:
        """Return the network, given `label`, as a denoiser: a function of x_t and kappa.

        It is `log_probabilities`, with the network's rows in parts on a CPU.
        """
        return partial(self.log_probabilities, partial(in_parts, network, label=label))

    def sample(
        self, network: Network, x0: Tensor, plan: SamplingPlan, generator: Generator | None = None
    ) -> Tensor:
        """Return samples (B, N), drawn from source states x0 (B, N) by the plan's sampler.

        `generator` draws the random numbers, on the device of x0. Raises InputError if the plan's given
        symbols or labels do not fit x0, or a token is not a symbol.
        """
        sampler, x0 = self.sampler(plan.sampler), as_tokens("x0", x0)
        require_below("x0", x0, self.symbols)
        plan = plan.fit(x0)
        if plan.given is not None:
            require_below("given", plan.given, self.symbols, low=FREE)
        return sampler(
            self.denoiser(network, plan.labels),
            x0,
            plan,
            unconditional=None if plan.labels is None else self.denoiser(network),
            generator=generator,
            rows=self.rows_by_position(x0),
        )

    def sampler(self, name: str) -> Sampler:
        """Return the sampler `name` for this noise. Raise InputError if there is no such sampler."""
        module = SAMPLERS[checked_choice("sampler", name, SAMPLERS)]
        return getattr(import_module(f"pairflow.flow.{module}"), name)

    def rows_at_once(self, length: int) -> int:
        """Return how many rows of N = `length` tokens a network should get at once.

        It is a power of two up to 1,024, such that the outputs (rows, N, K) take 512 MiB at most.
        """
        rows = min(MOST_ROWS, max(1, MOST_BYTES // (8 * length * self.symbols)))
        return 1 << (rows.bit_length() - 1)

    def rows_by_position(self, x: Tensor) -> int | None:
        """Return how many rows of x (B, N) a sampler takes at once if it skips positions that cannot change.

        It returns None, for all positions, if there are few symbols: computing only some changes a seed's
        samples, and with few symbols its speed has not been measured.
        """
        if self.symbols < MANY_SYMBOLS:
            return None
        return max(1, PART_VALUES // (x.shape[1] * self.symbols)) if x.device.type == "cpu" else len(x)


class Uniform(Corruption):
    """Uniform-state noise (UDLM, Schiff et al. 2024): a noised position holds any of the K symbols.

    The source is uniform over the K^N rows. The network takes sigma = -log kappa. A mask in the vocabulary is
    an ordinary symbol.
    """

    def __init__(self, vocabulary_size: int, mask: int | None = None):
        super().__init__(vocabulary_size)
        self.losses = {
            "nelbo": Loss(uniform_nelbo, "leave_one_out"),
            "cross_entropy": Loss(cross_entropy, "posterior"),
        }

    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        return torch.randint(self.symbols, shape, generator=generator, device=device)

    def log_probabilities(
        self, network: Network, x_t: Tensor, kappa: Tensor, where: Tensor | None = None
    ) -> Tensor:
        x_t, kappa = _state(x_t, kappa)
        return F.log_softmax(self._logits(network, x_t, -kappa.log(), where), dim=-1)


class Frequencies(Uniform):
    """Noise by frequency: at each position a noised symbol has the probabilities pi (N, K) of that position.

    Uniform noise is the special case pi = 1 / K. See docs/method.md, "Noise by frequency".

    Args:
        pi: (N, K) float64, positive, with a sum of 1 at each position (`pairing.prior.frequencies`).

    Raises:
        InputError: if pi is something else.
    """

    pi: Tensor

    def __init__(self, pi: Tensor):
        super().__init__(pi.shape[-1])
        if pi.ndim != 2 or not (pi > 0).all() or ((pi.sum(-1) - 1).abs() > 1e-9).any():
            raise InputError("pi: expected positive numbers (N, K) with a sum of 1 at each position")
        self.pi, self.cumulative = pi, pi.cumsum(-1)
        # Rounding may leave the last sum below 1: a u above it would draw a symbol K, which does not exist.
        self.cumulative[:, -1] = 1.0
        self.losses["nelbo"] = Loss(partial(frequency_nelbo, pi=pi), "leave_one_out")

    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        u = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
        require_shape("source", u, (shape[0], len(self.pi)))
        # The first symbol with a cumulative probability above u.
        cumulative = self.cumulative.to(u.device)
        return torch.searchsorted(cumulative, u.T.contiguous(), right=True).T.contiguous()

    def sampler(self, name: str) -> Sampler:
        return replace(super().sampler(name), pi=self.pi)


class Absorbing(Corruption):
    """Absorbing-state noise (MDLM, Sahoo et al. 2024): a noised position holds the mask.

    The source is all masks, and the network's sigma is always 0. If the vocabulary has no `mask`, symbol K is
    added. MDLM's SUBS parameterisation: the mask is never predicted, and a position without a mask predicts
    its symbol. Posterior and leave-one-out are then equal, and so are the ancestral and the Euler update.
    """

    mask: int

    def __init__(self, vocabulary_size: int, mask: int | None = None):
        super().__init__(vocabulary_size, mask)
        self.losses = {
            "nelbo": Loss(absorbing_nelbo, "posterior"),
            "cross_entropy": Loss(cross_entropy, "posterior"),
        }
        if mask is None:
            self.mask, self.symbols = self.symbols, self.symbols + 1

    def source(
        self, shape: tuple[int, ...], generator: Generator | None = None, device: Device = None
    ) -> Tensor:
        return torch.full(shape, self.mask, device=device)

    def log_probabilities(
        self, network: Network, x_t: Tensor, kappa: Tensor, where: Tensor | None = None
    ) -> Tensor:
        x_t, kappa = _state(x_t, kappa)
        logits = self._logits(network, x_t, torch.zeros_like(kappa), where)
        x_t = x_t if where is None else x_t[where]
        logits = logits.index_fill(-1, torch.tensor([self.mask], device=logits.device), -torch.inf)
        itself = torch.full_like(logits, -torch.inf).scatter_(-1, x_t[..., None], 0)  # 0 at x_t, else -inf
        return torch.where((x_t == self.mask)[..., None], F.log_softmax(logits, dim=-1), itself)

    def sampler(self, name: str) -> Sampler:
        if super().sampler(name) not in (ancestral, euler):
            raise InputError(f"sampler: {name} is not for masks")
        # Both updates are the same for masks.
        return replace(unmask, mask=self.mask)

    def denoiser(self, network: Network, label: Tensor | None = None) -> Denoiser:
        # The network ignores the time, so rows that did not change keep their output: the cache of MDLM.
        denoiser = super().denoiser
        return CachedDenoiser(lambda *state, label=label: denoiser(network, label)(*state), label)


def stratified_times(batch: int, generator: Generator | None = None, device: Device = None) -> Tensor:
    """Draw stratified times t = (1 - 1e-3) (i + u_i) / B for i = 0..B-1, u_i independent and uniform (MDLM).

    Stratification lowers the variance of the loss. The noise time 1 - t stays in [1e-3, 1].

    Args:
        batch: B.
        generator: random numbers, on `device`.
        device: where the times are made.

    Returns:
        t, (B,) float32, ascending.
    """
    strata = torch.arange(batch, device=device)
    u = torch.rand(batch, generator=generator, device=device)
    return (1 - SMALLEST_NOISE_TIME) * (strata + u) / batch


def interpolate(x0: Tensor, x1: Tensor, kappa: Level, generator: Generator | None = None) -> Tensor:
    """Draw x_t on the mixture path (Gat et al. 2024): a position holds x1 with probability kappa, else x0.

    Args:
        x0: source tokens (B, N).
        x1: data tokens (B, N).
        kappa: the probability kappa(t) in [0, 1], (B,) or a number.
        generator: random numbers, on the device of x1.

    Returns:
        x_t, (B, N) int64.

    Raises:
        InputError: if shapes or dtypes are wrong.
    """
    x1 = as_tokens("x1", x1)
    x0, kappa = as_tokens("x0", x0, x1.shape), each_row("kappa", kappa, len(x1))
    u = torch.rand(x1.shape, generator=generator, device=x1.device)
    # u is in [0, 1), so that `<` always gives x1 at kappa = 1 and never at kappa = 0.
    return torch.where(u < kappa, x1, x0)


def _state(x_t: Tensor, kappa: Level) -> tuple[Tensor, Tensor]:
    """Return the noised tokens x_t as (B, N) int64, and the level kappa, a number or (B,), as (B,).

    Raises InputError if shapes or dtypes are wrong.
    """
    x_t = as_tokens("x_t", x_t)
    level = each_row("kappa", kappa, len(x_t), dimensions=1)
    return x_t, torch.as_tensor(level, device=x_t.device).expand(len(x_t))


def in_parts(
    network: Network,
    x_t: Tensor,
    sigma: Tensor,
    label: Tensor | None = None,
    where: Tensor | None = None,
) -> Tensor:
    """Compute the network's output (B, N, K) at x_t (B, N) and sigma (B,), on a CPU a few rows at a time.

    `label` has the labels (B, ...) of the rows, or one for all of them; None calls the network without
    labels. With `where` (B, N) bool, compute only the output (M, K) at its M true positions.
    """
    labels = None if label is None else label.expand(len(x_t), *label.shape[1:])
    if where is not None:
        rows = where.any(dim=1)
        x_t, sigma, where = x_t[rows], sigma[rows], where[rows]
        labels = None if labels is None else labels[rows]
    size = max(1, CPU_TOKENS // x_t.shape[1] if x_t.device.type == "cpu" else len(x_t))
    parts = []
    # `or 1`: a batch without rows is computed, too, because only the network knows the shape of its output.
    for start in range(0, len(x_t) or 1, size):
        part = slice(start, start + size)
        options = {} if labels is None else {"label": labels[part]}
        if where is None:
            parts.append(network(x_t[part], sigma[part], **options))
        elif getattr(network, "BY_POSITION", False):
            parts.append(network(x_t[part], sigma[part], where=where[part], **options))
        else:
            # This network cannot skip positions.
            parts.append(network(x_t[part], sigma[part], **options)[where[part]])
    return torch.cat(parts) if len(parts) > 1 else parts[0]


CORRUPTIONS: dict[str, type[Corruption]] = {"uniform": Uniform, "absorbing": Absorbing}


def corruption_of(
    method: str, vocabulary_size: int | None, mask: int | None, pi: Tensor | None = None
) -> Corruption:
    """Return the noise of the method with the name `method`, for data of K = `vocabulary_size` symbols.

    `mask` is the mask among these symbols, if any. With `pi` (N, K), the probabilities of the symbols at each
    position, it is noise by frequency. Raises InputError if K is None.
    """
    if vocabulary_size is None:
        raise InputError(f"'{method}' as a discrete flow needs token rows; expected a number of symbols (K)")
    if pi is not None:
        return Frequencies(pi)
    return CORRUPTIONS[parse_method(method).corruption](vocabulary_size, mask)
