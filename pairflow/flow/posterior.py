"""Posteriors of uniform noise and of noise by frequency, and conversions between the two kinds of denoiser.

A *posterior* predicts p(x1^i | x_t) from the whole state. A *leave-one-out* is the minimum of UDLM's NELBO:
for independent noise p(x1^i | x_t without position i), for pairs only what converts into their posterior.
arXiv 2605.22765 makes this distinction; see docs/method.md, "Two kinds of denoiser". alpha = kappa(t) is the
probability that a position holds its data symbol, and pi (N, K) has the probabilities of the noise's symbols,
None if all are 1 / K.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pairflow.flow.arguments import as_tokens
from pairflow.flow.losses import Level, per_row


def ancestral_posterior(
    probabilities: Tensor, x_t: Tensor, alpha_t: Level, alpha_s: Level, pi: Tensor | None = None
) -> Tensor:
    """Compute UDLM's posterior (Schiff et al. 2024) of the less noisy x_s, given x_t and a leave-one-out x.

        q(x_s) = [K a z*x + (r - a) z + (b - a) x + (1 - r)(1 - b) / K] / [K a <z, x> + 1 - a]

    with a = alpha_t, b = alpha_s >= a, r = a / b and z = onehot(x_t). With pi, K becomes 1 / pi(x_t) and the
    last 1 / K becomes pi. See docs/method.md, "Sampling" and "Noise by frequency".

    Args:
        probabilities: x, the leave-one-out distribution over x1, (B, N, K).
        x_t: tokens (B, N).
        alpha_t: kappa at the current time, the probability that a position holds its data symbol, (B,) or a
            number.
        alpha_s: kappa after the step, (B,) or a number, positive and at least alpha_t.
        pi: the probabilities (N, K) of the noise's symbols; None if all are 1 / K.

    Returns:
        q(x_s), (B, N, K) float64.

    Raises:
        InputError: if shapes or dtypes are wrong.
    """
    x, x_t = probabilities.double(), as_tokens("x_t", x_t, probabilities.shape[:-1])  # (B, N, K), (B, N)
    a, b = (per_row(alpha, x)[..., None] for alpha in (alpha_t, alpha_s))  # (B, 1, 1)
    r, z = a / b, x_t[..., None]
    seen = _rarity(pi, x_t, x) * a * x.gather(-1, z)  # (B, N, 1)
    # In-place operations: tensors (B, N, K) are large where K is in the thousands.
    q = (b - a) * x
    if pi is None:
        q += (1 - r) * (1 - b) / x.shape[-1]
    else:
        q.addcmul_((1 - r) * (1 - b), pi.to(q))
    # z is 0 except at x_t, so both of its terms are added only there.
    return q.scatter_add_(-1, z, seen + r - a).div_(seen + 1 - a)


def leave_one_out_to_posterior(
    log_probabilities: Tensor, x_t: Tensor, alpha: Level, pi: Tensor | None = None
) -> Tensor:
    """Convert a leave-one-out prediction to the posterior p(x1^i | x_t).

    post(x) is proportional to loo(x) (1 - alpha + K alpha [x = x_t^i]). With pi, K becomes 1 / pi(x_t). For
    independent noise this is Bayes' rule (arXiv 2605.22765). It is exact for what the NELBO learns from any
    coupling.

    Args:
        log_probabilities: log loo, (B, N, K).
        x_t: tokens (B, N).
        alpha: kappa, the probability that a position holds its data symbol, (B,) or a number, less than 1.
        pi: the probabilities (N, K) of the noise's symbols; None if all are 1 / K.

    Returns:
        Normalised log-probabilities (B, N, K).

    Raises:
        InputError: if shapes or dtypes are wrong.
    """
    return F.log_softmax(log_probabilities + _log_likelihood(log_probabilities, x_t, alpha, pi), dim=-1)


def posterior_to_leave_one_out(
    log_probabilities: Tensor, x_t: Tensor, alpha: Level, pi: Tensor | None = None
) -> Tensor:
    """Convert the posterior p(x1^i | x_t) to the leave-one-out, which does not see the symbol at position i.

    This is the inverse of `leave_one_out_to_posterior`: `log_probabilities` (B, N, K) are of the posterior,
    x_t are tokens (B, N), alpha is kappa (less than 1), and `pi` (N, K) has the probabilities of the noise's
    symbols, or is None if they are 1 / K. Returns normalised log-probabilities (B, N, K). Raises InputError
    if shapes or dtypes are wrong.
    """
    return F.log_softmax(log_probabilities - _log_likelihood(log_probabilities, x_t, alpha, pi), dim=-1)


# The kinds of denoiser, and the function that makes each from the other kind.
CONVERSIONS = {"leave_one_out": posterior_to_leave_one_out, "posterior": leave_one_out_to_posterior}
PREDICTIONS = tuple(CONVERSIONS)


def _log_likelihood(like: Tensor, x_t: Tensor, alpha: Level, pi: Tensor | None) -> Tensor:
    """Return log(p(x_t^i | x1^i = x) / pi(x_t^i)) for every x, of the shape (B, N, K) and type of `like`."""
    alpha = per_row(alpha, like)[..., None]  # (B, 1, 1)
    x_t = as_tokens("x_t", x_t, like.shape[:-1])
    seen = torch.log(1 - alpha + _rarity(pi, x_t, like) * alpha).expand(*x_t.shape, 1)  # (B, N, 1)
    return torch.log(1 - alpha).expand(like.shape).scatter(-1, x_t[..., None], seen)


def _rarity(pi: Tensor | None, x_t: Tensor, like: Tensor) -> Tensor | int:
    """Return 1 / pi(x_t), (B, N, 1), in the dtype of `like` (B, N, K); for uniform noise (pi is None) K."""
    return like.shape[-1] if pi is None else 1 / pi.to(like).expand(like.shape).gather(-1, x_t[..., None])
