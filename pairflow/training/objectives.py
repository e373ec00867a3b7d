"""What a base model minimises: noise a batch between source and data, compare the denoiser with the data."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from pairflow import rng
from pairflow.flow.corruption import interpolate, stratified_times
from pairflow.flow.schedule import DIFFUSION

WHOLE = slice(None)  # of a batch


class Batches:
    """Row numbers of a batch by (seed, iteration): endless epochs, each its own permutation of M rows."""

    def __init__(self, rows: int, batch_size: int, seed: int, device: torch.device):
        self.rows, self.batch_size, self.seed, self.device = rows, batch_size, seed, device
        self._epochs: dict[int, Tensor] = {}

    def __call__(self, iteration: int) -> Tensor:
        first = iteration * self.batch_size
        epochs = range(first // self.rows, (first + self.batch_size - 1) // self.rows + 1)
        self._epochs = {epoch: self._epochs.get(epoch, None) for epoch in epochs}
        for epoch, order in self._epochs.items():
            if order is None:
                self._epochs[epoch] = self._permutation(epoch)
        start = first - epochs[0] * self.rows
        return torch.cat(list(self._epochs.values()))[start : start + self.batch_size]  # (B,)

    def _permutation(self, epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(rng.stream_seed(self.seed, "epoch", epoch))
        return torch.randperm(self.rows, generator=generator).to(self.device)


class FlowObjective:
    """Mean loss per token of a batch of x1 (M, N) under a noise of `flow.corruption`.

    x0 (M, N) is kept per row (`random`, `pairflow`, a teacher's pairs), or drawn afresh where it is None.
    Of a batch of which the network sees some rows alone, `seen`, everything is drawn and the rest left out.
    """

    def __init__(self, x1, x0, corruption, batch_size: int, loss: str, seed: int, device: torch.device):
        self.x1 = torch.tensor(x1, device=device)  # (M, N), kept in its small dtype
        self.x0 = None if x0 is None else torch.tensor(x0, device=device)
        self.corruption, self.loss, self.seed, self.device = (
            corruption,
            corruption.losses[loss].function,
            seed,
            device,
        )
        self.batches = Batches(len(self.x1), batch_size, seed, device)

    def __call__(self, network: nn.Module, iteration: int, seen: slice = WHOLE) -> Tensor:
        rows = self.batches(iteration)
        generator = random_generator(self.device, self.seed, "noise", iteration)
        x1 = self.x1[rows].long()  # (B, N)
        fresh = self.x0 is None
        x0 = self.corruption.source(x1.shape, generator, self.device) if fresh else self.x0[rows].long()
        state = Noised.draw(x0, x1, generator).of(seen)
        predicted = self.corruption.log_probabilities(network, state.x_t, state.alpha)  # (rows seen, N, K)
        return self.loss(predicted, x1[seen], *state).mean()


class Validator:
    """Validation NLL in nats per token, padding left out: a bound.

    The noise is drawn afresh from the source, the same for every method with that noise.
    """

    def __init__(self, x1, corruption, prediction: str, padding: int | None, seed: int, device: torch.device):
        self.x1 = torch.tensor(x1, device=device)  # (M, N)
        self.corruption, self.prediction, self.padding = corruption, prediction, padding
        self.seed, self.device = seed, device

    @torch.no_grad()
    def __call__(self, network: nn.Module) -> float:
        network.eval()
        generator = random_generator(self.device, self.seed, "validation")  # the same noise each time
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        tokens = 0
        for rows in self.x1.split(self.corruption.rows_at_once(self.x1.shape[1])):
            x1 = rows.long()
            state = Noised.draw(self.corruption.source(x1.shape, generator, self.device), x1, generator)
            kept = x1 != -1 if self.padding is None else x1 != self.padding  # (B, N)
            predicted = self.corruption.log_probabilities(network, state.x_t, state.alpha)
            total += (self.corruption.bound(predicted, self.prediction, x1, *state) * kept).sum()
            tokens += int(kept.sum())
        return float(total) / tokens


class Noised(NamedTuple):
    """x_t (B, N), alpha = kappa(t) (B,) and kappa'(t), in the order in which losses take them."""

    x_t: Tensor
    alpha: Tensor
    alpha_derivative: float

    @classmethod
    def draw(cls, x0: Tensor, x1: Tensor, generator: torch.Generator) -> "Noised":
        """A state between x0 and x1 (B, N) for every row, at stratified times."""
        t = stratified_times(len(x1), generator, x1.device)
        alpha = DIFFUSION.kappa(t)  # (B,)
        return cls(interpolate(x0, x1, alpha, generator), alpha, DIFFUSION.derivative(t))

    def of(self, rows: slice) -> "Noised":
        """Those of some rows."""
        return self._replace(x_t=self.x_t[rows], alpha=self.alpha[rows])


def random_generator(device: torch.device, *labels) -> torch.Generator:
    return torch.Generator(device).manual_seed(rng.stream_seed(*labels))
