"""One function per sampler: from source states x0 to data, given a denoiser.

A denoiser is a callable `denoise(x_t, kappa)`: tokens (B, N) and kappa (B,) float32 in, log-probabilities
(B, N, K) over x1 out. All samplers take the same arguments and return (B, N) tokens:

denoise: the denoiser. x0: (B, N) source tokens. steps: updates, over uniform times from t = 0 to 1 - 1e-5.
prediction: the kind of denoiser that `denoise` is, "leave_one_out" or "posterior". Where the update needs the
other kind it is converted, unless `convert` is False. generator: on the device of x0.
greedy_tail: end with the argmax of the denoiser's own output at the last time (one more call), as Duo's
greedy-tail sampler does (Sahoo et al. 2025). For a leave-one-out this is the mode of each token given the
others: sharper than the data, even if exact. temperature: tau of `heat`, which changes what is drawn, but not
an argmax. given: symbols (N,), or (B, N) of each row, that the positions hold from x0 to the end, FREE where
a position is drawn.
guidance: a second denoiser and a weight, for classifier-free guidance; `denoise` is then the conditional one.
InputError for what is not known or out of range.

See docs/method.md, "Sampling" and "Guidance".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from pairflow.arguments import checked_choice, checked_integer, checked_number
from pairflow.flow.arguments import as_integers, as_tokens, require_shape
from pairflow.flow.posterior import (
    ancestral_posterior,
    leave_one_out_to_posterior,
    posterior_to_leave_one_out,
)
from pairflow.flow.schedule import DIFFUSION, Linear

FREE = -1  # in place of a given symbol
MOST_STEPS = 10**6
LAST_TIME = 1 - 1e-5  # at t = 1 the conversion between the two kinds of denoiser diverges

Denoiser = Callable[[Tensor, Tensor], Tensor]

LEAST_LOG = -700.0  # stands for log 0 in a factor with a negative exponent


class Guidance(NamedTuple):
    """Classifier-free guidance (D-CFG; Schiff et al. 2024, "Simple guidance mechanisms").

    With gamma = `weight`, every position is drawn from its guided transition

        p_gamma(x_s | x_t, y) ~ p(x_s | x_t, y)^gamma p(x_s | x_t)^(1 - gamma),

    normalised over the symbols of x_s, where both factors are the sampler's own transitions of a position, by
    the conditional and the unconditional denoiser. A sampler of masks (`guides_symbols`) applies this law to
    the symbols of x1 instead, so that guidance does not change when a position loses its mask. The greedy
    tail takes the mode of the denoisers' outputs combined in the same way. 0 is unconditional, 1 is
    conditional (one denoiser is called for either).
    """

    unconditional: Denoiser
    weight: float


_CONVERSIONS = {"leave_one_out": posterior_to_leave_one_out, "posterior": leave_one_out_to_posterior}
PREDICTIONS = tuple(_CONVERSIONS)  # the kinds of denoiser


@dataclass(frozen=True)
class Sampler:
    """Draws x_s from `update(probabilities, x_t, alpha_t, alpha_s)` (B, N, K), step by step.

    `takes` is the kind of denoiser whose probabilities (B, N, K) float64 the update needs. `guides_symbols`:
    guidance combines these probabilities, and not the updates' transitions.
    """

    update: Callable[[Tensor, Tensor, float, float], Tensor]
    takes: str
    guides_symbols: bool = False

    @torch.no_grad()
    def __call__(
        self,
        denoise: Denoiser,
        x0: Tensor,
        *,
        steps: int,
        prediction: str,
        convert: bool = True,
        schedule: Linear = DIFFUSION,
        greedy_tail: bool = True,
        temperature: float = 1.0,
        generator: Generator | None = None,
        given: Tensor | None = None,
        guidance: Guidance | None = None,
    ) -> Tensor:
        x0 = as_tokens("x0", x0)
        if given is not None:
            given = as_given(given, x0)
        checked_choice("prediction", prediction, PREDICTIONS)
        x, convert = keep(x0, given), convert and prediction != self.takes
        denoise = heat(denoise, temperature)
        if guidance:
            guidance = guidance._replace(unconditional=heat(guidance.unconditional, temperature))
        alphas = alpha_grid(steps, schedule)
        for alpha_t, alpha_s in pairwise(alphas):
            q = self.transition(denoise, x, alpha_t, alpha_s, convert=convert, guidance=guidance)
            x = keep(draw(q, generator), given)
        if not greedy_tail:
            return x
        factors = [(_denoise(factor, x, alphas[-1]), weight) for factor, weight in _powers(denoise, guidance)]
        return keep(_power_law(factors).argmax(dim=-1), given)

    def transition(
        self,
        denoise: Denoiser,
        x_t: Tensor,
        alpha_t: float,
        alpha_s: float,
        *,
        convert: bool,
        guidance: Guidance | None = None,
    ) -> Tensor:
        """Distribution (B, N, K) float64 of every position after one update from alpha_t to alpha_s."""
        predicted = (
            (self._predict(factor, x_t, alpha_t, convert=convert), weight)
            for factor, weight in _powers(denoise, guidance)
        )
        if self.guides_symbols:
            return self.update(_combine(predicted), x_t, alpha_t, alpha_s)
        return _combine((self.update(own, x_t, alpha_t, alpha_s), weight) for own, weight in predicted)

    def _predict(self, denoise: Denoiser, x_t: Tensor, alpha_t: float, *, convert: bool) -> Tensor:
        """Probabilities (B, N, K) float64 of the kind that the update needs."""
        predicted = _denoise(denoise, x_t, alpha_t).double()  # (B, N, K), large if K is
        if convert:
            predicted = _CONVERSIONS[self.takes](predicted, x_t, alpha_t)
        return predicted.exp()


def euler_update(probabilities: Tensor, x_t: Tensor, alpha_t: float, alpha_s: float) -> Tensor:
    """onehot(x_t) + step * v with v = kappa' / (1 - kappa) (probabilities - onehot(x_t)), (B, N, K)."""
    leave = (alpha_s - alpha_t) / (1 - alpha_t)  # step * kappa' / (1 - kappa)
    q = leave * probabilities
    return q.scatter_add_(-1, x_t[..., None], torch.full_like(q[..., :1], 1 - leave))


ancestral = Sampler(ancestral_posterior, takes="leave_one_out")
"""The ancestral sampler of UDLM (Schiff et al. 2024): draw x_s from q(x_s | x_t, x1 = leave-one-out)."""

euler = Sampler(euler_update, takes="posterior")
"""The sampler of discrete flow matching (Gat et al. 2024): Euler steps along the forward velocity."""

unmask = Sampler(euler_update, takes="posterior", guides_symbols=True)
"""The ancestral sampler of MDLM (Sahoo et al. 2024), by the denoiser of absorbing noise: a mask is replaced
with probability (alpha_s - alpha_t) / (1 - alpha_t), at any weight of guidance, and any other symbol stays.
"""


def alpha_grid(steps: int, schedule: Linear = DIFFUSION) -> list[float]:
    """alpha = kappa(t) at the steps + 1 uniform times from 0 to 1 - 1e-5, as Python floats."""
    steps = checked_integer("steps", steps, 1, MOST_STEPS)
    times = torch.linspace(0, LAST_TIME, steps + 1, dtype=torch.float64)
    return schedule.kappa(times).tolist()


class CachedDenoiser:
    """A denoiser that ignores the time, called only for rows that have changed since the last call."""

    def __init__(self, denoise: Denoiser):
        self.denoise = denoise
        self._last: tuple[Tensor, Tensor] | None = None  # the state and the output of the last call

    def __call__(self, x_t: Tensor, kappa: Tensor) -> Tensor:
        if self._last is None or self._last[0].shape != x_t.shape:
            output = self.denoise(x_t, kappa)
        else:
            state, output = self._last
            changed = (x_t != state).any(dim=-1)  # (B,)
            if changed.any():
                output[changed] = self.denoise(x_t[changed], kappa[changed])
        self._last = x_t, output
        return output


def heat(denoise: Denoiser, temperature: float) -> Denoiser:
    """The denoiser with logits divided by tau: x_theta^(1 / tau), normalised. At tau = 1 it is unchanged."""
    checked_number("temperature", temperature, 0.01, 100)
    if temperature == 1:
        return denoise
    return lambda x_t, kappa: torch.log_softmax(denoise(x_t, kappa) / temperature, dim=-1)


def draw(probabilities: Tensor, generator: Generator | None = None) -> Tensor:
    """One symbol per position by inversion of the cumulative distribution. (B, N, K) -> (B, N)."""
    cumulative = probabilities.cumsum(dim=-1)  # (B, N, K)
    total = cumulative[..., -1:]
    u = torch.rand(total.shape, generator=generator, device=total.device, dtype=total.dtype)
    symbols = torch.searchsorted(cumulative, u * total, right=True)[..., 0]  # (B, N)
    return symbols.clamp_(max=probabilities.shape[-1] - 1)


def keep(x: Tensor, given: Tensor | None) -> Tensor:
    """The state x (B, N) with the given symbols, (N,) or (B, N), in place; x itself if there are none."""
    return x if given is None else torch.where(given == FREE, x, given)


def as_given(given: Tensor, x0: Tensor) -> Tensor:
    """Given symbols, (N,) or (B, N), for states x0 (B, N), as int64; InputError for anything else."""
    given = as_integers("given", given)
    require_shape("given", given, x0.shape if given.ndim == 2 else x0.shape[1:])
    return given


def _denoise(denoise: Denoiser, x: Tensor, alpha: float) -> Tensor:
    log_p = denoise(x, torch.full((len(x),), alpha, device=x.device))
    require_shape("denoiser", log_p, (*x.shape, log_p.shape[-1]))
    return log_p


def _powers(denoise: Denoiser, guidance: Guidance | None) -> list[tuple[Denoiser, float]]:
    """The denoisers whose transitions are multiplied, with their exponents; none with exponent 0."""
    if guidance is None:
        return [(denoise, 1.0)]
    powers = [(denoise, guidance.weight), (guidance.unconditional, 1 - guidance.weight)]
    return [(factor, weight) for factor, weight in powers if weight]


def _combine(factors: Iterable[tuple[Tensor, float]]) -> Tensor:
    """The power law (B, N, K) of probabilities (B, N, K); a single factor has the weight 1, and is it."""
    weighted = [*factors]
    if len(weighted) == 1:
        return weighted[0][0]
    return _power_law([(factor.log(), weight) for factor, weight in weighted]).softmax(dim=-1)


def _power_law(factors: list[tuple[Tensor, float]]) -> Tensor:
    """The weighted sum (B, N, K) of log-probabilities (B, N, K); the weights add up to 1.

    It is -inf where a factor with a positive weight is, whatever the others are.
    """
    if len(factors) == 1:
        return factors[0][0]
    impossible = torch.stack([factor == -torch.inf for factor, weight in factors if weight > 0]).any(dim=0)
    total = sum(weight * factor.double().clamp(min=LEAST_LOG) for factor, weight in factors)
    return torch.as_tensor(total).masked_fill(impossible, -torch.inf)
