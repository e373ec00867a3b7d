"""The state of an optimisation, which changes in every iteration, and how it is saved."""

import math
import time

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR
from torch.optim.swa_utils import AveragedModel

from pairflow.config import Optimisation
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.runtime.snapshots import Snapshots
from pairflow.training.objectives import Objective

_PARTS = ("network", "optimizer", "schedule", "ema")  # attributes with a `state_dict`
Tensors = list[Tensor] | tuple[Tensor, ...]
LOG_ROWS = 200  # approximate number of rows of a training log


class TrainingState:
    """The network, its optimiser, schedule and moving average, the objective, and the log."""

    def __init__(
        self, network: nn.Module, objective: Objective, settings: Optimisation, average: AveragedModel | None
    ):
        self.network, self.objective = network, objective
        parameters = network.parameters()
        self.optimizer = torch.optim.AdamW(parameters, settings.learning_rate, weight_decay=0.0, fused=True)
        self.schedule = learning_rate_schedule(self.optimizer, settings)
        self.ema = average or moving_average(network, settings.ema_decay)
        self.log = TrainingLog(settings)
        self.threads = torch.get_num_threads()

    def save(self, snapshots: Snapshots, done: int) -> None:
        """Write a snapshot after `done` iterations."""
        parts = {name: getattr(self, name).state_dict() for name in _PARTS}
        others = {"log": self.log.state(), "threads": self.threads}
        snapshots.save(done, {**parts, "objective": self.objective.tensors(), **others})

    def restore(self, snapshots: Snapshots) -> int:
        """Restore the newest snapshot, and return how many iterations it has done; 0 without a snapshot.

        A training keeps the number of CPU threads with which it began, because sums on other numbers are
        rounded differently.
        """
        snapshot = snapshots.load()
        if snapshot is None:
            return 0
        done, state = snapshot
        self.threads = state["threads"]
        torch.set_num_threads(self.threads)
        for name in _PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.log.restore(state["log"], next(self.network.parameters()).device)
        if state["objective"]:
            self.objective.restore(state["objective"], self.network)
        return done


class TrainingLog:
    """The log of a training: rows with the mean loss since the row before.

    A row is added every iterations / LOG_ROWS iterations, at each validation, and at the end.
    """

    def __init__(self, settings: Optimisation):
        self.settings = settings
        self.every = max(1, settings.iterations // LOG_ROWS)
        self.started = time.perf_counter()
        self.losses: list[Tensor] = []
        self.rows: list[Json] = []

    def validates_at(self, done: int) -> bool:
        """Return whether the validation NLL is measured after `done` iterations."""
        return done == self.settings.iterations or done % self.settings.validate_every == 0

    def add(self, done: int, loss: Tensor, learning_rate: float, nll: float | None) -> dict[str, str] | None:
        """Add the loss of an iteration. If a row of the log ends, return numbers for the progress bar.

        Raises InputError if the mean loss of the row is not finite.
        """
        self.losses.append(loss)  # a tensor: reading its value in every iteration would stall a GPU
        if nll is None and done != self.settings.iterations and done % self.every:
            return None
        mean = torch.stack(self.losses).mean().item()
        if not math.isfinite(mean):
            raise InputError(f"the loss is not a number at iteration {done}: lower the learning rate")
        self.losses.clear()
        row = {"iteration": done, "loss": mean, "learning_rate": learning_rate}
        self.rows.append({**row, "seconds": time.perf_counter() - self.started, "validation_nll": nll})
        return {"loss": f"{mean:.4f}"} | ({"validation": f"{nll:.4f}"} if nll is not None else {})

    def state(self) -> Json:
        """Return the state of the log, to save in a snapshot."""
        # Without the losses of the unfinished row, an interruption would change its mean.
        return {"rows": self.rows, "losses": self.losses, "seconds": time.perf_counter() - self.started}

    def restore(self, state: Json, device: torch.device) -> None:
        """Restore the log from a `state`; its clock continues."""
        self.rows, self.losses = state["rows"], [loss.to(device) for loss in state["losses"]]
        self.started = time.perf_counter() - state["seconds"]

    def frame(self) -> pd.DataFrame:
        """Return columns iteration, loss, learning_rate, seconds, validation_nll (null if not measured)."""
        numbers = ("loss", "learning_rate", "seconds", "validation_nll")
        types = {"iteration": "int64"} | dict.fromkeys(numbers, "float64")
        return pd.DataFrame(self.rows, columns=[*types]).astype(types)


def learning_rate_schedule(optimizer: torch.optim.Optimizer, settings: Optimisation) -> LRScheduler:
    """Return the schedule of the rate: a linear warm-up to the peak, then a cosine or a constant rate.

    The cosine ends at the final learning rate.
    """
    rest = settings.iterations - settings.warmup_iterations
    decay: LRScheduler
    if settings.decay == "cosine":
        decay = CosineAnnealingLR(optimizer, rest, eta_min=settings.final_learning_rate)
    else:
        decay = ConstantLR(optimizer, factor=1.0, total_iters=0)
    if settings.warmup_iterations == 0:
        return decay
    # The first of W iterations has the rate peak / W and the last the peak: the rate changes W - 1 times.
    warmup = LinearLR(optimizer, 1 / settings.warmup_iterations, total_iters=settings.warmup_iterations - 1)
    return SequentialLR(optimizer, [warmup, decay], milestones=[settings.warmup_iterations])


def moving_average(network: nn.Module, decay: float, updates: int = 0) -> AveragedModel:
    """Return an exponential moving average of `network`, with decay min(d, (1 + n) / (10 + n)) at update n.

    d is `decay`, and n = 1, 2, ... The average starts with the weights of `network`, as if these came after
    `updates` updates.
    """

    def update(averages: Tensors, parameters: Tensors, updates: Tensor | int) -> None:
        # A short memory at first forgets the random initial weights (TensorFlow's ExponentialMovingAverage).
        n = int(updates)
        torch._foreach_lerp_(averages, parameters, 1 - min(decay, (1 + n) / (10 + n)))

    average = AveragedModel(network, multi_avg_fn=update)
    # The initial weights are the first average. With a count of 0 PyTorch's first update would only copy.
    average.n_averaged.fill_(updates + 1)
    return average.eval()
