"""Processes that train one model together: each has a slice of every batch, gradients are averaged.

Their random numbers are those of one process alone: every one draws them for the whole batch and takes its
rows. What they learn is the same up to the order in which floats are added.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from pairflow.errors import InputError
from pairflow.runtime import processes

TIMEOUT = timedelta(hours=1)  # for one to wait for the others: the first validates and saves alone


@contextmanager
def process_group() -> Iterator[None]:
    """Within it the processes can reach one another. One that fails in it leaves the others to torchrun.

    They meet once in their lives: several trainings in one process need it around all of them.
    """
    if processes.world_size() == 1 or dist.is_initialized():
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=TIMEOUT)
    yield
    dist.destroy_process_group()


def batch_slices(batch_size: int, micro_batch: int | None) -> list[slice]:
    """This process's rows of every batch, `micro_batch` at most at a time, as equal as can be."""
    count, rank = processes.world_size(), processes.rank()
    if batch_size < count:
        raise InputError(f"batch_size: {batch_size} rows are too few for {count} processes")
    first, last = batch_size * rank // count, batch_size * (rank + 1) // count
    rows = last - first
    passes = -(-rows // (micro_batch or rows))
    return [slice(first + rows * i // passes, first + rows * (i + 1) // passes) for i in range(passes)]


def wrap(network: nn.Module) -> nn.Module:
    """The network as it is called in training: going back through it averages gradients over processes."""
    if processes.world_size() == 1:
        return network
    return DistributedDataParallel(network, gradient_as_bucket_view=True)


def unwrap(network: nn.Module) -> nn.Module:
    """The network itself that `wrap` was given."""
    return network.module if isinstance(network, DistributedDataParallel) else network


def no_sync(network: nn.Module) -> AbstractContextManager:
    """A pass that adds to this process's gradients alone, for a later one to average."""
    return network.no_sync() if isinstance(network, DistributedDataParallel) else nullcontext()


def all_reduce_sum(number: Tensor) -> Tensor:
    """The sum over all processes."""
    if processes.world_size() > 1:
        dist.all_reduce(number)
    return number


def all_reduce_max(*numbers: int) -> list[int]:
    """Each number's maximum over all processes, which wait for one another."""
    if processes.world_size() == 1:
        return list(numbers)
    found = torch.tensor(numbers)  # on the CPU, so that no GPU is waited for
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.tolist()
