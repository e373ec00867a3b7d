"""The optimisation loop of every method: AdamW, warm-up, clipping, moving average, validation, log."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from pairflow import rng
from pairflow.config import Optimisation
from pairflow.errors import InputError

LOG_ROWS = 200  # rows of a training log, whatever the number of iterations

Objective = Callable[[nn.Module, int], Tensor]
Validation = Callable[[nn.Module], float]


@dataclass(frozen=True)
class Trained:
    """A finished run: raw and averaged weights, and the log.

    Columns of the log: iteration, loss, learning_rate, seconds, validation_nll.
    """

    network: nn.Module
    ema: nn.Module
    log: pd.DataFrame


def optimise(
    network: nn.Module,
    objective: Objective,
    settings: Optimisation,
    *,
    seed: int,
    average: AveragedModel | None = None,
    validate: Validation | None = None,
    progress: bool = True,
) -> Trained:
    """Minimise `objective(network, iteration)`, a scalar, for `settings.iterations` updates.

    Everything random is a function of (seed, iteration). `average` is a moving average to carry on; without
    one it begins with the network as it is. `validate` gives the validation NLL of the averaged weights, in
    nats per token. Raises InputError when the loss is no longer a number.
    """
    device = next(network.parameters()).device
    optimizer = torch.optim.AdamW(network.parameters(), settings.learning_rate, weight_decay=0.0, fused=True)
    schedule = learning_rate_schedule(optimizer, settings)
    ema = average or moving_average(network, settings.ema_decay)
    log = _Log(settings)
    bar = tqdm(
        range(settings.iterations), unit="it", disable=not progress, mininterval=1.0, dynamic_ncols=True
    )
    for iteration in bar:
        torch.manual_seed(rng.stream_seed(seed, "dropout", iteration))
        network.train()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = objective(network, iteration)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), settings.gradient_clip)
        learning_rate = schedule.get_last_lr()[0]
        optimizer.step()
        schedule.step()
        ema.update_parameters(network)
        log.add(iteration, loss, learning_rate, ema.module, validate, bar)
    return Trained(network, ema.module, log.frame())


def learning_rate_schedule(optimizer: torch.optim.Optimizer, settings: Optimisation) -> LRScheduler:
    """Linear warm-up to the peak, then cosine to the final learning rate, or constant."""
    rest = settings.iterations - settings.warmup_iterations
    if settings.decay == "cosine":
        decay = CosineAnnealingLR(optimizer, rest, eta_min=settings.final_learning_rate)
    else:
        decay = ConstantLR(optimizer, factor=1.0, total_iters=0)
    if settings.warmup_iterations == 0:
        return decay
    warmup = LinearLR(optimizer, 1 / settings.warmup_iterations, total_iters=settings.warmup_iterations - 1)
    return SequentialLR(optimizer, [warmup, decay], milestones=[settings.warmup_iterations])


def moving_average(network: nn.Module, decay: float, updates: int = 0) -> AveragedModel:
    """Exponential moving average with decay min(d, (1 + n) / (10 + n)) at update n = 1, 2, ...

    It begins with the weights of `network`, as if `updates` updates lay behind it.
    """

    def update(averages: list[Tensor], parameters: list[Tensor], updates: Tensor) -> None:
        n = int(updates)
        torch._foreach_lerp_(averages, parameters, 1 - min(decay, (1 + n) / (10 + n)))

    average = AveragedModel(network, multi_avg_fn=update)
    # The initial weights are the first average: without it the first update would copy.
    average.n_averaged.fill_(updates + 1)
    return average.eval()


class _Log:
    """Mean loss between rows; a row every iterations / LOG_ROWS, at each validation and at the end."""

    def __init__(self, settings: Optimisation):
        self.settings = settings
        self.every = max(1, settings.iterations // LOG_ROWS)
        self.started = time.perf_counter()
        self.losses: list[Tensor] = []
        self.rows: list[dict] = []

    def add(self, iteration, loss, learning_rate, ema, validate, bar) -> None:
        self.losses.append(loss.detach())
        done = iteration + 1
        last = done == self.settings.iterations
        validates = validate is not None and (last or done % self.settings.validate_every == 0)
        if not (validates or last or done % self.every == 0):
            return
        mean = torch.stack(self.losses).mean().item()
        if not math.isfinite(mean):
            raise InputError(f"the loss is not a number at iteration {done}: lower the learning rate")
        self.losses.clear()
        nll = validate(ema) if validates else None
        self.rows.append(
            {
                "iteration": done,
                "loss": mean,
                "learning_rate": learning_rate,
                "seconds": time.perf_counter() - self.started,
                "validation_nll": nll,
            }
        )
        shown = {"loss": f"{mean:.4f}"} | ({"validation": f"{nll:.4f}"} if nll is not None else {})
        bar.set_postfix(shown, refresh=False)

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows).astype({"validation_nll": "float64"})
