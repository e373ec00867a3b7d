"""What a base model minimises: noise a batch between source and data, compare the denoiser with the data."""

import torch
from torch import Tensor, nn

from pairflow import networks, rng
from pairflow.flow.losses import LOSSES, uniform_nelbo
from pairflow.flow.process import interpolate, posterior_to_leave_one_out, stratified_times
from pairflow.schedule import DIFFUSION

VALIDATION_BATCH = 1024


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
    """Mean loss per token of a batch.

    x0 (M, N) is kept per row (`random`, `pairflow`), or drawn afresh where it is None (`udlm`).
    """

    def __init__(
        self, x1, x0, vocabulary_size: int, batch_size: int, loss: str, seed: int, device: torch.device
    ):
        self.x1 = torch.tensor(x1, device=device)  # (M, N), kept in its small dtype
        self.x0 = None if x0 is None else torch.tensor(x0, device=device)
        self.vocabulary_size, self.loss, self.seed, self.device = vocabulary_size, loss, seed, device
        self.batches = Batches(len(self.x1), batch_size, seed, device)

    def __call__(self, network: nn.Module, iteration: int) -> Tensor:
        rows = self.batches(iteration)
        generator = _generator(self.device, self.seed, "noise", iteration)
        x1 = self.x1[rows].long()  # (B, N)
        if self.x0 is None:
            x0 = torch.randint(self.vocabulary_size, x1.shape, generator=generator, device=self.device)
        else:
            x0 = self.x0[rows].long()
        return _loss(network, x0, x1, self.loss, generator).mean()


class Validator:
    """Validation NLL in nats per token, padding left out; the same uniform noise for every method."""

    def __init__(
        self, x1, vocabulary_size: int, padding: int | None, loss: str, seed: int, device: torch.device
    ):
        self.x1 = torch.tensor(x1, device=device)  # (M, N)
        self.vocabulary_size, self.padding, self.loss = vocabulary_size, padding, loss
        self.seed, self.device = seed, device

    @torch.no_grad()
    def __call__(self, network: nn.Module) -> float:
        network.eval()
        generator = _generator(self.device, self.seed, "validation")  # the same noise each time
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        tokens = 0
        for rows in self.x1.split(VALIDATION_BATCH):
            x1 = rows.long()
            x0 = torch.randint(self.vocabulary_size, x1.shape, generator=generator, device=self.device)
            kept = x1 != -1 if self.padding is None else x1 != self.padding  # (B, N)
            total += (_loss(network, x0, x1, self.loss, generator, bound=True) * kept).sum()
            tokens += int(kept.sum())
        return float(total) / tokens


def _loss(network, x0, x1, name: str, generator, bound: bool = False) -> Tensor:
    """Loss (B, N) at stratified times; with `bound` the NELBO, whatever the training loss."""
    function, prediction = LOSSES[name]
    t = stratified_times(len(x1), generator, x1.device)
    alpha = DIFFUSION.kappa(t)  # (B,)
    x_t = interpolate(x0, x1, alpha, generator)  # (B, N)
    log_probabilities = networks.log_probabilities(network, x_t, alpha)  # (B, N, K)
    if bound:
        function = uniform_nelbo
        if prediction == "posterior":
            log_probabilities = posterior_to_leave_one_out(log_probabilities, x_t, alpha)
    return function(log_probabilities, x1, x_t, alpha, DIFFUSION.derivative(t))


def _generator(device: torch.device, *labels) -> torch.Generator:
    return torch.Generator(device).manual_seed(rng.stream_seed(*labels))
