"""The optimisation loop of every method: AdamW, warm-up, clipping, moving average, validation, log."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import pandas as pd
from torch import nn
from torch.optim.swa_utils import AveragedModel

from pairflow.config import Optimisation
from pairflow.errors import InputError, Interrupted
from pairflow.runtime import distributed, signals
from pairflow.runtime.progress import bar
from pairflow.runtime.resume import RERUN
from pairflow.runtime.snapshots import Snapshots
from pairflow.training.objectives import Objective
from pairflow.training.slices import slices
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
    in_slices: bool = True,
    progress: bool = True,
) -> Trained:
    """Minimise the objective, the mean loss over the rows of a batch.

    All random numbers are functions of (seed, iteration). A batch is split into slices if several processes
    run this together, if PyTorch may use several threads of a CPU and `in_slices` is set, or if the batch has
    more rows than `micro_batch`; this changes only the order in which floats are added. Only process 0
    validates, saves and shows progress.

    Args:
        network: the network to train, in place.
        objective: the loss.
        settings: batch size, iterations, learning rate and so on.
        seed: the seed of the dropout; the objective already has its seed.
        average: a moving average to continue; by default one starts from the network's weights.
        validate: a function of the averaged network that returns its validation NLL, in nats per token.
        snapshots: saved states, from which an interrupted run resumes, bit for bit.
        micro_batch: rows per forward pass; None or 0 for all.
        in_slices: whether several threads of a CPU take a slice of each batch; else PyTorch divides its
            operations among them.
        progress: whether to show a progress bar.

    Raises:
        InputError: if the loss is not finite.
        Interrupted: with `snapshots`, on a signal of `signals.STOP`, with the unfinished result.
    """
    with distributed.process_group():
        first_process = distributed.rank() == 0
        state = TrainingState(network, objective, settings, average)
        done = _resume(state, snapshots) if snapshots else 0
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
        # A training that resumes has just restored its number of threads, which decides the slices.
        computed = slices(network, settings.batch_size, micro_batch, seed, in_slices)
        with computed as gradients, collected as received:
            for iteration in iterations:
                # The rate is read before the schedule moves on, so that the log has that of this iteration.
                learning_rate = float(state.schedule.get_last_lr()[0])
                network.train()
                state.optimizer.zero_grad(set_to_none=True)
                loss = gradients.backward(objective.batch(network, iteration), iteration)
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
    """Save a snapshot if one is due, or on a signal to any process; raise Interrupted if it asks to stop."""
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
        so_far = Trained(state.network, state.ema.module, state.log.frame())
        raise Interrupted(f"stopped after {done:,} of {iterations:,} iterations, {RERUN}", stop, so_far)
