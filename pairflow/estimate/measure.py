"""Measures one rate in a process of its own, so that its memory is its own: a `Work` as JSON in, a rate out.

A batch that would take too long is measured in part, at two sizes, and carried on in a straight line.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from pairflow.estimate.rates import Rate, Work

SECONDS = 1.0  # of a measurement


def measured(
    work: Work, loss: str, shape: tuple[int, int, int] | None, tokens: Path | None, origin: str
) -> Rate | None:
    """The rate, by a process of its own; None where that fails. `tokens` are the training rows, if made."""
    given = {
        "work": asdict(work),
        "loss": loss,
        "shape": shape,
        "tokens": None if tokens is None else str(tokens),
    }
    command = [sys.executable, "-m", "pairflow.estimate.measure", json.dumps(given)]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
    if run.returncode:
        return None
    return Rate(**json.loads(run.stdout.splitlines()[-1]), origin=origin)


def main(given: dict) -> dict:
    work = Work(**given["work"])
    shape = tuple(given["shape"]) if given["shape"] else None
    if work.kind == "pair":
        return _pair(work, given["tokens"])
    if work.kind == "draw":
        return _draw(work, shape)
    return _iteration(work, given["loss"], shape)


def _pair(work: Work, tokens: str | None) -> dict:
    """CPU seconds of a whole pairing, from a few of its rows, real ones if there are; wall time on a GPU."""
    from pairflow.artifacts import read_table, token_array
    from pairflow.pairing.pair import pair
    from pairflow.pairing.probe import extrapolated

    rows = token_array(read_table(Path(tokens), "tokens")[0]["tokens"]) if tokens else _clusters(work)
    rule = {
        "vocabulary_size": work.vocabulary_size,
        "steps": work.steps,
        "subsets": work.subsets,
        "threads": 1,
    }

    def run(count: int) -> None:
        pair(rows, **rule, backend="gpu" if work.device == "cuda" else "cpu", rows=(0, count), progress=False)

    return {
        "seconds": extrapolated(run, len(rows), _clock(work.device), SECONDS).seconds,
        "memory_mb": _memory("cpu"),
    }


def _clusters(work: Work) -> np.ndarray:
    """Rows (M, N) that resemble one another, as those of data do: three tenths of a centre redrawn."""
    generator = np.random.default_rng(0)
    shape = (work.rows, work.length)
    centres = generator.integers(work.vocabulary_size, size=(max(1, work.rows // 50), work.length))
    rows = centres[generator.integers(len(centres), size=work.rows)]
    redrawn = generator.random(shape) < 0.3
    return np.where(redrawn, generator.integers(work.vocabulary_size, size=shape), rows)


def _network(work: Work, shape):
    import torch

    from pairflow import networks
    from pairflow.flow.corruption import CORRUPTIONS

    torch.set_num_threads(1)
    corruption = CORRUPTIONS[work.corruption](work.vocabulary_size)
    network = networks.build(
        json.loads(work.network),
        length=work.length,
        vocabulary_size=corruption.symbols,
        shape=shape,
        mask=corruption.mask,
    )
    return network.to(work.device), corruption, torch.device(work.device)


def _iteration(work: Work, loss: str, shape) -> dict:
    from pairflow.config import Dcd, Training
    from pairflow.training import dcd, loop
    from pairflow.training.objectives import FlowObjective

    network, corruption, device = _network(work, shape)
    rows = np.random.default_rng(0).integers(work.vocabulary_size, size=(max(1024, work.batch), work.length))
    shared = {"learning_rate": 1e-4}
    transformation = dcd.transformation(corruption.symbols) if work.kind == "dcd" else None

    def run(batch: int, iterations: int) -> None:
        settings = Training(batch_size=batch, iterations=iterations, loss=loss, **shared)
        objective = FlowObjective(rows, None, corruption, batch, loss, 0, device)
        if work.kind == "dcd":
            settings = Dcd(batch_size=batch, iterations=iterations, teacher_every=iterations, **shared)
            objective = dcd.Consistency(settings, rows, corruption, transformation, 0, device)
        loop.optimise(network, objective, settings, seed=0, progress=False)

    seconds, memory = _in_a_line(lambda batch: lambda times: run(batch, times), work.batch, work.device)
    parameters = sum(each.numel() for each in network.parameters())
    return {"seconds": seconds, "memory_mb": memory, "parameters": parameters}


def _draw(work: Work, shape) -> dict:
    """Of a row and a step, and the network's part in it: absorbing noise asks the network less often."""
    import torch

    network, corruption, device = _network(work, shape)
    network.eval()
    at_once = corruption.rows_at_once(work.length)
    prediction = corruption.losses["nelbo"].learns

    def draws(rows: int) -> Callable[[int], None]:
        x0 = corruption.source((rows, work.length), None, device)
        options = {"sampler": "ancestral", "prediction": prediction, "greedy_tail": False}

        def step(times: int) -> None:
            for _ in range(times):
                corruption.sample(network, x0, steps=1, **options)

        return step

    def calls(rows: int) -> Callable[[int], None]:
        x = torch.randint(work.vocabulary_size, (rows, work.length), device=device)
        denoise = corruption.denoiser(network)

        @torch.no_grad()
        def ask(times: int) -> None:
            for _ in range(times):
                getattr(denoise, "denoise", denoise)(x, torch.full((rows,), 0.5, device=device))

        return ask

    seconds, memory = _in_a_line(draws, at_once, work.device)
    call, _ = _in_a_line(calls, at_once, work.device)
    return {"seconds": seconds / at_once, "call": min(call, seconds) / at_once, "memory_mb": memory}


def _in_a_line(
    prepare: Callable[[int], Callable[[int], None]], batch: int, device: str
) -> tuple[float, float]:
    """(seconds, MiB) of one time with `batch` rows: measured, or carried on from the two largest measured."""
    points: list[tuple[int, float, float]] = []
    rows = min(4, batch)
    while True:
        seconds = _once(prepare(rows), device)
        points.append((rows, seconds, _memory(device)))
        if rows == batch:
            return seconds, points[-1][2]
        if len(points) > 1 and 4 * seconds > SECONDS:
            break
        rows = batch if seconds * batch / rows < SECONDS else min(4 * rows, batch)
    (few, less, before), (many, more, after) = points[-2:]
    further = (batch - many) / (many - few)
    return more + max(0.0, more - less) * further, after + max(0.0, after - before) * further


def _once(work: Callable[[int], None], device: str) -> float:
    """Seconds of one time: of as many as fill the time of a measurement, once warm."""
    clock = _clock(device)
    work(1)
    started = clock()
    work(1)
    first = max(clock() - started, 1e-6)
    times = min(1000, int(SECONDS / first))
    if times < 2:
        return first
    started = clock()
    work(times)
    return (clock() - started) / times


def _clock(device: str) -> Callable[[], float]:
    """CPU time, which other work on the machine does not lengthen much; wall time where a GPU works."""
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
