"""Measures one rate in a process of its own, so that its memory is its own: a `Work` as JSON in, a rate out.

A batch that would take too long is measured in part, at two sizes, and extrapolated in a straight line.
"""

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from pairflow.artifacts import token_dtype
from pairflow.estimate.rates import Rate, Work

SECONDS = 1.0  # of a measurement
_STEPPED = 64  # rows of a continuous flow in a step


def measure(
    work: Work, loss: str, shape: tuple[int, ...] | None, tokens: Path | None, origin: str
) -> Rate | None:
    """The rate, from a process of its own; None if that fails. `tokens` is the file of rows, if any."""
    request = {"work": asdict(work), "loss": loss, "shape": shape, "tokens": tokens and str(tokens)}
    command = [sys.executable, "-m", "pairflow.estimate.measure", json.dumps(request)]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
    if run.returncode:
        return None
    return Rate(**json.loads(run.stdout.splitlines()[-1]), origin=origin)


def main(request: dict) -> dict:
    work = Work(**request["work"])
    if work.kind == "pair":
        return _pair(work, request["tokens"])
    if not work.tokens:
        return _velocity(work, request["shape"])
    if work.kind == "draw":
        return _draw(work, request["shape"])
    return _iteration(work, request["loss"], request["shape"])


def _pair(work: Work, tokens: str | None) -> dict:
    """CPU seconds of a whole pairing, from a few of its rows, real ones if there are; wall time on a GPU."""
    from pairflow.artifacts import read_table, token_array
    from pairflow.pairing.blocks import extrapolated
    from pairflow.pairing.pair import pair

    rows = token_array(read_table(Path(tokens), "tokens")[0]["tokens"]) if tokens else _clusters(work)
    rule = {"vocabulary_size": work.vocabulary_size, "steps": work.steps, "subsets": work.subsets}
    backend = "gpu" if work.device == "cuda" else "cpu"

    def run(count: int) -> None:
        pair(rows, **rule, threads=1, backend=backend, rows=(0, count), progress=False)

    seconds = extrapolated(run, len(rows), _clock(work.device), SECONDS).seconds
    return {"seconds": seconds, "memory_mb": _memory("cpu")}


def _clusters(work: Work) -> np.ndarray:
    """Rows (M, N) in clusters, like real ones: copies of centres with three tenths of the tokens redrawn."""
    generator, size = np.random.default_rng(0), work.vocabulary_size
    dtype = token_dtype(size)
    centres = generator.integers(size, size=(max(1, work.rows // 50), work.length), dtype=dtype)
    rows = centres[generator.integers(len(centres), size=work.rows)]
    for part in np.array_split(rows, -(-len(rows) // 100_000)):  # views: of millions of rows, a few at a time
        redrawn = generator.random(part.shape) < 0.3
        np.copyto(part, generator.integers(size, size=part.shape, dtype=dtype), where=redrawn)
    return rows


def _network(work: Work, shape):
    import torch

    from pairflow import networks
    from pairflow.flow.corruption import CORRUPTIONS

    torch.set_num_threads(1)
    corruption = CORRUPTIONS[work.corruption](work.vocabulary_size)
    symbols, mask = corruption.symbols, corruption.mask
    settings = json.loads(work.network)
    network = networks.build(settings, length=work.length, vocabulary_size=symbols, mask=mask, shape=shape)
    return network.to(work.device), corruption, torch.device(work.device)


def _iteration(work: Work, loss: str, shape) -> dict:
    from pairflow.config import Dcd
    from pairflow.training import dcd, loop
    from pairflow.training.objectives import FlowObjective, Objective

    network, corruption, device = _network(work, shape)
    rows = np.random.default_rng(0).integers(work.vocabulary_size, size=(max(1024, work.batch), work.length))
    transformation = dcd.transformation(corruption.symbols) if work.kind == "dcd" else None

    def run(batch: int, iterations: int) -> None:
        settings = Dcd(batch_size=batch, iterations=iterations, learning_rate=1e-4, teacher_every=iterations)
        objective: Objective = FlowObjective(rows, None, corruption, batch, loss, 0, device)
        if transformation:
            objective = dcd.Consistency(settings, rows, corruption, transformation, 0, device)
        loop.optimise(network, objective, settings, seed=0, progress=False)

    seconds, memory = _extrapolate(lambda batch: lambda times: run(batch, times), work.batch, work.device)
    parameters = sum(tensor.numel() for tensor in network.parameters())
    return {"seconds": seconds, "memory_mb": memory, "parameters": parameters}


def _velocity(work: Work, shape) -> dict:
    """Seconds of an iteration of a continuous flow, or of a row and a step."""
    import torch

    from pairflow import networks
    from pairflow.config import Rf
    from pairflow.training import loop
    from pairflow.training.velocity import VelocityObjective

    torch.set_num_threads(1)
    shape, device = tuple(shape or [work.length]), torch.device(work.device)
    network = networks.build_velocity(json.loads(work.network), shape).to(device)
    points = np.random.default_rng(0).standard_normal((max(1024, work.batch), *shape), np.float32)

    def train(batch: int, iterations: int) -> None:
        settings = Rf(batch_size=batch, iterations=iterations, learning_rate=1e-4)
        objective = VelocityObjective(points, None, batch, 0, device)
        loop.optimise(network, objective, settings, seed=0, progress=False)

    def step(rows: int) -> Callable[[int], object]:
        x, t = torch.from_numpy(points[:rows]).to(device), torch.full((rows,), 0.5, device=device)
        return torch.no_grad()(lambda times: [network(x, t) for _ in range(times)])

    parameters = {"parameters": sum(tensor.numel() for tensor in network.parameters())}
    if work.kind == "draw":
        seconds, memory = _extrapolate(step, _STEPPED, work.device)
        return {"seconds": seconds / _STEPPED, "memory_mb": memory} | parameters
    seconds, memory = _extrapolate(lambda batch: lambda times: train(batch, times), work.batch, work.device)
    return {"seconds": seconds, "memory_mb": memory} | parameters


def _draw(work: Work, shape) -> dict:
    """Seconds of a row and a step, and the network's part of them: absorbing noise calls it less often."""
    import torch

    network, corruption, device = _network(work, shape)
    network.eval()
    denoiser = corruption.denoiser(network)
    denoise = getattr(denoiser, "denoise", denoiser)
    at_once = corruption.rows_at_once(work.length)
    options = {"sampler": "ancestral", "prediction": corruption.losses["nelbo"].learns, "greedy_tail": False}

    def step(rows: int) -> Callable[[int], object]:
        x0 = corruption.source((rows, work.length), None, device)
        return lambda times: [corruption.sample(network, x0, steps=1, **options) for _ in range(times)]

    def call(rows: int) -> Callable[[int], object]:
        x, t = (
            torch.randint(work.vocabulary_size, (rows, work.length), device=device),
            torch.full((rows,), 0.5),
        )
        return torch.no_grad()(lambda times: [denoise(x, t.to(device)) for _ in range(times)])

    seconds, memory = _extrapolate(step, at_once, work.device)
    network_seconds, _ = _extrapolate(call, at_once, work.device)
    call_seconds = min(network_seconds, seconds) / at_once
    return {"seconds": seconds / at_once, "call": call_seconds, "memory_mb": memory}


def _extrapolate(
    prepare: Callable[[int], Callable[[int], object]], batch: int, device: str
) -> tuple[float, float]:
    """(seconds, MiB) of one time with `batch` rows, extrapolated from two smaller batches if it is slow.

    The two must differ by more than the noise of a time: a large network has much to do whatever the batch.
    """
    prepare(1)(1)  # imports what the first time needs
    few, less, before = 0, math.inf, 0.0
    rows = 1
    while True:
        seconds, memory = _once(prepare(rows), device), _memory(device)
        if rows == batch:
            return seconds, memory
        if 4 * seconds > SECONDS and seconds > 1.5 * less:
            break
        few, less, before = rows, seconds, memory
        more_rows = 2 * rows if seconds > 4 * SECONDS else 4 * rows
        rows = batch if seconds * batch / rows < SECONDS else min(more_rows, batch)
    many, more, after = rows, seconds, memory
    further = (batch - many) / (many - few)
    return more + max(0.0, more - less) * further, after + max(0.0, after - before) * further


def _once(work: Callable[[int], object], device: str) -> float:
    """Seconds of one time: the first if that fills a measurement, else the mean over those that do."""
    clock = _clock(device)

    def seconds(times: int) -> float:
        started = clock()
        work(times)
        return max(clock() - started, 1e-6)

    first = seconds(1)
    times = min(1000, int(SECONDS / first))
    return seconds(times) / times if times > 1 else first


def _clock(device: str) -> Callable[[], float]:
    """CPU time, which other work on the machine hardly lengthens; wall time of a GPU."""
    if device == "cpu":
        return time.process_time
    import torch

    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return clock


def _memory(device: str) -> float:
    """Peak memory in MiB, of this process or of the GPU's allocator."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    import torch

    return torch.cuda.max_memory_allocated() / 2**20


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
