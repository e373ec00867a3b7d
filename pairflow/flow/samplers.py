"""One function per sampler: from source states x0 to data, given a denoiser.

A denoiser is a callable `denoise(x_t, kappa)`: tokens (B, N) and kappa (B,) float32 in, log-probabilities
(B, N, K) over x1 out.
"""

from itertools import pairwise

import torch

from pairflow.flow.process import ancestral_posterior, posterior_to_leave_one_out
from pairflow.schedule import DIFFUSION

LAST_TIME = 1 - 1e-5  # at t = 1 the conversion between the two kinds of denoiser diverges


@torch.no_grad()
def ancestral(
    denoise, x0, *, steps, prediction, schedule=DIFFUSION, greedy_tail=True, convert=True, generator=None
):
    """Ancestral sampling with UDLM's posterior: `steps` updates over uniform times from t = 0 to 1 - 1e-5.

    denoise: see the module. x0: (B, N) source tokens. generator: on the device of x0.
    prediction: the kind of denoiser that `denoise` is, "leave_one_out" or "posterior". The update needs the
    former, so the latter is converted, unless `convert` is False.
    greedy_tail: end with the argmax of the denoiser's own output at the last time (one more call). Of a
    leave-one-out that is the mode of each token given the others: sharper than the data, even if exact.
    Returns (B, N) tokens.
    """
    x = x0
    alphas = ancestral_alphas(steps, schedule)
    for alpha_t, alpha_s in pairwise(alphas):
        q = ancestral_transition(denoise, x, alpha_t, alpha_s, convert=convert and prediction == "posterior")
        x = draw(q, generator)
    return _denoise(denoise, x, alphas[-1]).argmax(dim=-1) if greedy_tail else x


def ancestral_alphas(steps, schedule=DIFFUSION):
    """alpha = kappa(t) at the steps + 1 uniform times from 0 to 1 - 1e-5, as Python floats."""
    times = torch.linspace(0, LAST_TIME, steps + 1, dtype=torch.float64)
    return schedule.kappa(times).tolist()


def ancestral_transition(denoise, x_t, alpha_t, alpha_s, *, convert):
    """Distribution (B, N, K) float64 of every position after one update from alpha_t to alpha_s."""
    log_probabilities = _denoise(denoise, x_t, alpha_t).double()  # (B, N, K)
    if convert:
        log_probabilities = posterior_to_leave_one_out(log_probabilities, x_t, alpha_t)
    return ancestral_posterior(log_probabilities.exp(), x_t, alpha_t, alpha_s)


def draw(probabilities, generator=None):
    """One symbol per position by inversion of the cumulative distribution. (B, N, K) -> (B, N)."""
    cumulative = probabilities.cumsum(dim=-1)  # (B, N, K)
    total = cumulative[..., -1:]
    u = torch.rand(total.shape, generator=generator, device=total.device, dtype=total.dtype)
    symbols = torch.searchsorted(cumulative, u * total, right=True)[..., 0]  # (B, N)
    return symbols.clamp_(max=probabilities.shape[-1] - 1)


def _denoise(denoise, x, alpha):
    return denoise(x, torch.full((len(x),), alpha, device=x.device))


SAMPLERS = {"ancestral": ancestral}
