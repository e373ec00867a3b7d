"""The gradients of a batch, in slices: one after another, or on a CPU also at once, each in a thread."""

import copy
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn

from pairflow import rng
from pairflow.errors import InputError
from pairflow.networks.layers import set_batch_slice
from pairflow.runtime import distributed
from pairflow.training.objectives import BatchLoss

TRIALS, EVERY = 3, 100  # so often each way of working is timed, and in how many batches once


class Slices:
    """Computes the gradients of a batch as a sum over slices of at most `micro_batch` rows, one by one."""

    def __init__(self, network: nn.Module, batch_size: int, micro_batch: int | None, seed: int):
        self.network = distributed.wrap(network)
        self.rows = distributed.batch_slices(batch_size, micro_batch)
        self.batch_size, self.seed = batch_size, seed
        self.device = next(network.parameters()).device

    def backward(self, loss: BatchLoss, iteration: int) -> Tensor:
        """Add the gradients of the mean loss to the network's own; return that loss, over all processes."""
        # All slices add to the gradients; only the last one averages them with other processes.
        with distributed.no_sync(self.network):
            losses = [self._one(loss, iteration, rows) for rows in self.rows[:-1]]
        return distributed.all_reduce_sum(sum(losses, self._one(loss, iteration, self.rows[-1])))

    def _one(self, loss: BatchLoss, iteration: int, rows: slice) -> Tensor:
        # Dropout draws its masks for the whole batch, so all slices start from one seed. (torch.manual_seed
        # would seed all devices, which takes more than a millisecond without a GPU.)
        on_gpu = self.device.type == "cuda"
        generator = torch.cuda.default_generators[self.device.index] if on_gpu else torch.default_generator
        generator.manual_seed(rng.stream_seed(self.seed, "dropout", iteration))
        set_batch_slice(distributed.unwrap(self.network), rows, self.batch_size)
        size = rows.stop - rows.start
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=on_gpu):
                value = loss(self.network, rows)
            share = size / self.batch_size
            # Gradients are averaged over the processes, but shares must be summed: multiply by their number.
            (value * (share * distributed.world_size())).backward()
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"{size:,} rows do not fit on the GPU at once; set --micro-batch to a smaller number of rows"
            ) from error
        return value.detach() * share


class ThreadedSlices:
    """Computes the gradients of equal slices of a batch in threads, each on one CPU core.

    The operations of a small network are too short to be divided among cores; whole passes through it are
    not. Each slice has a replica of the network, with the same weights and gradients of its own. These are
    added in the order of the slices, so that the result depends neither on which thread ends first, nor on
    whether the slices are computed at once or in turn. They are in turn while that is faster, because other
    programs need the cores.
    """

    def __init__(
        self, network: nn.Module, batch_size: int, threads: int, seed: int, pool: ThreadPoolExecutor
    ):
        self.batch_size, self.seed, self.pool = batch_size, seed, pool
        parts = min(threads, batch_size)
        edges = [batch_size * part // parts for part in range(parts + 1)]
        self.rows = [slice(*ends) for ends in pairwise(edges)]
        self.networks = [network, *(replica(network) for _ in self.rows[1:])]
        self.ways = Faster()

    def backward(self, loss: BatchLoss, iteration: int) -> Tensor:
        """Add the gradients of the mean loss to the network's own; return the mean loss."""
        seed = rng.stream_seed(self.seed, "dropout", iteration)

        def one(network: nn.Module, rows: slice) -> Tensor:
            # Every slice draws the masks of the whole batch, from a generator of its own.
            set_batch_slice(network, rows, self.batch_size, torch.Generator().manual_seed(seed))
            value = loss(network, rows) * ((rows.stop - rows.start) / self.batch_size)
            value.backward()
            return value.detach()

        parts = self.networks, self.rows
        with self.ways.timed() as at_once:
            if at_once:
                losses = list(self.pool.map(one, *parts))
            else:
                losses = self.pool.submit(lambda: list(map(one, *parts))).result()
        self._add_gradients()
        return sum(losses[1:], losses[0])

    def _add_gradients(self) -> None:
        for replicated in self.networks[1:]:
            for weight, same in zip(self.networks[0].parameters(), replicated.parameters(), strict=True):
                if weight.grad is not None and same.grad is not None:
                    weight.grad += same.grad
                same.grad = None


class Faster:
    """Chooses the faster of two ways, True and False, to do repeated work; times both now and then."""

    def __init__(self) -> None:
        self.uses = 0
        self.seconds: dict[bool, list[float]] = {}

    @contextmanager
    def timed(self) -> Iterator[bool]:
        """Yield which way to take; the `with` block then does the work in this way."""
        turn = self.uses % EVERY
        if turn == 0:
            self.seconds = {True: [], False: []}
        trial = turn < 2 * TRIALS
        way = turn % 2 == 0 if trial else sum(self.seconds[True]) < sum(self.seconds[False])
        started = time.perf_counter()
        yield way
        self.uses += 1
        if trial:
            self.seconds[way].append(time.perf_counter() - started)


def replica(network: nn.Module) -> nn.Module:
    """Return a copy of a network that shares its weights and buffers, but not its gradients."""
    shared: dict[int, Tensor] = {id(weight): nn.Parameter(weight.detach()) for weight in network.parameters()}
    return copy.deepcopy(network, shared | {id(buffer): buffer for buffer in network.buffers()}).train()


@contextmanager
def slices(
    network: nn.Module, batch_size: int, micro_batch: int | None, seed: int, threaded: bool = True
) -> Iterator[Slices | ThreadedSlices]:
    """Yield the object that computes the gradients of batches, in threads or slice by slice.

    Threads are used if `threaded`, on a CPU of which PyTorch may use several threads, without `micro_batch`
    and other processes.
    """
    threads, device = torch.get_num_threads(), next(network.parameters()).device
    if device.type == "cuda" or threads == 1 or micro_batch or distributed.world_size() > 1 or not threaded:
        yield Slices(network, batch_size, micro_batch, seed)
        return
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        torch.set_num_threads(1)  # beside another program, an optimiser on several threads is slower
        try:
            yield ThreadedSlices(network, batch_size, threads, seed, pool)
        finally:
            torch.set_num_threads(threads)
