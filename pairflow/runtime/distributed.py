"""Lets several processes train one model: each handles a part of every batch, and gradients are averaged.

Every process draws the random numbers of the whole batch, but uses only those for its rows. So a single
process would get the same result, up to the order in which floats are added.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

from pairflow.errors import InputError

if TYPE_CHECKING:  # `pairflow --help` does not wait for torch
    from torch import Tensor, nn

TIMEOUT = timedelta(hours=1)  # processes wait this long while process 0 validates and saves


def world_size() -> int:
    """Return the number of processes that torchrun has started; 1 without torchrun."""
    return _from_torchrun("WORLD_SIZE", 1)


def rank() -> int:
    """Return the number of this process, from 0. Only process 0 writes files and prints."""
    return _from_torchrun("RANK", 0)


def local_world_size() -> int:
    """Return the number of processes on this machine."""
    return _from_torchrun("LOCAL_WORLD_SIZE", 1)


def local_rank() -> int:
    """Return the number of this process among the processes on this machine, from 0."""
    return _from_torchrun("LOCAL_RANK", 0)


def _from_torchrun(variable: str, default: int) -> int:
    return int(os.environ[variable]) if "TORCHELASTIC_RUN_ID" in os.environ else default


@contextmanager
def process_group() -> Iterator[None]:
    """Connect torchrun's processes during the block. If one fails in it, torchrun ends the others.

    Inside another such block it does nothing, so several trainings in a process can share an outer block.
    """
    import torch
    import torch.distributed as dist

    if world_size() == 1 or dist.is_initialized():
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=TIMEOUT)
    yield
    dist.destroy_process_group()


def batch_slices(batch_size: int, micro_batch: int | None) -> list[slice]:
    """Return the rows of every batch that this process handles, in equal slices of at most `micro_batch`
    rows.

    Sizes may differ by one row. Raises InputError if a batch has fewer rows than there are processes.
    """
    processes, number = world_size(), rank()
    if batch_size < processes:
        raise InputError(f"batch_size: {batch_size} rows are too few for {processes} processes")
    first, last = batch_size * number // processes, batch_size * (number + 1) // processes
    rows = last - first
    passes = -(-rows // (micro_batch or rows))
    return [slice(first + rows * i // passes, first + rows * (i + 1) // passes) for i in range(passes)]


def wrap(network: nn.Module) -> nn.Module:
    """Wrap the network for training: its backward pass then averages the gradients over the processes."""
    from torch.nn.parallel import DistributedDataParallel

    if world_size() == 1:
        return network
    return DistributedDataParallel(network, gradient_as_bucket_view=True)


def unwrap(network: nn.Module) -> nn.Module:
    """Return the network that was passed to `wrap`."""
    from torch.nn.parallel import DistributedDataParallel

    return network.module if isinstance(network, DistributedDataParallel) else network


def no_sync(network: nn.Module) -> AbstractContextManager:
    """Return a block without averaging of gradients; the next backward pass after it averages."""
    from torch.nn.parallel import DistributedDataParallel

    return network.no_sync() if isinstance(network, DistributedDataParallel) else nullcontext()


def all_reduce_sum(number: Tensor) -> Tensor:
    """Replace the tensor `number` by its sum over all processes, and return it."""
    if world_size() > 1:
        import torch.distributed as dist

        dist.all_reduce(number)
    return number


def all_reduce_max(*numbers: int) -> list[int]:
    """Return the maximum of each number over all processes, which wait for each other."""
    if world_size() == 1:
        return list(numbers)
    import torch
    import torch.distributed as dist

    maxima = torch.tensor(numbers)  # on the CPU, so that no GPU is waited for
    dist.all_reduce(maxima, dist.ReduceOp.MAX)
    return maxima.tolist()
