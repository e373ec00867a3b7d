"""What a method's noise decides: its source states, how its network is read, its losses and its samplers.

Both kinds offer the same:

    symbols                       number of symbols that states and network have
    mask                          the one of them that stands for a mask in states, or None
    source(shape, ...)            source states x0
    log_probabilities(network, x_t, kappa)    the network's log x_theta (B, N, K) float32
    losses, samplers              by name, as settings name them
    bound(...)                    the NELBO, whatever kind of denoiser the training loss has made
    denoiser(network)             `log_probabilities` as a sampler calls it
    sample(network, x0, ...)      samples from source states, by the sampler of a name
    rows_at_once(length)          how many rows a network without gradients sees together
"""

import functools
from typing import ClassVar

import torch
import torch.nn.functional as F

from pairflow.flow.losses import Loss, absorbing_nelbo, cross_entropy, uniform_nelbo
from pairflow.flow.posterior import posterior_to_leave_one_out
from pairflow.flow.samplers import Remembered, ancestral, euler

MOST_ROWS, MOST_BYTES = 1024, 2**29  # of a network's output in float64: part of the random streams

CPU_TOKENS = 2**16  # in a network at once: with more a U-Net takes twice as long per row, out of the caches


class Corruption:
    """What both kinds share."""

    def sample(
        self, network, x0, *, sampler, steps, prediction, conversion="exact", greedy_tail=True, generator=None
    ):
        """Tokens (B, N) from source states x0 (B, N), by the settings of `flow.samplers`."""
        return self.samplers[sampler](
            self.denoiser(network),
            x0,
            steps=steps,
            prediction=prediction,
            convert=conversion == "exact",
            greedy_tail=greedy_tail,
            generator=generator,
        )

    def rows_at_once(self, length):
        """A power of two, 1,024 at most, whose log-probabilities (B, N, K) take half a GiB at most."""
        rows = MOST_ROWS
        while rows > 1 and rows * length * self.symbols * 8 > MOST_BYTES:
            rows //= 2
        return rows


class Uniform(Corruption):
    """Uniform-state noise (UDLM): the source is uniform over K^N, the network is told sigma = -log kappa."""

    losses: ClassVar = {
        "nelbo": Loss(uniform_nelbo, "leave_one_out"),
        "cross_entropy": Loss(cross_entropy, "posterior"),
    }
    samplers: ClassVar = {"ancestral": ancestral, "euler": euler}
    mask = None  # a vocabulary's own mask is a symbol like any other

    def __init__(self, vocabulary_size, mask=None):
        self.symbols = vocabulary_size

    def source(self, shape, generator=None, device=None):
        return torch.randint(self.symbols, shape, generator=generator, device=device)

    def log_probabilities(self, network, x_t, kappa):
        return F.log_softmax(network(x_t, -kappa.log()).float(), dim=-1)

    def bound(self, log_probabilities, prediction, x1, x_t, alpha, alpha_derivative):
        if prediction == "posterior":
            log_probabilities = posterior_to_leave_one_out(log_probabilities, x_t, alpha)
        return uniform_nelbo(log_probabilities, x1, x_t, alpha, alpha_derivative)

    def denoiser(self, network):
        return functools.partial(self.log_probabilities, functools.partial(in_parts, network))


class Absorbing(Corruption):
    """Absorbing-state noise (MDLM, Sahoo et al. 2024): the source is all masks, the network knows no time.

    `mask` is the vocabulary's own mask symbol; without one, symbol K is added. The network is read by the
    SUBS parameterisation: the mask is never predicted, and a position that is not masked predicts itself.
    Posterior and leave-one-out are then the same, and the ancestral update is the Euler update.
    """

    losses: ClassVar = {
        "nelbo": Loss(absorbing_nelbo, "posterior"),
        "cross_entropy": Loss(cross_entropy, "posterior"),
    }
    samplers: ClassVar = {"ancestral": euler, "euler": euler}

    def __init__(self, vocabulary_size, mask=None):
        self.mask = vocabulary_size if mask is None else mask
        self.symbols = vocabulary_size + (mask is None)

    def source(self, shape, generator=None, device=None):
        return torch.full(shape, self.mask, device=device)

    def log_probabilities(self, network, x_t, kappa):
        logits = network(x_t, torch.zeros_like(kappa)).float()  # (B, N, K)
        logits = logits.index_fill(-1, torch.tensor([self.mask], device=logits.device), -torch.inf)
        known = F.one_hot(x_t, self.symbols).to(logits).log()  # 0 at x_t, else -inf
        return torch.where((x_t == self.mask)[..., None], F.log_softmax(logits, dim=-1), known)

    def bound(self, log_probabilities, prediction, x1, x_t, alpha, alpha_derivative):
        return absorbing_nelbo(log_probabilities, x1, x_t, alpha, alpha_derivative)

    def denoiser(self, network):
        return Remembered(functools.partial(self.log_probabilities, functools.partial(in_parts, network)))


def in_parts(network, x_t, sigma):
    """The network's output (B, N, K); on a CPU few rows at a time, which is quicker."""
    if x_t.device.type != "cpu":
        return network(x_t, sigma)
    rows = max(1, CPU_TOKENS // x_t.shape[1])
    parts = [network(*part) for part in zip(x_t.split(rows), sigma.split(rows), strict=True)]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


CORRUPTIONS = {"uniform": Uniform, "absorbing": Absorbing}
