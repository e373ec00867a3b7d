"""One function per sampler: from source states x0 to data, given a denoiser.

A denoiser is a callable `denoise(x_t, kappa)`: tokens (B, N) and kappa (B,) float32 in, log-probabilities
(B, N, K) over x1 out. All samplers take the same arguments:

denoise: see above. x0: (B, N) source tokens. steps: updates, over uniform times from t = 0 to 1 - 1e-5.
prediction: the kind of denoiser that `denoise` is, "leave_one_out" or "posterior". Where the update needs the
other kind it is converted, unless `convert` is False. generator: on the device of x0.
greedy_tail: end with the argmax of the denoiser's own output at the last time (one more call). Of a
leave-one-out that is the mode of each token given the others: sharper than the data, even if exact.
They return (B, N) tokens.
"""

import functools
from itertools import pairwise

import torch

from pairflow.flow.posterior import (
    ancestral_posterior,
    leave_one_out_to_posterior,
    posterior_to_leave_one_out,
)
from pairflow.flow.schedule import DIFFUSION

LAST_TIME = 1 - 1e-5  # at t = 1 the conversion between the two kinds of denoiser diverges


def ancestral(denoise, x0, *, prediction, convert=True, **options):
    """Draw every x_s from UDLM's posterior given x_t and the leave-one-out: see the module."""
    convert = convert and prediction == "posterior"
    return _sample(functools.partial(ancestral_transition, convert=convert), denoise, x0, **options)


def ancestral_transition(denoise, x_t, alpha_t, alpha_s, *, convert):
    """Distribution (B, N, K) float64 of every position after one ancestral update from alpha_t to alpha_s."""
    log_probabilities = _denoise(denoise, x_t, alpha_t).double()  # (B, N, K)
    if convert:
        log_probabilities = posterior_to_leave_one_out(log_probabilities, x_t, alpha_t)
    return ancestral_posterior(log_probabilities.exp(), x_t, alpha_t, alpha_s)


def euler(denoise, x0, *, prediction, convert=True, **options):
    """Follow the forward velocity of discrete flow matching by Euler steps: see the module.

        x ~ onehot(x) + step * v,    v = kappa' / (1 - kappa) (p_1|t(. | x) - onehot(x))

    With the denoiser of absorbing noise this is MDLM's ancestral update: a mask is left with probability
    (alpha_s - alpha_t) / (1 - alpha_t), and what is no mask stays.
    """
    convert = convert and prediction == "leave_one_out"
    return _sample(functools.partial(euler_transition, convert=convert), denoise, x0, **options)


def euler_transition(denoise, x_t, alpha_t, alpha_s, *, convert):
    """Distribution (B, N, K) float64 of every position after one Euler step from alpha_t to alpha_s."""
    log_probabilities = _denoise(denoise, x_t, alpha_t).double()  # (B, N, K)
    if convert:
        log_probabilities = leave_one_out_to_posterior(log_probabilities, x_t, alpha_t)
    leave = (alpha_s - alpha_t) / (1 - alpha_t)  # step * kappa' / (1 - kappa)
    q = leave * log_probabilities.exp()
    return q.scatter_add_(-1, x_t[..., None], torch.full_like(q[..., :1], 1 - leave))


@torch.no_grad()
def _sample(transition, denoise, x0, *, steps, schedule=DIFFUSION, greedy_tail=True, generator=None):
    x = x0
    alphas = alphas_of(steps, schedule)
    for alpha_t, alpha_s in pairwise(alphas):
        x = draw(transition(denoise, x, alpha_t, alpha_s), generator)
    return _denoise(denoise, x, alphas[-1]).argmax(dim=-1) if greedy_tail else x


def alphas_of(steps, schedule=DIFFUSION):
    """alpha = kappa(t) at the steps + 1 uniform times from 0 to 1 - 1e-5, as Python floats."""
    times = torch.linspace(0, LAST_TIME, steps + 1, dtype=torch.float64)
    return schedule.kappa(times).tolist()


class Remembered:
    """A denoiser that knows no time, asked only for rows that have changed since the last call."""

    def __init__(self, denoise):
        self.denoise, self.x_t, self.known = denoise, None, None

    def __call__(self, x_t, kappa):
        if self.x_t is None or self.x_t.shape != x_t.shape:
            self.known = self.denoise(x_t, kappa)
        else:
            changed = (x_t != self.x_t).any(dim=-1)  # (B,)
            if changed.any():
                self.known[changed] = self.denoise(x_t[changed], kappa[changed])
        self.x_t = x_t
        return self.known


def draw(probabilities, generator=None):
    """One symbol per position by inversion of the cumulative distribution. (B, N, K) -> (B, N)."""
    cumulative = probabilities.cumsum(dim=-1)  # (B, N, K)
    total = cumulative[..., -1:]
    u = torch.rand(total.shape, generator=generator, device=total.device, dtype=total.dtype)
    symbols = torch.searchsorted(cumulative, u * total, right=True)[..., 0]  # (B, N)
    return symbols.clamp_(max=probabilities.shape[-1] - 1)


def _denoise(denoise, x, alpha):
    return denoise(x, torch.full((len(x),), alpha, device=x.device))
