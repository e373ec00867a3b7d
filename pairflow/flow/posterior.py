"""The uniform-state noising process: how states are noised, and how one update goes back.

Noise is at t = 0, data at t = 1; alpha = kappa(t) is the probability that a position holds its data symbol.
"""

import torch
import torch.nn.functional as F

SMALLEST_NOISE_TIME = 1e-3  # training never sees less noise than this, so no loss weight diverges


def stratified_times(batch, generator=None, device=None):
    """One data time per row and per stratum: t = (1 - 1e-3) (i + u_i) / batch, each row with its own u_i.

    The noise time 1 - t lies in [1e-3, 1], so t lies in [0, 1 - 1e-3]. Returns (batch,) float32, ascending.
    """
    strata = torch.arange(batch, device=device)
    u = torch.rand(batch, generator=generator, device=device)
    return (1 - SMALLEST_NOISE_TIME) * (strata + u) / batch


def interpolate(x0, x1, kappa, generator=None):
    """Draw x_t: every position holds x1 with probability kappa, else x0.

    x0, x1: (B, N) integer tokens; kappa: (B,) in [0, 1]. Returns (B, N).
    """
    u = torch.rand(x1.shape, generator=generator, device=x1.device)
    return torch.where(u < kappa[:, None], x1, x0)


def ancestral_posterior(probabilities, x_t, alpha_t, alpha_s):
    """UDLM's posterior: the distribution of the less noisy x_s given x_t and the leave-one-out x of x1.

        q(x_s) = [K a z*x + (r - a) z + (b - a) x + (1 - r)(1 - b) / K] / [K a <z, x> + 1 - a]

    with a = alpha_t, b = alpha_s >= a, r = a / b and z = onehot(x_t).
    probabilities: x, (B, N, K); x_t: (B, N); alpha_t, alpha_s: (B,) or scalars, b > 0.
    Returns (B, N, K) float64.
    """
    x = probabilities.double()  # (B, N, K)
    a, b = _per_position(alpha_t, x), _per_position(alpha_s, x)  # (B, 1, 1)
    r, vocabulary_size, z = a / b, x.shape[-1], x_t[..., None]
    seen = vocabulary_size * a * x.gather(-1, z)  # (B, N, 1)
    moved = (b - a) * x + (1 - r) * (1 - b) / vocabulary_size  # (B, N, K)
    return moved.scatter_add(-1, z, seen + r - a) / (seen + 1 - a)


def leave_one_out_to_posterior(log_probabilities, x_t, alpha):
    """p(x1^i | x_t) from p(x1^i | x_t without i): post(x) ~ loo(x) (1 - alpha + K alpha [x = x_t^i]).

    Exact for independent uniform noise. log_probabilities: log loo, (B, N, K); x_t: (B, N); alpha: (B,) or a
    scalar, < 1. Returns normalised log-probabilities (B, N, K).
    """
    return F.log_softmax(log_probabilities + _log_likelihood(log_probabilities, x_t, alpha), dim=-1)


def posterior_to_leave_one_out(log_probabilities, x_t, alpha):
    """p(x1^i | x_t without i) from p(x1^i | x_t): the inverse of `leave_one_out_to_posterior`."""
    return F.log_softmax(log_probabilities - _log_likelihood(log_probabilities, x_t, alpha), dim=-1)


def _log_likelihood(like, x_t, alpha):
    """log(K p(x_t^i | x1^i = x)) for every x, of the shape (B, N, K) and type of `like`."""
    alpha = _per_position(alpha, like)  # (B, 1, 1)
    seen = torch.log(1 - alpha + like.shape[-1] * alpha).expand(*x_t.shape, 1)  # (B, N, 1)
    return torch.log(1 - alpha).expand(like.shape).scatter(-1, x_t[..., None], seen)


def _per_position(alpha, like):
    """(B,) or scalar -> (B, 1, 1) or (1, 1, 1), in the type and on the device of `like`."""
    return torch.as_tensor(alpha, dtype=like.dtype, device=like.device).reshape(-1, 1, 1)
