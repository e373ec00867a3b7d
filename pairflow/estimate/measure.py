"""Measures one rate in a new process, whose memory is then only that of the work.

A batch that would take too long is measured in part and extrapolated linearly; so is a pairing of many rows.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from pairflow.artifacts import Metadata, read_table, token_array, token_dtype
from pairflow.artifacts.provenance import peak_memory_mb
from pairflow.config import BASES, FLOWS, TrainSettings, check
from pairflow.config.training import TAU
from pairflow.estimate.rates import Rate, Work
from pairflow.runtime.memory import keep_freed

SECONDS = 1.0  # of a measurement
MOST_TOKENS = 1 << 25  # of the rows of a pairing that is measured; time and memory are linear in the rows
SMALL, REPEATS = 10**7, 5  # smaller networks (in parameters) repeat everything so often, to be timed well

Step = Callable[[int], object]
"""A function that does the work on a number of rows."""


def measure(
    work: Work, loss: str, shape: tuple[int, ...] | None, tokens: Path | None, origin: str
) -> Rate | None:
    """Measure a rate in a new process; None if it fails. `tokens` is a file of real rows, if there is one."""
    request = {"work": asdict(work), "loss": loss, "shape": shape, "tokens": tokens and str(tokens)}
    command = [sys.executable, "-m", "pairflow.estimate.measure", json.dumps(request)]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
    if run.returncode:
        return None
    return Rate(**json.loads(run.stdout.splitlines()[-1]), origin=origin)


def main(request: dict) -> dict:
    """Measure the work that `measure` requests: seconds of a unit, memory, and a network's parameters."""
    from pairflow.pairing.blocks import extrapolated

    keep_freed()  # as the steps do
    work = Work(**request["work"])
    prepare = {"pair": _pairing, "lead": _leading}.get(work.kind, _network)
    unused = peak_memory_mb(work.device)
    step, count, facts = prepare(work, request)
    times = REPEATS if facts.get("parameters", SMALL) < SMALL else 1
    memory: dict[int, float] = {}

    def run(rows: int) -> None:
        for _ in range(times):
            step(rows)
        if work.device == "cuda":  # kernels run on after their call returns
            import torch

            torch.cuda.synchronize()
        memory[rows] = peak_memory_mb(work.device)

    # Other work on the machine hardly lengthens CPU time; a GPU has only wall time.
    clock = time.process_time if work.device == "cpu" else time.perf_counter
    probe = extrapolated(run, count, clock, SECONDS)
    if work.kind == "pair":  # its rows are paired in blocks, so only the index grows
        scale = work.rows / min(work.rows, MOST_TOKENS // work.length)
        memory_mb = unused + scale * (memory[probe.rows] - unused)
        return {"seconds": scale * probe.seconds, "memory_mb": memory_mb}
    growth = max(0.0, memory[probe.rows] - memory[1]) / max(1, probe.rows - 1)
    units = times * (count if work.kind in ("draw", "lead") else 1)
    memory_mb = memory[probe.rows] + growth * (count - probe.rows)
    return {"seconds": probe.seconds / units, "memory_mb": memory_mb, **facts}


def _rows(work: Work, request: dict) -> np.ndarray:
    """Return real rows (M, N) of tokens if there is a file, else made-up rows."""
    if not FLOWS[work.flow].tokens:
        return np.random.default_rng(0).standard_normal((work.rows, work.length), np.float32)
    most = MOST_TOKENS // work.length if work.kind == "pair" else work.rows
    if tokens := request["tokens"]:
        return token_array(read_table(Path(tokens), "tokens")[0]["tokens"][: min(most, work.rows)])
    return _clusters(replace(work, rows=min(most, work.rows)))


def _pairing(work: Work, request: dict) -> tuple[Step, int, dict]:
    from pairflow.pairing.pair import pair

    rows = _rows(work, request)
    rule = {"vocabulary_size": work.vocabulary_size, "steps": work.steps}
    backend = "gpu" if work.device == "cuda" else "cpu"

    def step(count: int) -> None:
        for first in range(
            0, count, len(rows)
        ):  # a GPU may take more than the measured rows: pair them again
            last = min(len(rows), count - first)
            pair(rows, **rule, threads=1, backend=backend, rows=(0, last), progress=False)

    return step, work.rows, {}


def _leading(work: Work, request: dict) -> tuple[Step, int, dict]:
    """Prepare leading sources (noise) to data rows by random potentials; good ones would take as long."""
    import torch

    from pairflow.pairing.spaces import space_of

    rows = _rows(work, request)
    space = space_of(rows, work.vocabulary_size, torch.device(work.device))
    potentials = np.random.default_rng(0).normal(0, 2, len(rows)).round().astype(np.int64)
    law = space.law(potentials.max() - potentials, TAU)

    def step(count: int) -> object:
        numbers = np.arange(count)
        return law.draw(space.sources(0, numbers), numbers, 0, threads=1)

    return step, 1 << 20, {}


def _clusters(work: Work) -> np.ndarray:
    """Make rows (M, N) in clusters, like real ones: copies of centres, three tenths of the tokens redrawn."""
    generator, size = np.random.default_rng(0), work.vocabulary_size
    dtype = token_dtype(size)
    centres = generator.integers(size, size=(max(1, work.rows // 50), work.length), dtype=dtype)
    rows = centres[generator.integers(len(centres), size=work.rows)]
    for part in np.array_split(rows, -(-len(rows) // 100_000)):  # views, so that millions of rows fit
        redrawn = generator.random(part.shape) < 0.3
        np.copyto(part, generator.integers(size, size=part.shape, dtype=dtype), where=redrawn)
    return rows


def _network(work: Work, request: dict) -> tuple[Step, int, dict]:
    """Prepare training a new model on made-up rows, or drawing from it in one step."""
    import torch

    from pairflow.generate.sample import trials
    from pairflow.training.catalogue import base_objective
    from pairflow.training.fit import TrainingRows
    from pairflow.training.loop import optimise
    from pairflow.training.model import Model

    torch.set_num_threads(1)
    flow, batch = FLOWS[work.flow], work.batch or 1
    *_, method = (name for name, base in BASES.items() if base.independent and flow.name in base.flows)
    training = {"batch_size": batch, "iterations": 1, "learning_rate": 1e-4, "loss": request["loss"]}
    values = {"method": method, "network": json.loads(work.network), "training": training}
    shape, size = request["shape"], work.vocabulary_size or None
    metadata = Metadata(kind="tokens", length=work.length, vocabulary_size=size, shape=shape)
    model = Model.create(check(TrainSettings, values, "training"), metadata, torch.device(work.device))
    facts = {"parameters": sum(tensor.numel() for tensor in model.network.parameters())}
    if work.kind == "draw":
        once = {"samples": 1, "trials": 1, "nfe": 1} | ({"greedy_tail": False} if flow.tokens else {})
        drawing = trials(model, check(flow.sampling, once, "sampling"))
        return lambda rows: drawing.draw((0, 0, rows)), model.batch_rows, facts
    generator, total = np.random.default_rng(0), (max(1024, batch), *(shape or [work.length]))
    x1: np.ndarray = generator.standard_normal(total, np.float32)
    if flow.tokens:
        x1 = generator.integers(work.vocabulary_size, size=(len(x1), work.length))
    data = TrainingRows(None, x1, metadata, validation=x1[:0], padding=None, inputs={})

    def train(rows: int) -> object:
        how = model.base_training.model_copy(update={"batch_size": rows})
        objective = base_objective(replace(model, training=how), data)
        return optimise(model.network, objective, how, seed=0, progress=False)

    return train, batch, facts


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
