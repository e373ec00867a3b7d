"""Measures one rate in a new process, whose memory is then only that of the work.

A batch that would take too long is measured in part and extrapolated linearly; so is a pairing of many rows.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from pairflow.artifacts import Metadata, read_table, token_array
from pairflow.artifacts.provenance import peak_memory_mb
from pairflow.config import BASES, FLOWS, TrainSettings, check
from pairflow.estimate.rates import Rate
from pairflow.pairing import probe
from pairflow.plan.work import Work
from pairflow.runtime.memory import keep_freed

SECONDS = 1.0  # of a measurement
MOST_TOKENS = 1 << 25  # of the rows of a pairing that is measured; time and memory are linear in the rows
SMALL, REPEATS = 10**7, 5  # smaller networks (in parameters) repeat everything so often, to be timed well


def measure(
    work: Work, loss: str, shape: tuple[int, ...] | None, tokens: Path | None, origin: str
) -> Rate | None:
    """Measure, in a new process, how long a unit of `work` takes on this machine; None if that fails.

    `loss` is the training's loss, and `shape` the shape (C, H, W) of images. `tokens` is a file of real rows,
    if there is one; `origin` says in words where the rate comes from, and is stored in the result.
    """
    request = {"work": asdict(work), "loss": loss, "shape": shape, "tokens": tokens and str(tokens)}
    command = [sys.executable, "-m", "pairflow.estimate.measure", json.dumps(request)]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
    return None if run.returncode else Rate(**json.loads(run.stdout.splitlines()[-1]), origin=origin)


def main(request: dict) -> dict:
    """Time a unit of work in the new process of `measure`, whose arguments are in `request`. Returns the
    seconds, the memory in MiB and, if there is a network, the number of its parameters."""
    keep_freed()  # as the steps do
    work = Work(**request["work"])
    unused, memory = peak_memory_mb(work.device), dict[int, float]()
    step, count, facts = (_pairing if work.kind in ("pair", "lead") else _network)(work, request)
    times = REPEATS if facts.get("parameters", SMALL) < SMALL else 1

    def run(rows: int) -> None:
        for _ in range(times):
            step(rows)
        if work.device == "cuda":  # kernels run on after their call returns
            import torch

            torch.cuda.synchronize()
        memory[rows] = peak_memory_mb(work.device)

    # Other work on the machine hardly lengthens CPU time; a GPU has only wall time.
    clock = time.process_time if work.device == "cpu" else time.perf_counter
    timed = probe.extrapolated(run, count, clock, SECONDS)
    if work.kind == "pair":  # its rows are paired in blocks, so only the index grows
        scale = work.rows / min(work.rows, MOST_TOKENS // work.length)
        memory_mb = unused + scale * (memory[timed.rows] - unused)
        return {"seconds": scale * timed.seconds, "memory_mb": memory_mb}
    growth = max(0.0, memory[timed.rows] - memory[1]) / max(1, timed.rows - 1)
    units = times * (count if work.kind in ("draw", "lead") else 1)
    memory_mb = memory[timed.rows] + growth * (count - timed.rows)
    return {"seconds": timed.seconds / units, "memory_mb": memory_mb, **facts}


def _pairing(work: Work, request: dict) -> tuple[probe.Step, int, dict]:
    """Prepare the pairing of rows, or the leading of sources to rows: rows of a file if `request` (the
    arguments of `measure`) has one, else made-up rows.

    Returns a function that does this for a number of rows (sources), the number of them to measure, and an
    empty dict.
    """
    leads, most = work.kind == "lead", work.rows
    if not leads and FLOWS[work.flow].tokens:
        most = min(most, MOST_TOKENS // work.length)
    if request["tokens"] and FLOWS[work.flow].tokens:
        rows = token_array(read_table(Path(request["tokens"]), "tokens")[0]["tokens"][:most])
    else:
        rows = probe.make_rows(most, work.length, work.vocabulary_size)
    if leads:
        return probe.prepare_leading(rows, work.vocabulary_size, work.device), 1 << 20, {}
    pair = probe.prepare_pairing(rows, work.vocabulary_size, work.steps, work.noise, work.device)
    return pair, work.rows, {}


def _network(work: Work, request: dict) -> tuple[probe.Step, int, dict]:
    """Prepare one iteration of training a new model on made-up rows, or drawing from the model in one step.

    `request` has the arguments of `measure`. Returns a function that does this for a number of rows, the
    number of rows in a full batch, and a dict with the model's number of parameters.
    """
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
