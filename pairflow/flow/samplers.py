"""The samplers `ancestral`, `euler` and `unmask`: from rows of noise x0 to data, with a denoiser.

All are instances of `Sampler`; its call has the arguments. See docs/method.md, "Sampling" and "Guidance".
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

FREE = -1  # marks a position that is sampled, among fixed symbols
MOST_STEPS = 10**6
LAST_TIME = 1 - 1e-5  # at t = 1 the conversion between the two kinds of denoiser diverges

Denoiser = Callable[[Tensor, Tensor], Tensor]
"""A function from tokens x_t (B, N) and kappa (B,) float32 to log-probabilities (B, N, K) over x1."""

LEAST_LOG = -700.0  # replaces log 0 in a factor with a negative exponent; exp(-700) is still a normal float64


class Guidance(NamedTuple):
    """Classifier-free guidance (D-CFG; Schiff et al. 2024, "Simple guidance mechanisms").

    With gamma = `weight`, every position is drawn from its guided transition

        p_gamma(x_s | x_t, y) ~ p(x_s | x_t, y)^gamma p(x_s | x_t)^(1 - gamma),

    normalised over the symbols of x_s. Both factors are the sampler's transitions of a position: by the
    conditional and by the unconditional denoiser. A sampler of masks (`guides_symbols`) combines the
    predictions of x1 instead, so that guidance does not change when a position loses its mask. The greedy
    tail takes the mode of the combined predictions. Weight 0 is unconditional and 1 conditional sampling;
    each calls only one denoiser.
    """

    unconditional: Denoiser
    weight: float


_CONVERSIONS = {"leave_one_out": posterior_to_leave_one_out, "posterior": leave_one_out_to_posterior}
PREDICTIONS = tuple(_CONVERSIONS)  # the kinds of denoiser


@dataclass(frozen=True)
class Sampler:
    """A sampler. In each step it draws x_s from `update(probabilities, x_t, alpha_t, alpha_s)`, (B, N, K).

    Attributes:
        update: the transition of every position, from a denoiser's probabilities (B, N, K) float64.
        takes: the kind of denoiser that `update` needs, "leave_one_out" or "posterior".
        guides_symbols: whether guidance combines these probabilities instead of the transitions.
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
        """Draw samples in T = `steps` updates, over uniform times from t = 0 to 1 - 1e-5.

        Args:
            denoise: the denoiser; with `guidance`, the conditional one.
            x0: source tokens (B, N).
            steps: T, at least 1.
            prediction: the kind of `denoise`, "leave_one_out" or "posterior".
            convert: whether to convert its output to the kind that the update needs.
            schedule: kappa(t).
            greedy_tail: end with the argmax of the denoiser's output at the last time, in one more call, as
                the greedy-tail sampler of Duo (Sahoo et al. 2025) does. For an exact leave-one-out this is
                the mode of each token given all other tokens, so samples are sharper than the data.
            temperature: tau, 0.01 to 100. The logits are divided by it, which does not change an argmax.
            generator: random numbers, on the device of x0.
            given: fixed symbols (N,), or (B, N) of each row, FREE where a position is sampled.
            guidance: the unconditional denoiser and the weight, for classifier-free guidance.

        Returns:
            Tokens (B, N).

        Raises:
            InputError: if an argument is unknown or out of range.
        """
        x0 = as_tokens("x0", x0)
        if given is not None:
            given = as_given(given, x0)
        checked_choice("prediction", prediction, PREDICTIONS)
        x, convert = with_given(x0, given), convert and prediction != self.takes
        # The temperature acts on the network's logits, so it comes before any conversion.
        denoise = tempered(denoise, temperature)
        if guidance:
            guidance = guidance._replace(unconditional=tempered(guidance.unconditional, temperature))
        alphas = alpha_grid(steps, schedule)
        for alpha_t, alpha_s in pairwise(alphas):
            q = self.transition(denoise, x, alpha_t, alpha_s, convert=convert, guidance=guidance)
            x = with_given(draw(q, generator), given)
        if not greedy_tail:
            return x
        factors = [(_denoise(factor, x, alphas[-1]), weight) for factor, weight in _powers(denoise, guidance)]
        return with_given(_power_law(factors).argmax(dim=-1), given)

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
        """Return the probabilities (B, N, K) float64 of every position after one update to alpha_s."""
        predicted = (
            (self._predict(factor, x_t, alpha_t, convert=convert), weight)
            for factor, weight in _powers(denoise, guidance)
        )
        if self.guides_symbols:
            return self.update(_combine(predicted), x_t, alpha_t, alpha_s)
        return _combine((self.update(p, x_t, alpha_t, alpha_s), weight) for p, weight in predicted)

    def _predict(self, denoise: Denoiser, x_t: Tensor, alpha_t: float, *, convert: bool) -> Tensor:
        """Return probabilities (B, N, K) float64 over x1, of the kind that the update needs."""
        predicted = _denoise(denoise, x_t, alpha_t).double()  # (B, N, K)
        if convert:
            predicted = _CONVERSIONS[self.takes](predicted, x_t, alpha_t)
        return predicted.exp()


def euler_update(probabilities: Tensor, x_t: Tensor, alpha_t: float, alpha_s: float) -> Tensor:
    """onehot(x_t) + step * v with v = kappa' / (1 - kappa) (probabilities - onehot(x_t)), (B, N, K)."""
    leave = (alpha_s - alpha_t) / (1 - alpha_t)  # step * kappa' / (1 - kappa)
    q = leave * probabilities
    # In place: tensors (B, N, K) are large where K is in the thousands.
    return q.scatter_add_(-1, x_t[..., None], torch.full_like(q[..., :1], 1 - leave))


ancestral = Sampler(ancestral_posterior, takes="leave_one_out")
"""Ancestral sampling of UDLM (Schiff et al. 2024): draw x_s from `ancestral_posterior` of a leave-one-out."""

euler = Sampler(euler_update, takes="posterior")
"""Euler steps of discrete flow matching (Gat et al. 2024), or tau-leaping (Campbell et al. 2022)."""

unmask = Sampler(euler_update, takes="posterior", guides_symbols=True)
"""Ancestral sampling of MDLM (Sahoo et al. 2024), for absorbing noise: a mask is replaced with probability
(alpha_s - alpha_t) / (1 - alpha_t), at any guidance weight. All other symbols stay.
"""


def alpha_grid(steps: int, schedule: Linear = DIFFUSION) -> list[float]:
    """Return alpha = kappa(t) at the steps + 1 uniform times from 0 to 1 - 1e-5, as Python floats."""
    steps = checked_integer("steps", steps, 1, MOST_STEPS)
    # In float32 the last 1 - alpha, about 1e-5, would be wrong by up to 0.3 %.
    times = torch.linspace(0, LAST_TIME, steps + 1, dtype=torch.float64)
    return schedule.kappa(times).tolist()


class CachedDenoiser:
    """Wraps a denoiser that ignores the time: only rows that changed since the last call are recomputed."""

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
                # This overwrites the output of the last call, so a sampler must not keep it.
                output[changed] = self.denoise(x_t[changed], kappa[changed])
        self._last = x_t, output
        return output


def tempered(denoise: Denoiser, temperature: float) -> Denoiser:
    """Return the denoiser with its logits divided by tau: x_theta^(1 / tau), normalised."""
    checked_number("temperature", temperature, 0.01, 100)
    if temperature == 1:
        return denoise
    return lambda x_t, kappa: torch.log_softmax(denoise(x_t, kappa) / temperature, dim=-1)


def draw(probabilities: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw the symbol of each position (B, N) by probabilities (B, N, K), whose sum need not be exactly 1."""
    cumulative = probabilities.cumsum(dim=-1)  # (B, N, K)
    total = cumulative[..., -1:]
    u = torch.rand(total.shape, generator=generator, device=total.device, dtype=total.dtype)
    # With right=False u = 0 would draw the first symbol, even if its probability is 0.
    symbols = torch.searchsorted(cumulative, u * total, right=True)[..., 0]  # (B, N)
    # u * total can round up to total, which lies behind the last symbol.
    return symbols.clamp_(max=probabilities.shape[-1] - 1)


def with_given(x: Tensor, given: Tensor | None) -> Tensor:
    """Return the state x (B, N) with the fixed symbols of `given`, (N,) or (B, N), if there are any."""
    return x if given is None else torch.where(given == FREE, x, given)


def as_given(given: Tensor, x0: Tensor) -> Tensor:
    """Return `given` as int64. Raise InputError unless it has integers (N,) or (B, N), for x0 (B, N)."""
    given = as_integers("given", given)
    require_shape("given", given, x0.shape if given.ndim == 2 else x0.shape[1:])
    return given


def _denoise(denoise: Denoiser, x: Tensor, alpha: float) -> Tensor:
    log_p = denoise(x, torch.full((len(x),), alpha, device=x.device))
    require_shape("denoiser", log_p, (*x.shape, log_p.shape[-1]))
    return log_p


def _powers(denoise: Denoiser, guidance: Guidance | None) -> list[tuple[Denoiser, float]]:
    """Return the denoisers whose transitions guidance multiplies, with their exponents, which are not 0."""
    if guidance is None:
        return [(denoise, 1.0)]
    # No factor has the exponent 0, so that the weights 0 and 1 sample as without guidance, to the bit.
    powers = [(denoise, guidance.weight), (guidance.unconditional, 1 - guidance.weight)]
    return [(factor, weight) for factor, weight in powers if weight]


def _combine(factors: Iterable[tuple[Tensor, float]]) -> Tensor:
    """Return the normalised product of probabilities (B, N, K), each to the power of its weight."""
    weighted = [*factors]
    if len(weighted) == 1:  # its weight is 1
        return weighted[0][0]
    return _power_law([(factor.log(), weight) for factor, weight in weighted]).softmax(dim=-1)


def _power_law(factors: list[tuple[Tensor, float]]) -> Tensor:
    """Return the weighted sum (B, N, K) of log-probabilities (B, N, K); the weights add up to 1.

    It is -inf wherever a factor with a positive weight is -inf.
    """
    if len(factors) == 1:
        return factors[0][0]
    # The clamp hides -inf, which a negative exponent would turn into +inf, so it is noted here first.
    impossible = torch.stack([factor == -torch.inf for factor, weight in factors if weight > 0]).any(dim=0)
    total = sum(weight * factor.double().clamp(min=LEAST_LOG) for factor, weight in factors)
    return torch.as_tensor(total).masked_fill(impossible, -torch.inf)
