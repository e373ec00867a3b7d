"""The optimisation loop of every method: AdamW, warm-up, clipping, moving average, validation, log."""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from pairflow import rng
from pairflow.config import Optimisation
from pairflow.errors import InputError, Interrupted
from pairflow.networks.dropout import set_batch_slice
from pairflow.runtime import distributed, processes, signals
from pairflow.runtime.snapshots import Snapshots

LOG_ROWS = 200  # rows of a training log, whatever the number of iterations

# The mean over some rows of an iteration's batch; one with a state has `tensors` and `restore`, as DCD's.
Objective = Callable[[nn.Module, int, slice], Tensor]
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
    snapshots: Snapshots | None = None,
    micro_batch: int | None = None,
    progress: bool = True,
) -> Trained:
    """Minimise `objective(network, iteration, rows)`, the mean over rows of a batch, by so many updates.

    Everything random is a function of (seed, iteration). `average` is a moving average to carry on; without
    one it begins with the network as it is. `validate` gives the validation NLL of the averaged weights, in
    nats per token. With `snapshots` a run that was stopped goes on, to the bits of one that never was. Raises
    InputError when the loss is no longer a number, and with `snapshots` Interrupted on SIGTERM and SIGINT.

    A batch goes through the network in slices where there are more processes than this one, which all call
    this alike, or more rows in it than `micro_batch`: that changes the order in which floats are added, and
    nothing else. The first process alone validates, saves and shows progress.
    """
    with distributed.process_group():
        return _optimise(
            _Run(network, objective, settings, average, micro_batch),
            seed,
            None if processes.rank() else validate,
            snapshots,
            progress and not processes.rank(),
        )


def _optimise(
    run: "_Run", seed: int, validate: Validation | None, snapshots: Snapshots | None, progress: bool
) -> Trained:
    settings = run.settings
    first = run.restore(snapshots) if snapshots else 0
    if distributed.all_reduce_max(first, -first) != [first, -first]:
        raise InputError(f"{snapshots.folder}: not the same folder of saved states for all processes")
    bar = tqdm(
        range(first, settings.iterations),
        initial=first,
        total=settings.iterations,
        unit="it",
        disable=not progress,
        mininterval=1.0,
        dynamic_ncols=True,
    )
    with signals.kept(alone=processes.world_size() == 1) if snapshots else nullcontext() as received:
        for iteration in bar:
            learning_rate = run.schedule.get_last_lr()[0]
            loss = run.update(iteration, seed)
            run.log.add(iteration, loss, learning_rate, run.ema.module, validate, bar)
            if snapshots:
                _heed(received, run, snapshots, iteration + 1)
    return Trained(run.network, run.ema.module, run.log.frame())


def _heed(received: list[int], run: "_Run", snapshots: Snapshots, done: int) -> None:
    """Save where it is time or a signal asks any process for it; Interrupted where one asks to stop.

    Signals count once.
    """
    asked = received[:]
    del received[: len(asked)]
    first = processes.rank() == 0
    stop = max((number for number in asked if number in signals.STOP), default=0)
    save, stop = distributed.all_reduce_max(bool(asked) or (first and snapshots.due), stop)
    if save and first:
        run.save(snapshots, done)
    if stop:
        distributed.all_reduce_max(0)  # none ends, and has torchrun end the others, before the state is whole
        iterations = run.settings.iterations
        raise Interrupted(f"stopped after {done:,} of {iterations:,} iterations, which are saved", stop)


class _Run:
    """All that changes from one iteration to the next."""

    def __init__(
        self, network, objective, settings: Optimisation, average: AveragedModel | None, micro_batch
    ):
        self.network, self.objective, self.settings = network, objective, settings
        self.slices = distributed.batch_slices(settings.batch_size, micro_batch)
        self.shared = distributed.wrap(network)
        parameters = network.parameters()
        self.optimizer = torch.optim.AdamW(parameters, settings.learning_rate, weight_decay=0.0, fused=True)
        self.schedule = learning_rate_schedule(self.optimizer, settings)
        self.ema = average or moving_average(network, settings.ema_decay)
        self.log = _Log(settings)
        self.device = next(network.parameters()).device

    def update(self, iteration: int, seed: int) -> Tensor:
        """One step of the optimiser; the loss before it."""
        self.network.train()
        self.optimizer.zero_grad(set_to_none=True)
        *others, last = self.slices
        with distributed.no_sync(self.shared):
            losses = [self._pass(iteration, seed, rows) for rows in others]
        loss = distributed.all_reduce_sum(sum(losses, self._pass(iteration, seed, last)))
        nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.gradient_clip)
        self.optimizer.step()
        self.schedule.step()
        self.ema.update_parameters(self.network)
        return loss

    def _pass(self, iteration: int, seed: int, rows: slice) -> Tensor:
        """Add what some rows of the batch have to say to the gradients; their part of the loss."""
        batch_size = self.settings.batch_size
        part = (rows.stop - rows.start) / batch_size
        torch.manual_seed(rng.stream_seed(seed, "dropout", iteration))
        set_batch_slice(self.network, rows, batch_size)
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                loss = self.objective(self.shared, iteration, rows)
            (
                loss * (part * processes.world_size())
            ).backward()  # the mean over processes is taken of gradients
        except torch.OutOfMemoryError as error:
            seen = rows.stop - rows.start
            raise InputError(
                f"{seen:,} rows at once are too many for the GPU: lower --micro-batch"
            ) from error
        return loss.detach() * part

    def save(self, snapshots: Snapshots, done: int) -> None:
        optimizer = self.optimizer.state_dict()
        parts = {
            "network": self.network.state_dict(),
            "ema": self.ema.state_dict(),
            "objective": getattr(self.objective, "tensors", dict)(),
            **{f"optimizer.{index}": state for index, state in optimizer["state"].items()},
        }
        tensors = {f"{part}.{name}": value for part, of in parts.items() for name, value in of.items()}
        facts = {"groups": optimizer["param_groups"], "schedule": self.schedule.state_dict()}
        snapshots.save(done, tensors, {**facts, "log": self.log.state()})

    def restore(self, snapshots: Snapshots) -> int:
        """Take up the newest snapshot; how many iterations it has behind it."""
        found = snapshots.load("cpu")
        if found is None:
            return 0
        done, tensors, facts = found
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "ema": {}, "objective": {}, "optimizer": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition(".")
            parts[part][name] = tensor
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in parts["optimizer"].items():
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = tensor
        self.network.load_state_dict(parts["network"])
        self.ema.load_state_dict(parts["ema"])
        self.optimizer.load_state_dict({"state": state, "param_groups": facts["groups"]})
        self.schedule.load_state_dict(facts["schedule"])
        self.log.restore(facts["log"], self.device)
        if parts["objective"]:
            self.objective.restore(parts["objective"], self.network)
        return done


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
        self.losses.append(loss)
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

    def state(self) -> dict[str, Any]:
        """What it has seen, as JSON; times go on from there."""
        losses = torch.stack(self.losses).tolist() if self.losses else []
        return {"rows": self.rows, "losses": losses, "seconds": time.perf_counter() - self.started}

    def restore(self, state: dict[str, Any], device: torch.device) -> None:
        self.rows = state["rows"]
        self.losses = list(torch.tensor(state["losses"], device=device))
        self.started = time.perf_counter() - state["seconds"]

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows).astype({"validation_nll": "float64"})
