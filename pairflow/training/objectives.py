"""The objectives of base models: noise a batch, and compare the network's prediction with the data."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from pairflow import rng
from pairflow.arguments import checked_choice
from pairflow.flow.corruption import Corruption, Network, interpolate, stratified_times
from pairflow.flow.couple import Coupling, Independent
from pairflow.flow.schedule import DIFFUSION

WHOLE = slice(None)  # all rows of a batch
INDEPENDENT = Independent()
BatchLoss = Callable[[nn.Module, slice], Tensor]  # of a network on a slice of a batch
LABEL_DROPOUT = 0.1  # probability of hiding a label from a conditional model, as in Schiff et al. (2024)


class Objective(ABC):
    """A loss for `loop.optimise` to minimise. A loss with a state overrides `tensors` and `restore`."""

    @abstractmethod
    def batch(self, network: nn.Module, iteration: int) -> BatchLoss:
        """Draw the batch of an iteration; return a function that computes the mean loss of its slices.

        The function takes the network and a slice of the batch's rows, and returns a scalar. The batch is a
        function of (seed, iteration). Threads may compute the losses of several slices at once. `network` is
        the network in training.
        """

    def __call__(self, network: nn.Module, iteration: int, rows: slice = WHOLE) -> Tensor:
        """Return the mean loss of the network, a scalar, over a slice of the iteration's batch."""
        return self.batch(network, iteration)(network, rows)

    def tensors(self) -> dict[str, Tensor]:
        """Return the state, to save in a snapshot."""
        return {}

    def restore(self, tensors: dict[str, Tensor], network: nn.Module) -> None:  # noqa: B027 (no state)
        """Restore the state of a snapshot; `network` is the network in training."""


class Batches:
    """A function from an iteration to its batch of row numbers. Each epoch is a new order of the M rows."""

    def __init__(self, rows: int, batch_size: int, seed: int, device: torch.device):
        self.rows, self.batch_size, self.seed, self.device = rows, batch_size, seed, device
        self._epochs: dict[int, Tensor] = {}

    def __call__(self, iteration: int) -> Tensor:
        """Return the row numbers (B,) of an iteration's batch."""
        first = iteration * self.batch_size
        # A batch may begin in one epoch and end in the next, or later ones if there are few rows.
        epochs = range(first // self.rows, (first + self.batch_size - 1) // self.rows + 1)
        # Only the epochs of this batch stay in memory.
        self._epochs = {
            epoch: self._epochs[epoch] if epoch in self._epochs else self._permutation(epoch)
            for epoch in epochs
        }
        start = first - epochs[0] * self.rows
        return torch.cat(list(self._epochs.values()))[start : start + self.batch_size]  # (B,)

    def _permutation(self, epoch: int) -> Tensor:
        # A generator of the CPU gives the same order on every device.
        generator = random_generator(torch.device("cpu"), self.seed, "epoch", epoch)
        return torch.randperm(self.rows, generator=generator).to(self.device)


class Labels:
    """The labels (M,), or (M, P) of P properties, of a conditional model's rows, with label dropout.

    `sizes` has the number of classes of each property; as a label, this number means "no label". With
    probability 0.1, all labels of a row are replaced by "no label". So the network learns the conditional and
    the unconditional prediction of classifier-free guidance. If there are several properties, each label is
    also replaced separately with probability 0.1, so that samples can ask for only some of them.
    """

    def __init__(self, labels: np.ndarray, sizes: tuple[int, ...], seed: int, device: torch.device):
        self.labels = torch.tensor(labels, device=device)
        self.absent = torch.tensor(sizes if labels.ndim > 1 else sizes[0], device=device)
        self.seed, self.device = seed, device

    def after_dropout(self, batch: Tensor, iteration: int) -> Tensor:
        """Return the labels (B, ...) of the rows numbered `batch` (B,), after label dropout.

        Dropout uses a random stream of its own.
        """
        labels = self.labels[batch]
        generator = random_generator(self.device, self.seed, "label", iteration)
        several = labels.ndim > 1 and labels.shape[1] > 1
        shape = (len(labels), 1 + labels.shape[1]) if several else labels.shape
        dropped = torch.rand(shape, generator=generator, device=self.device) < LABEL_DROPOUT
        if several:
            # Column 0 hides all labels of a row, each of the others one.
            dropped = dropped[:, :1] | dropped[:, 1:]
        return torch.where(dropped, self.absent, labels)


class PairObjective(Objective):
    """A loss on batches of data x1 (M, ...) and their sources (rows of noise).

    x0 (M, ...) has a fixed source for each row (`random`, `pairflow`, a teacher's pairs). If it is None,
    sources are drawn in each iteration, and the `coupling` assigns data to them.
    """

    def __init__(
        self,
        x1: np.ndarray,
        x0: np.ndarray | None,
        batch_size: int,
        seed: int,
        device: torch.device,
        coupling: Coupling = INDEPENDENT,
        labels: Labels | None = None,
    ):
        self.x1 = torch.tensor(x1, device=device)  # tokens stay in 8 or 16 bits
        self.x0 = None if x0 is None else torch.tensor(x0, device=device)
        self.seed, self.device, self.labels = seed, device, labels
        self.shape = (batch_size, *self.x1.shape[1:])
        batches = Batches(len(self.x1), batch_size, seed, device)
        classes = None if labels is None else labels.labels
        self.batches = coupling(batches, self.x1, lambda number: self.draw(self.generator(number)), classes)

    def pairs(self, batch: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the sources and the data of a batch of row numbers (B,), each (B, ...)."""
        # Sources must be the generator's first numbers, because the coupling has drawn them in the same way.
        return self.draw(generator) if self.x0 is None else self.x0[batch], self.x1[batch]

    def generator(self, iteration: int) -> torch.Generator:
        """Return the generator of an iteration's random numbers.

        Loss and coupling both draw sources first, so they get the same ones.
        """
        return random_generator(self.device, self.seed, "noise", iteration)

    @abstractmethod
    def draw(self, generator: torch.Generator) -> Tensor:
        """Draw the sources (B, ...) of a batch: rows of noise."""


class FlowObjective(PairObjective):
    """Mean loss per token of a batch of x1 (M, N) under a corruption.

    Args:
        x1: data tokens (M, N).
        x0: source tokens (M, N), or None to draw new ones in each iteration.
        corruption: the noise.
        batch_size: B.
        loss: the name of one of the corruption's losses.
        seed: every random number follows from it and the iteration.
        device: where the batches are.
        padding: a symbol of x1 whose positions do not count, or None.
        labels: the labels of x1, for a conditional model.
        coupling: assigns data to new sources.
    """

    def __init__(
        self,
        x1: np.ndarray,
        x0: np.ndarray | None,
        corruption: Corruption,
        batch_size: int,
        loss: str,
        seed: int,
        device: torch.device,
        padding: int | None = None,
        labels: Labels | None = None,
        coupling: Coupling = INDEPENDENT,
    ):
        self.corruption, self.padding = corruption, padding
        self.loss = corruption.losses[checked_choice("loss", loss, corruption.losses)].function
        super().__init__(x1, x0, batch_size, seed, device, coupling, labels)

    def batch(self, network: nn.Module, iteration: int) -> BatchLoss:
        batch, generator = self.batches(iteration), self.generator(iteration)
        x0, x1 = (tokens.long() for tokens in self.pairs(batch, generator))  # (B, N)
        states = NoisedBatch.draw(x0, x1, generator)
        label = None if self.labels is None else self.labels.after_dropout(batch, iteration)

        def loss(network: nn.Module, rows: slice) -> Tensor:
            given: Network = network if label is None else partial(network, label=label[rows])
            state = states.select(rows)
            predicted = self.corruption.log_probabilities(given, state.x_t, state.alpha)  # (rows, N, K)
            losses = self.loss(predicted, x1[rows], *state)  # (rows, N)
            if self.padding is None:
                return losses.mean()
            counts = x1 != self.padding  # of the whole batch, so that slices add up to its mean
            # The loop multiplies by the slice's share of the rows, which the last factor undoes.
            return (losses * counts[rows]).sum() / counts.sum() * (len(x1) / len(losses))

        return loss

    def draw(self, generator: torch.Generator) -> Tensor:
        return self.corruption.source(self.shape, generator, self.device)


@dataclass
class Validator:
    """Measures the validation NLL, in nats per token without padding, by an upper bound, the NELBO.

    Noise always comes from the source distribution and is the same for all methods with the same corruption.
    Conditional models get no labels.
    """

    x1: np.ndarray  # (V, N)
    corruption: Corruption
    prediction: str
    padding: int | None
    seed: int
    device: torch.device

    def __post_init__(self) -> None:
        self._rows = torch.tensor(self.x1, device=self.device)

    @torch.no_grad()
    def __call__(self, network: nn.Module) -> float:
        """Return the mean NELBO per validation token, in nats; `network` is left in evaluation mode."""
        network.eval()
        generator = random_generator(self.device, self.seed, "validation")  # the same noise each time
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        tokens = 0
        for rows in self._rows.split(self.corruption.rows_at_once(self._rows.shape[1])):
            x1 = rows.long()
            state = NoisedBatch.draw(self.corruption.source(x1.shape, generator, self.device), x1, generator)
            counts = x1 != (-1 if self.padding is None else self.padding)  # (B, N); no token is -1
            predicted = self.corruption.log_probabilities(network, state.x_t, state.alpha)
            total += (self.corruption.bound(predicted, self.prediction, x1, *state) * counts).sum()
            tokens += int(counts.sum())
        return float(total) / tokens


class NoisedBatch(NamedTuple):
    """States x_t (B, N), the share of data kept, alpha = kappa(t) (B,), and kappa'(t): a loss's arguments."""

    x_t: Tensor
    alpha: Tensor
    alpha_derivative: float

    @classmethod
    def draw(cls, x0: Tensor, x1: Tensor, generator: torch.Generator) -> Self:
        """Draw a state between x0 and x1 (B, N) for every row, at stratified times."""
        t = stratified_times(len(x1), generator, x1.device)
        alpha = DIFFUSION.kappa(t)  # (B,)
        return cls(interpolate(x0, x1, alpha, generator), alpha, DIFFUSION.derivative(t))

    def select(self, rows: slice) -> Self:
        """Return the states of a slice of rows."""
        return self._replace(x_t=self.x_t[rows], alpha=self.alpha[rows])


def random_generator(device: torch.device, *labels: str | int) -> torch.Generator:
    """Return a generator on `device`, whose seed is a function of the labels."""
    return torch.Generator(device).manual_seed(rng.stream_seed(*labels))
