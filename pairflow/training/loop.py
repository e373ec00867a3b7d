"""The optimisation loop of every method: AdamW, warm-up, clipping, moving average, validation, log."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from pairflow import rng
from pairflow.config import Optimisation
from pairflow.errors import InputError, Interrupted
from pairflow.networks.layers import set_batch_slice
from pairflow.runtime import distributed, signals
from pairflow.runtime.progress import bar
from pairflow.runtime.resume import RERUN
from pairflow.runtime.snapshots import Snapshots
from pairflow.training.objectives import Objective
from pairflow.training.state import TrainingState

Validation = Callable[[nn.Module], float]


class Trained(NamedTuple):
    """The network and its moving average at the end of a run, and the log (see `TrainingLog.frame`)."""

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
    """Minimise `objective(network, iteration, rows)`, the mean over rows of a batch.

    Everything random is a function of (seed, iteration). `average` is a moving average to continue; without
    one it starts from the network as it is. `validate` gives the validation NLL of the averaged weights, in
    nats per token. With `snapshots` an interrupted run resumes, to the same bits. Raises InputError if the
    loss is not a number, and with `snapshots` Interrupted on a signal of `signals.STOP`.

    A batch passes through the network in slices if several processes call this together, or if it has more
    rows than `micro_batch`. That changes only the order in which floats are added. Only process 0 validates,
    saves and shows progress.
    """
    with distributed.process_group():
        first_process = distributed.rank() == 0
        slices = distributed.batch_slices(settings.batch_size, micro_batch)
        wrapped = distributed.wrap(network)
        state = TrainingState(network, objective, settings, average)
        done = _resume(state, snapshots) if snapshots else 0

        def accumulate(iteration: int, rows: slice) -> Tensor:
            return _accumulate(wrapped, objective, iteration, rows, seed, settings.batch_size)

        iterations = bar(
            range(done, settings.iterations),
            initial=done,
            total=settings.iterations,
            unit="it",
            quiet=not (progress and first_process),
        )
        # Signals are collected and heeded between iterations, so that a saved state is never half an update.
        collected: AbstractContextManager[list[int]] = nullcontext([])
        if snapshots:
            collected = signals.collect(distributed.world_size() == 1)
        with collected as received:
            for iteration in iterations:
                learning_rate = float(state.schedule.get_last_lr()[0])
                network.train()
                state.optimizer.zero_grad(set_to_none=True)
                # All slices add to the gradients; only the last one averages them over the processes.
                with distributed.no_sync(wrapped):
                    losses = [accumulate(iteration, rows) for rows in slices[:-1]]
                loss = distributed.all_reduce_sum(sum(losses, accumulate(iteration, slices[-1])))
                # Clipping bounds the step that a rare, very noisy batch can take.
                nn.utils.clip_grad_norm_(network.parameters(), settings.gradient_clip)
                state.optimizer.step()
                state.schedule.step()
                # Samples are drawn from the averaged weights, so validation measures those.
                state.ema.update_parameters(network)
                done = iteration + 1
                validates = first_process and state.log.validates_at(done)
                nll = validate(state.ema.module) if validate and validates else None
                if numbers := state.log.add(done, loss, learning_rate, nll):
                    iterations.set_postfix(numbers, refresh=False)
                if snapshots:
                    _save_or_stop(received, state, snapshots, done, settings.iterations)
        return Trained(network, state.ema.module, state.log.frame())


def _accumulate(
    network: nn.Module, objective: Objective, iteration: int, rows: slice, seed: int, batch_size: int
) -> Tensor:
    """Add the gradients of a slice of the batch; return its share of the loss."""
    size = rows.stop - rows.start
    device = next(network.parameters()).device
    # Dropout draws its masks for the whole batch, so that slices do not change them. (torch.manual_seed seeds
    # all devices; without a GPU it spends more than a millisecond on keeping the seed for one.)
    on_gpu = device.type == "cuda"
    generator = torch.cuda.default_generators[device.index] if on_gpu else torch.default_generator
    generator.manual_seed(rng.stream_seed(seed, "dropout", iteration))
    set_batch_slice(distributed.unwrap(network), rows, batch_size)
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            loss = objective(network, iteration, rows)
        share = size / batch_size
        # The processes' gradients are averaged afterwards, but the shares are to be summed.
        (loss * (share * distributed.world_size())).backward()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"{size:,} rows do not fit on the GPU at once; set --micro-batch to a smaller number of rows"
        ) from error
    return loss.detach() * share


def _resume(state: TrainingState, snapshots: Snapshots) -> int:
    """Restore the newest snapshot; InputError if the processes do not find the same one."""
    done = state.restore(snapshots)
    if distributed.all_reduce_max(done, -done) != [done, -done]:
        raise InputError(f"{snapshots.folder}: the processes do not share this folder of saved states")
    return done


def _save_or_stop(
    received: list[int], state: TrainingState, snapshots: Snapshots, done: int, iterations: int
) -> None:
    """Save if it is time or if any process received a signal; Interrupted if one asks to stop."""
    handled = received[:]
    del received[: len(handled)]  # each signal counts once
    first_process = distributed.rank() == 0
    stop = max((number for number in handled if number in signals.STOP), default=0)
    save, stop = distributed.all_reduce_max(bool(handled) or (first_process and snapshots.due), stop)
    if save and first_process:
        state.save(snapshots, done)
    if stop:
        # Wait for process 0: the first process that ends makes torchrun end the others.
        distributed.all_reduce_max(0)
        raise Interrupted(f"stopped after {done:,} of {iterations:,} iterations, {RERUN}", stop)
