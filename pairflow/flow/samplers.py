"""The samplers `ancestral`, `euler` and `unmask`: from rows of noise x0 to data, with a denoiser.

All are instances of `Sampler`. See docs/method.md, "Sampling" and "Guidance".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Generator, Tensor

from pairflow.errors import InputError
from pairflow.flow.arguments import as_tokens, require_shape
from pairflow.flow.grammar import draw
from pairflow.flow.plan import FREE, LAST_TIME, SamplingPlan
from pairflow.flow.posterior import CONVERSIONS, ancestral_posterior

Factor = TypeVar("Factor")
Denoiser = Callable[..., Tensor]
"""A function from tokens x_t (B, N) and kappa (B,) float32 to log-probabilities (B, N, K) over x1.

One that can be asked for M positions only takes them as a third argument (B, N) bool, and returns (M, K).
"""

LEAST_LOG = -700.0  # replaces log 0 in a factor with a negative exponent; exp(-700) is still a normal float64


@dataclass(frozen=True)
class Sampler:
    """A sampler: a call draws samples. Another loop can call `step`, as with the schedulers of diffusers:

        x, kappa = with_given(x0, plan.given), plan.schedule.kappa
        for t, s in pairwise(plan.times):
            log_p = corruption.log_probabilities(network, x, kappa(t))
            x = euler.step(x, log_p, t, s, plan, generator=generator)
        x = euler.mode(corruption.log_probabilities(network, x, kappa(s)), plan)

    This gives the rows of `euler(corruption.denoiser(network), x0, plan, generator=generator)`.

    Attributes:
        update: the law (B, N, K) of x_s, a function of a denoiser's probabilities (B, N, K) float64, x_t, and
            alpha = kappa at the times t and s.
        takes: the kind of denoiser that `update` needs, "leave_one_out" or "posterior".
        guides_symbols: whether guidance combines the denoisers' probabilities instead of the laws of x_s.
        leaves: a function from alpha_t and alpha_s to the probability that a step draws a position again, by
            the law of a step to alpha_s = 1. None if the probability depends on the prediction.
        mask: the only symbol that an update changes, or None if it changes any.
        pi: the probabilities (N, K) of the noise's symbols, which `update` then also takes by this name; None
            if the noise is uniform, or masks.
    """

    update: Callable[..., Tensor]
    takes: str
    guides_symbols: bool = False
    leaves: Callable[[float, float], float] | None = None
    mask: int | None = None
    pi: Tensor | None = field(default=None, compare=False)

    @torch.no_grad()
    def __call__(
        self,
        denoise: Denoiser,
        x0: Tensor,
        plan: SamplingPlan,
        *,
        unconditional: Denoiser | None = None,
        generator: Generator | None = None,
        rows: int | None = None,
    ) -> Tensor:
        """Draw samples from the source tokens x0, by the steps of the plan.

        Args:
            denoise: the denoiser, given the labels if there are any.
            x0: source tokens (B, N).
            plan: how samples are drawn. Its `sampler` and `labels` are not read.
            unconditional: the denoiser without labels, for guidance.
            generator: random numbers, on the device of x0.
            rows: how many rows to take at once, for many symbols. The denoisers are then asked only for the
                positions that can change, which they must support. The law stays; the random numbers differ.

        Returns:
            Tokens (B, N).

        Raises:
            InputError: if shapes or dtypes are wrong, or there is guidance without `unconditional`.
        """
        x = as_tokens("x0", x0)
        plan = plan.fit(x)
        x, given, times, kappa = with_given(x, plan.given), plan.given, plan.times, plan.schedule.kappa
        factors = _factors(denoise, unconditional, plan.guidance)
        one = len(factors) == 1
        # With a weight of 0 the only factor is the unconditional denoiser. `step` gets it as if it were the
        # conditional one, for which the weight is 1.
        plan = replace(plan, guidance=1.0 if one else plan.guidance)

        def ask(factor: int, x: Tensor, t: float, where: Tensor | None) -> Tensor:
            return _denoise(factors[factor], x, kappa(t), where)

        def at(where: Tensor | None) -> SamplingPlan:
            if where is None or given is None:
                return plan
            return replace(plan, given=given.expand_as(where)[where][None])

        def step(x: Tensor, t: float, s: float, whole: bool, where: Tensor | None) -> Tensor:
            here, sampler, own = x, self, at(where)
            if where is not None:  # the M positions count as one row
                here = x[where][None]
                sampler = replace(self, pi=None if self.pi is None else self.pi[where.nonzero()[:, 1]])
            plain = None if one else ask(1, x, t, where)
            # To `step` an s of 1, as set below, is the end, where the grammar counts.
            own = own if whole else replace(own, grammar=None)
            return sampler.step(here, ask(0, x, t, where), t, s, own, plain, generator)

        def mode(x: Tensor, where: Tensor | None) -> Tensor:
            plain = None if one else ask(1, x, times[-1], where)
            return self.mode(ask(0, x, times[-1], where), at(where), plain)

        for t, s in pairwise(times):
            # A grammar needs the laws of all positions of a row at once.
            whole = plan.grammar is not None and s == times[-1]
            where = self._changing(x, given, rows, whole)
            if where is not None and self.leaves and (one or self.guides_symbols) and not whole:
                # Which positions leave is drawn before the network is asked, so that it computes only these.
                # Their law is then that of a step to s = 1, in which every position leaves. If guidance
                # combines whole transitions, the probability of leaving depends on the network.
                u = torch.rand(x.shape, generator=generator, device=x.device, dtype=torch.float64)
                where, s = where & (u < self.leaves(kappa(t), kappa(s))), 1.0
            x = _at(x, where, rows, partial(step, x, t, s, whole))
        if not plan.greedy_tail:
            return x
        where = self._changing(x, given, rows, plan.grammar is not None)
        return _at(x, where, rows, partial(mode, x))

    def step(
        self,
        x_t: Tensor,
        log_p: Tensor,
        t: float,
        s: float,
        plan: SamplingPlan,
        unconditional: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Draw the state at time s from that at time t: one update of the loop.

        Args:
            x_t: tokens (B, N).
            log_p: the denoiser's log-probabilities (B, N, K) of x1, given x_t and kappa(t).
            t: the time of x_t, in [0, 1); 0 is noise and 1 data.
            s: the time of the result, more than t, up to 1.
            plan: the prediction, conversion, temperature, guidance, given symbols and schedule; the grammar
                counts if s is the last time.
            unconditional: the log-probabilities without labels, for guidance.
            generator: random numbers, on the device of x_t.

        Returns:
            Tokens x_s (B, N).

        Raises:
            InputError: if shapes or dtypes are wrong, or there is guidance without `unconditional`.
        """
        predictions = _factors(log_p, unconditional, plan.guidance)
        # Tensors (B, N, K) are large where K is in the thousands: `transition` frees each as soon as it can.
        del log_p, unconditional
        law = self.transition(x_t, predictions, t, s, plan)
        if plan.grammar is None or s < LAST_TIME:
            return with_given(draw(law, generator), plan.given)
        return plan.grammar.draw(_fixed(law, plan.given), generator).view_as(x_t)

    def mode(self, log_p: Tensor, plan: SamplingPlan, unconditional: Tensor | None = None) -> Tensor:
        """Return the greedy tail: the most likely symbols (B, N) by the tempered, guided predictions.

        `log_p` (B, N, K) are a denoiser's log-probabilities of x1, `unconditional` the same without labels.
        Raises InputError if `plan` has guidance and these are missing.
        """
        predictions = _factors(log_p, unconditional, plan.guidance)
        factors = [tempered(log_p, plan.temperature) for log_p in predictions]
        law = _power_law(factors, plan.guidance)
        if plan.grammar is None:
            return with_given(law.argmax(dim=-1), plan.given)
        return plan.grammar.mode(_fixed(law.double().softmax(dim=-1), plan.given)).view(law.shape[:-1])

    def transition(
        self, x_t: Tensor, predictions: list[Tensor], t: float, s: float, plan: SamplingPlan
    ) -> Tensor:
        """Return the law (B, N, K) float64 of every position of x_s; with guidance, the guided one.

        In classifier-free guidance (D-CFG; Schiff et al. 2024, "Simple guidance mechanisms") this law is

            p_gamma(x_s | x_t, y) ~ p(x_s | x_t, y)^gamma p(x_s | x_t)^(1 - gamma),

        normalised over the symbols of x_s. Both factors are the sampler's transitions of a position: by the
        conditional and by the unconditional denoiser. A sampler of masks (`guides_symbols`) combines the
        predictions of x1 instead, so that guidance does not change when a position loses its mask. The greedy
        tail takes the mode of the combined predictions.

        Args:
            x_t: tokens (B, N) at the time t.
            predictions: a denoiser's log-probabilities (B, N, K) of x1, and for guidance also those without
                labels. The list is emptied.
            t: the time of x_t, in [0, 1).
            s: the time of x_s, more than t, up to 1.
            plan: the prediction, conversion, temperature, guidance and schedule.
        """
        alpha_t, alpha_s = plan.schedule.kappa(t), plan.schedule.kappa(s)
        update = self.update if self.pi is None else partial(self.update, pi=self.pi)
        predicted = (self._predict(predictions.pop(0), x_t, alpha_t, plan) for _ in range(len(predictions)))
        if self.guides_symbols:
            return update(_combine(predicted, plan.guidance), x_t, alpha_t, alpha_s)
        return _combine((update(p, x_t, alpha_t, alpha_s) for p in predicted), plan.guidance)

    def _predict(self, log_p: Tensor, x_t: Tensor, alpha_t: float, plan: SamplingPlan) -> Tensor:
        """Return `log_p` (B, N, K) as tempered float64 probabilities of the denoiser's kind `self.takes`."""
        # The temperature acts on the network's logits, so it comes before any conversion.
        log_p = tempered(log_p, plan.temperature).double()
        if plan.conversion == "exact" and plan.prediction != self.takes:
            log_p = CONVERSIONS[self.takes](log_p, x_t, alpha_t, self.pi)
        return log_p.exp()

    def _changing(self, x: Tensor, given: Tensor | None, rows: int | None, whole: bool) -> Tensor | None:
        """Return which positions (B, N) bool an update of x may change; None, if `rows` is None, for all.

        Fixed symbols of `given` cannot change, and of a sampler of masks only masks can; but if `whole`, all
        entries are true.
        """
        if rows is None:
            return None
        where = torch.ones_like(x, dtype=torch.bool) if whole or self.mask is None else x == self.mask
        return where if whole or given is None else where & (given == FREE)


def leaving(alpha_t: float, alpha_s: float) -> float:
    """Return the probability that an Euler update draws a position again: step * kappa' / (1 - kappa).

    `alpha_t` and `alpha_s` are kappa before and after the step.
    """
    return (alpha_s - alpha_t) / (1 - alpha_t)


def euler_update(
    probabilities: Tensor, x_t: Tensor, alpha_t: float, alpha_s: float, pi: Tensor | None = None
) -> Tensor:
    """Return the law (B, N, K) of x_s after an Euler step: l * probabilities + (1 - l) * onehot(x_t).

    l = (alpha_s - alpha_t) / (1 - alpha_t) is the step times kappa' / (1 - kappa), and `probabilities` (B, N,
    K) are of x1. The law is the same for every noise, so `pi` is not used.
    """
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


class CachedDenoiser:
    """Wraps a denoiser that ignores the time: only rows that changed since the last call are recomputed.

    If there is a `label`, (B, ...) or one for all rows, the labels of the recomputed rows are passed to the
    denoiser under this name.
    """

    def __init__(self, denoise: Denoiser, label: Tensor | None = None):
        self.denoise, self.label = denoise, label
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
                own = {}
                if self.label is not None:
                    own["label"] = self.label.expand(len(x_t), *self.label.shape[1:])[changed]
                # This overwrites the output of the last call, so a sampler must not keep it.
                output[changed] = self.denoise(x_t[changed], kappa[changed], **own)
        self._last = x_t, output
        return output


def tempered(log_p: Tensor, temperature: float) -> Tensor:
    """Return log-probabilities (B, N, K) with the logits divided by tau: log p^(1 / tau), normalised."""
    return log_p if temperature == 1 else torch.log_softmax(log_p / temperature, dim=-1)


def with_given(x: Tensor, given: Tensor | None) -> Tensor:
    """Return the state x (B, N) with the fixed symbols of `given`, (N,) or (B, N), if there are any."""
    return x if given is None else torch.where(given == FREE, x, given)


def _fixed(law: Tensor, given: Tensor | None) -> Tensor:
    """Return probabilities (B, N, K) in which the fixed symbols of `given`, if there are any, have 1."""
    if given is None:
        return law
    certain = torch.nn.functional.one_hot(given.clamp(min=0), law.shape[-1]).to(law)
    return torch.where((given == FREE)[..., None], law, certain)


def _denoise(denoise: Denoiser, x: Tensor, alpha: float, where: Tensor | None = None) -> Tensor:
    """Return the denoiser's log-probabilities (B, N, K) for x (B, N) at kappa = `alpha`.

    With `where` (B, N) bool they are (1, M, K), of its M true positions.
    """
    kappa = torch.full((len(x),), alpha, device=x.device)
    if where is None:
        log_p = denoise(x, kappa)
        require_shape("denoiser", log_p, (*x.shape, log_p.shape[-1]))
        return log_p
    return denoise(x, kappa, where)[None]


def _at(x: Tensor, where: Tensor | None, rows: int | None, symbols: Callable[..., Tensor]) -> Tensor:
    """Return x (B, N) with new symbols at the true positions of `where` (B, N), `rows` rows at a time.

    `symbols(part)` computes the new symbols (1, m) for the m true positions of `part`, which is `where` in
    some rows and false in the others. If `where` is None, return symbols(None), the whole new state.
    """
    if where is None:
        return symbols(None)
    x = x.clone()
    for start in range(0, len(x), rows or len(x)):
        part = torch.zeros_like(where)
        part[start:][:rows] = where[start:][:rows]
        if part.any():
            x[part] = symbols(part)[0]
    return x


def _factors(conditional: Factor, unconditional: Factor | None, guidance: float) -> list[Factor]:
    """Return [conditional], [unconditional] or both: the factors whose exponent is not 0.

    The two are denoisers, or their predictions. In the guided law their exponents are gamma = `guidance` and
    1 - gamma. Raises InputError if gamma is not 1 and `unconditional` is None.
    """
    # No factor has the exponent 0, so that the weights 0 and 1 sample as without guidance, to the bit.
    if guidance == 1:
        return [conditional]
    if unconditional is None:
        raise InputError(f"guidance: expected 1 where there is no label, found {guidance!r}")
    return [conditional, unconditional] if guidance else [unconditional]


def _combine(probabilities: Iterable[Tensor], guidance: float) -> Tensor:
    """Return the normalised product of one or two laws (B, N, K), with the exponents gamma and 1 - gamma."""
    factors = [*probabilities]
    if len(factors) == 1:
        return factors[0]
    return _power_law([factor.log() for factor in factors], guidance).softmax(dim=-1)


def _power_law(factors: list[Tensor], guidance: float) -> Tensor:
    """Return gamma log p + (1 - gamma) log q for `factors` log p and log q (B, N, K), or the only factor.

    gamma is `guidance`. The result is not normalised, and -inf wherever a factor with a positive weight is
    -inf.
    """
    if len(factors) == 1:
        return factors[0]
    weighted = [*zip(factors, (guidance, 1 - guidance), strict=True)]
    # The clamp hides -inf, which a negative exponent would turn into +inf, so it is noted here first.
    impossible = torch.stack([factor == -torch.inf for factor, weight in weighted if weight > 0]).any(dim=0)
    total = sum(weight * factor.double().clamp(min=LEAST_LOG) for factor, weight in weighted)
    return torch.as_tensor(total).masked_fill(impossible, -torch.inf)
