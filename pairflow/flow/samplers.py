"""The samplers `ancestral`, `euler` and `unmask`: from rows of noise x0 to data, with a denoiser.

All are instances of `Sampler`; its call has the arguments. See docs/method.md, "Sampling" and "Guidance".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
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

Denoiser = Callable[..., Tensor]
"""A function from tokens x_t (B, N) and kappa (B,) float32 to log-probabilities (B, N, K) over x1.

One that can be asked for M positions only takes them as a third argument (B, N) bool, and returns (M, K).
"""

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
        leaves: the probability with which a position is drawn again in a step from alpha_t to alpha_s; then
            its law is that of a step to alpha_s = 1. None if the prediction decides.
        mask: the only symbol that an update changes, or None if it changes any.
    """

    update: Callable[[Tensor, Tensor, float, float], Tensor]
    takes: str
    guides_symbols: bool = False
    leaves: Callable[[float, float], float] | None = None
    mask: int | None = None

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
        rows: int | None = None,
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
            rows: for many symbols: how many rows to take at once. The denoisers, which must be able to, are
                then asked only for positions that can change. The law is the same; the random numbers differ.

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
        powers = _powers(denoise, guidance)

        def step(x: Tensor, alpha_t: float, alpha_s: float, where: Tensor | None) -> Tensor:
            q = self.transition(denoise, x, alpha_t, alpha_s, convert=convert, guidance=guidance, where=where)
            return draw(q, generator)

        def mode(where: Tensor | None) -> Tensor:
            last = [(_denoise(factor, x, alphas[-1], where), weight) for factor, weight in powers]
            return _power_law(last).argmax(dim=-1)

        for alpha_t, alpha_s in pairwise(alphas):
            where, target = self._changing(x, given, rows), alpha_s
            if where is not None and self.leaves and (len(powers) == 1 or self.guides_symbols):
                u = torch.rand(x.shape, generator=generator, device=x.device, dtype=torch.float64)
                where, target = where & (u < self.leaves(alpha_t, alpha_s)), 1.0
            x = with_given(_at(x, where, rows, partial(step, x, alpha_t, target)), given)
        return with_given(_at(x, self._changing(x, given, rows), rows, mode), given) if greedy_tail else x

    def transition(
        self,
        denoise: Denoiser,
        x_t: Tensor,
        alpha_t: float,
        alpha_s: float,
        *,
        convert: bool,
        guidance: Guidance | None = None,
        where: Tensor | None = None,
    ) -> Tensor:
        """Return the probabilities (B, N, K) float64 of every position after one update to alpha_s.

        With `where` (B, N) bool, the probabilities (1, M, K) of its M true positions.
        """
        here = x_t if where is None else x_t[where][None]  # (B, N) or (1, M)
        predicted = (
            (self._predict(_denoise(factor, x_t, alpha_t, where), here, alpha_t, convert=convert), weight)
            for factor, weight in _powers(denoise, guidance)
        )
        if self.guides_symbols:
            return self.update(_combine(predicted), here, alpha_t, alpha_s)
        return _combine((self.update(p, here, alpha_t, alpha_s), weight) for p, weight in predicted)

    def _predict(self, predicted: Tensor, x_t: Tensor, alpha_t: float, *, convert: bool) -> Tensor:
        """Return probabilities (B, N, K) float64 over x1, of the kind that the update needs."""
        predicted = predicted.double()
        if convert:
            predicted = _CONVERSIONS[self.takes](predicted, x_t, alpha_t)
        return predicted.exp()

    def _changing(self, x: Tensor, given: Tensor | None, rows: int | None) -> Tensor | None:
        """Return which positions (B, N) an update may change; None if all are computed, without `rows`."""
        if rows is None:
            return None
        where = torch.ones_like(x, dtype=torch.bool) if self.mask is None else x == self.mask
        return where if given is None else where & (given == FREE)


def leaving(alpha_t: float, alpha_s: float) -> float:
    """step * kappa' / (1 - kappa), the probability with which an Euler update draws a position again."""
    return (alpha_s - alpha_t) / (1 - alpha_t)


def euler_update(probabilities: Tensor, x_t: Tensor, alpha_t: float, alpha_s: float) -> Tensor:
    """onehot(x_t) + step * v with v = kappa' / (1 - kappa) (probabilities - onehot(x_t)), (B, N, K)."""
    leave = leaving(alpha_t, alpha_s)
    q = leave * probabilities
    # In place: tensors (B, N, K) are large where K is in the thousands.
    return q.scatter_add_(-1, x_t[..., None], torch.full_like(q[..., :1], 1 - leave))


ancestral = Sampler(ancestral_posterior, takes="leave_one_out")
"""Ancestral sampling of UDLM (Schiff et al. 2024): draw x_s from `ancestral_posterior` of a leave-one-out."""

euler = Sampler(euler_update, takes="posterior", leaves=leaving)
"""Euler steps of discrete flow matching (Gat et al. 2024), or tau-leaping (Campbell et al. 2022)."""

unmask = Sampler(euler_update, takes="posterior", guides_symbols=True, leaves=leaving)
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

    def __call__(self, x_t: Tensor, kappa: Tensor, where: Tensor | None = None) -> Tensor:
        if where is not None:  # the rows without such a position are not computed
            return self.denoise(x_t, kappa, where)
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
    return lambda *state: torch.log_softmax(denoise(*state) / temperature, dim=-1)


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


def _denoise(denoise: Denoiser, x: Tensor, alpha: float, where: Tensor | None = None) -> Tensor:
    """Return log-probabilities (B, N, K), or (1, M, K) at the M positions `where` (B, N)."""
    kappa = torch.full((len(x),), alpha, device=x.device)
    if where is None:
        log_p = denoise(x, kappa)
        require_shape("denoiser", log_p, (*x.shape, log_p.shape[-1]))
        return log_p
    return denoise(x, kappa, where)[None]


def _at(x: Tensor, where: Tensor | None, rows: int | None, symbols: Callable[..., Tensor]) -> Tensor:
    """Return x (B, N) with `symbols(where)` at the positions `where`, some rows at a time; all if None."""
    if where is None:
        return symbols(None)
    x = x.clone()
    for start in range(0, len(x), rows or len(x)):
        part = torch.zeros_like(where)
        part[start:][:rows] = where[start:][:rows]
        if part.any():
            x[part] = symbols(part)[0]
    return x


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
