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
    """The trained network, its moving average, and the log (see `TrainingLog.frame`)."""

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

    All random numbers are functions of (seed, iteration). A batch is split into slices if several processes
    run this together, or if it has more rows than `micro_batch`; this changes only the order in which floats
    are added. Only process 0 validates, saves and shows progress.

    Args:
        network: the network to train, in place.
        objective: the loss.
        settings: batch size, iterations, learning rate and so on.
        seed: the seed of the dropout; the objective already has its seed.
        average: a moving average to continue; by default one starts from the network's weights.
        validate: a function of the averaged network that returns its validation NLL, in nats per token.
        snapshots: saved states, from which an interrupted run resumes, bit for bit.
        micro_batch: rows per forward pass; None or 0 for all.
        progress: whether to show a progress bar.

    Raises:
        InputError: if the loss is not finite.
        Interrupted: with `snapshots`, on a signal of `signals.STOP`.
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
        # Signals are handled only between iterations, so that no state is saved in the middle of an update.
        collected: AbstractContextManager[list[int]] = nullcontext([])
        if snapshots:
            collected = signals.collect(distributed.world_size() == 1)
        with collected as received:
            for iteration in iterations:
                # The rate is read before the schedule moves on, so that the log has that of this iteration.
                learning_rate = float(state.schedule.get_last_lr()[0])
                network.train()
                state.optimizer.zero_grad(set_to_none=True)
                # All slices add to the gradients; only the last one averages them with other processes.
                with distributed.no_sync(wrapped):
                    losses = [accumulate(iteration, rows) for rows in slices[:-1]]
                loss = distributed.all_reduce_sum(sum(losses, accumulate(iteration, slices[-1])))
                # Clipping limits the effect of a rare, very noisy batch.
                nn.utils.clip_grad_norm_(network.parameters(), settings.gradient_clip)
                state.optimizer.step()
                state.schedule.step()
                # Validation measures the averaged weights, because sampling uses them.
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
    # Dropout draws its masks for the whole batch, so all slices start from one seed. (torch.manual_seed would
    # seed all devices, which takes more than a millisecond without a GPU.)
    on_gpu = device.type == "cuda"
    generator = torch.cuda.default_generators[device.index] if on_gpu else torch.default_generator
    generator.manual_seed(rng.stream_seed(seed, "dropout", iteration))
    set_batch_slice(distributed.unwrap(network), rows, batch_size)
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            loss = objective(network, iteration, rows)
        share = size / batch_size
        # Gradients are averaged over the processes, but shares must be summed: multiply by their number.
        (loss * (share * distributed.world_size())).backward()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"{size:,} rows do not fit on the GPU at once; set --micro-batch to a smaller number of rows"
        ) from error
    return loss.detach() * share


def _resume(state: TrainingState, snapshots: Snapshots) -> int:
    """Restore the newest snapshot, and return its number of finished iterations.

    Raises InputError if the processes find different snapshots.
    """
    done = state.restore(snapshots)
    # The maximum of -done is minus the least `done`, so one call tells whether all are equal.
    if distributed.all_reduce_max(done, -done) != [done, -done]:
        raise InputError(f"{snapshots.folder}: the processes do not share this folder of saved states")
    return done


def _save_or_stop(
    received: list[int], state: TrainingState, snapshots: Snapshots, done: int, iterations: int
) -> None:
    """Save if it is time or if any process received a signal; raise Interrupted if a signal asks to stop."""
    handled = received[:]
    del received[: len(handled)]  # each signal counts once
    first_process = distributed.rank() == 0
    stop = max((number for number in handled if number in signals.STOP), default=0)
    # All processes must agree: if one stopped by itself, the others would wait for its gradients.
    save, stop = distributed.all_reduce_max(bool(handled) or (first_process and snapshots.due), stop)
    if save and first_process:
        state.save(snapshots, done)
    if stop:
        # Wait for process 0: when one process ends, torchrun ends all.
        distributed.all_reduce_max(0)
        raise Interrupted(f"stopped after {done:,} of {iterations:,} iterations, {RERUN}", stop)
