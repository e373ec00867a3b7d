"""The losses of discrete flows, in nats per token, all with the same arguments.

x_theta is the distribution over x1 that the network predicts at each position. The NELBO (negative evidence
lower bound) is an upper bound on -log p(x1). See docs/method.md, "Noising and losses".
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pairflow.flow.arguments import as_tokens, each_row

Level = Tensor | float
"""kappa or its derivative: (B,) or a scalar."""

NELBO_VALUES = 2**24  # log-probabilities at once: 64 MiB, exceeded by text of tens of thousands of symbols


def uniform_nelbo(
    log_probabilities: Tensor, x1: Tensor, x_t: Tensor, alpha: Level, alpha_derivative: Level
) -> Tensor:
    """Compute the continuous-time NELBO of uniform-state diffusion (UDLM, Schiff et al. 2024).

        kappa' / (K alpha) * sum_j [a_j log(a_j / b_j) - a_j + b_j]

    with a_j = xbar_j / xbar_i, b_j = q_j / q_i, i = x_t, xbar = K alpha onehot(x1) + 1 - alpha and
    q = K alpha x_theta + 1 - alpha (xbar_theta). It is >= 0, and 0 exactly when x_theta = onehot(x1).
    With post(x) = p(x1^i = x | x_t), of any coupling, its mean is minimised by post(x) / (1 - alpha + K alpha
    [x = x_t^i]), normalised: for independent noise the leave-one-out p(x1^i | x_t without position i).

    More than `NELBO_VALUES` log-probabilities are processed a few rows at a time, with gradient
    checkpointing, to save memory. The result is the same, bit for bit.

    Args:
        log_probabilities: log x_theta (B, N, K), the network's prediction of x1.
        x1: data tokens (B, N).
        x_t: noised tokens (B, N).
        alpha: kappa(t) in (0, 1), the probability that a position holds its data symbol, (B,) or a number.
        alpha_derivative: kappa'(t), (B,) or a number.

    Returns:
        (B, N), in nats.

    Raises:
        InputError: if shapes or dtypes are wrong.
    """
    return _by_rows(_uniform_nelbo, log_probabilities, x1, x_t, alpha, alpha_derivative)


def frequency_nelbo(
    log_probabilities: Tensor, x1: Tensor, x_t: Tensor, alpha: Level, alpha_derivative: Level, pi: Tensor
) -> Tensor:
    """Compute the continuous-time NELBO of noise by frequency (B, N), like `uniform_nelbo`, in nats.

        kappa' pi_i / alpha * sum_j [a_j log(a_j / b_j) - a_j + b_j]

    with a_j = xbar_j / xbar_i, b_j = q_j / q_i, i = x_t, xbar = alpha onehot(x1) + (1 - alpha) pi and q =
    alpha x_theta + (1 - alpha) pi. `log_probabilities` are log x_theta (B, N, K), the network's prediction of
    x1; x1 are data and x_t noised tokens (B, N); alpha is kappa(t) and `alpha_derivative` kappa'(t), each
    (B,) or a number; `pi` (N, K) has the positive probabilities of the noise's symbols. Raises InputError if
    shapes or dtypes are wrong. See docs/method.md, "Noise by frequency".
    """
    nelbo = partial(_frequency_nelbo, pi=pi.to(log_probabilities))
    return _by_rows(nelbo, log_probabilities, x1, x_t, alpha, alpha_derivative)


def _by_rows(
    nelbo: Callable[..., Tensor],
    log_probabilities: Tensor,
    x1: Tensor,
    x_t: Tensor,
    alpha: Level,
    alpha_derivative: Level,
) -> Tensor:
    """Check the arguments of a NELBO, and compute it (B, N) by `nelbo`, a few rows at a time if it is large.

    The arguments are as in `uniform_nelbo`. `nelbo` takes them with `alpha` and `alpha_derivative` as (B, 1),
    and returns (B, N). Raises InputError if shapes or dtypes are wrong.
    """
    batch, shape = len(log_probabilities), log_probabilities.shape[:-1]
    x1, x_t = as_tokens("x1", x1, shape), as_tokens("x_t", x_t, shape)
    # A single number must be expanded, since `split` below cuts it like the rows.
    levels = (per_row(level, log_probabilities).expand(batch, 1) for level in (alpha, alpha_derivative))
    inputs = (log_probabilities, x1, x_t, *levels)
    if log_probabilities.numel() <= NELBO_VALUES:
        return nelbo(*inputs)
    rows = max(1, NELBO_VALUES // log_probabilities[0].numel())
    parts = zip(*(tensor.split(rows) for tensor in inputs), strict=True)
    return torch.cat(
        # The loss draws no random numbers, so their state need not be saved for the second computation.
        [checkpoint(nelbo, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    )


def _uniform_nelbo(
    log_probabilities: Tensor, x1: Tensor, x_t: Tensor, alpha: Tensor, slope: Tensor
) -> Tensor:
    """Compute the NELBO (B, N) of `uniform_nelbo` for alpha and its derivative `slope`, both (B, 1).

    In its formula a_j has one value, u, for all j except x1, so only sum_j log q_j and q at x1 and at x_t
    matter.
    """
    vocabulary_size = log_probabilities.shape[-1]
    scale = vocabulary_size * alpha
    weight = slope / scale
    probabilities = log_probabilities.exp()  # (B, N, K)
    # q = 1 + alpha (K x_theta - 1): log1p keeps its digits where alpha is small and every q is near 1.
    log_q = torch.log1p(alpha[..., None] * (vocabulary_size * probabilities - 1))  # (B, N, K)
    log_q_1 = log_q.gather(-1, x1[..., None])[..., 0]  # (B, N)
    log_q_i = log_q.gather(-1, x_t[..., None])[..., 0]
    p_i = probabilities.gather(-1, x_t[..., None])[..., 0]

    same = (x_t == x1).to(probabilities.dtype)  # (B, N)
    xbar_i = 1 - alpha + scale * same
    u = (1 - alpha) / xbar_i
    a_1 = (1 - alpha + scale) / xbar_i
    sum_a_log_a = (vocabulary_size - 1) * u * u.log() + a_1 * a_1.log()
    sum_a_log_b = u * (log_q.sum(-1) - vocabulary_size * log_q_i) + (a_1 - u) * (log_q_1 - log_q_i)
    # sum_j (b_j - a_j) = K / q_i - K / xbar_i: taking K alpha out of the difference leaves nothing to cancel.
    sum_b_minus_a = vocabulary_size * scale * (same - p_i) / (xbar_i * (1 - alpha + scale * p_i))
    return weight * (sum_a_log_a - sum_a_log_b + sum_b_minus_a)


def _frequency_nelbo(
    log_probabilities: Tensor, x1: Tensor, x_t: Tensor, alpha: Tensor, slope: Tensor, pi: Tensor
) -> Tensor:
    """Compute the NELBO (B, N) of `frequency_nelbo` for alpha and its derivative `slope`, both (B, 1).

    Let X = xbar / pi, Q = q / pi and i = x_t, with xbar and q as in its formula. The NELBO is

        slope / alpha * [(sum_j pi_j X_j log(X_j / Q_j) - log(X_i / Q_i)) / X_i + 1 / Q_i - 1 / X_i]

    X_j has one value for all j except x1, so the sum over log X_j has two terms.
    """

    def at(values: Tensor, symbols: Tensor) -> Tensor:
        return values.expand(log_probabilities.shape).gather(-1, symbols[..., None])[..., 0]  # (B, N)

    probabilities, pi_1 = log_probabilities.exp(), at(pi, x1)
    log_q = torch.log1p(alpha[..., None] * (probabilities / pi - 1))  # (B, N, K), of Q
    log_q_i, same = at(log_q, x_t), (x_t == x1).to(log_q.dtype)
    log_x, log_x_1 = torch.log1p(-alpha), torch.log1p(alpha * (1 / pi_1 - 1))  # of X off x1, and at x1
    log_x_i = torch.where(x_t == x1, log_x_1, log_x)
    divergence = (1 - alpha) * ((1 - pi_1) * log_x + pi_1 * log_x_1 - (pi * log_q).sum(-1))
    divergence = divergence + alpha * (log_x_1 - at(log_q, x1))
    # 1 / Q_i - 1 / X_i = (X_i - Q_i) / (X_i Q_i), with alpha taken out, so that nothing cancels.
    difference = alpha * (same - at(probabilities, x_t)) / at(pi, x_t) * (-log_q_i).exp()
    return slope / alpha * (divergence - log_x_i + log_q_i + difference) * (-log_x_i).exp()


def absorbing_nelbo(
    log_probabilities: Tensor, x1: Tensor, x_t: Tensor, alpha: Level, alpha_derivative: Level
) -> Tensor:
    """Compute the continuous-time NELBO of absorbing-state diffusion (MDLM, Sahoo et al. 2024), in nats.

        kappa' / (1 - kappa) * (-log x_theta[x1])

    at masked positions. At positions without a mask it is 0, because MDLM's SUBS parameterisation copies x_t
    there. It is minimised by the posterior p(x1^i | x_t); its mean is then the entropy of the data.

    `log_probabilities` are log x_theta (B, N, K), the network's prediction of x1; x1 are data tokens (B, N);
    alpha is kappa(t) and `alpha_derivative` kappa'(t), each (B,) or a number. x_t is not used. Returns
    (B, N). Raises InputError if shapes or dtypes are wrong.
    """
    weight = per_row(alpha_derivative, log_probabilities) / (1 - per_row(alpha, log_probabilities))
    return weight * cross_entropy(log_probabilities, x1)


def cross_entropy(log_probabilities: Tensor, x1: Tensor, *_noising: Level) -> Tensor:
    """Return -log x_theta[x1] (B, N), the loss of discrete flow matching (Gat et al. 2024), for any noise.

    x_theta is the network's distribution over x1, with log-probabilities (B, N, K); x1 are data tokens (B,
    N). The posterior p(x1^i | x_t), the p_1|t of the closed forms, minimises the loss. Further arguments are
    ignored. Raises InputError if shapes or dtypes are wrong.
    """
    x1 = as_tokens("x1", x1, log_probabilities.shape[:-1])
    return -log_probabilities.gather(-1, x1[..., None])[..., 0]


class Loss(NamedTuple):
    """A loss, and the kind of denoiser that minimises it: "leave_one_out" or "posterior"."""

    function: Callable[..., Tensor]
    learns: str


def per_row(value: Level, like: Tensor) -> Tensor:
    """Return levels, (B,) or a number, as a tensor (B, 1) or (1, 1) with the dtype and device of `like`."""
    level = each_row("level of noise", value, len(like))
    return torch.as_tensor(level, dtype=like.dtype, device=like.device).reshape(-1, 1)
