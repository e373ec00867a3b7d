"""What several processes gain: one training by one process and by two, on the same number of CPU threads.

    python benchmarks/several.py --out benchmarks/records/several.json      (minutes)
    python benchmarks/several.py --quick                                    (a minute, one turn)

What is measured: rows per second of the optimisation loop on random tokens, N = 32 and K = 40, from the end
of the first iterations to the end of the last, without the start of the processes. The contenders, one
process with one thread, one with two, and two with one each that torchrun starts, take turns; ratios are
taken within a turn. All train on the same batches and end with the same loss but for rounding, which is
checked.

This shows what dividing batches, averaging gradients and agreeing on signals cost on a CPU, not on GPUs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from pairing import commit, machine, spread

from pairflow import networks
from pairflow.config import Training
from pairflow.flow.corruption import Uniform
from pairflow.runtime import distributed as processes
from pairflow.training.loop import optimise
from pairflow.training.objectives import FlowObjective

LENGTH, SYMBOLS, ROWS = 32, 40, 4096
WARM = 3  # iterations before the clock starts
CASES = {  # network, rows per batch, iterations
    "transformer, width 128, 4 blocks": (
        {"name": "transformer", "width": 128, "blocks": 4, "heads": 4, "time_width": 64, "dropout": 0.1},
        64,
        23,
    ),
    "mlp, width 384, 4 blocks": (
        {"name": "mlp", "width": 384, "blocks": 4, "time_width": 128, "dropout": 0.1},
        256,
        103,
    ),
}
CONTENDERS = {
    "1 process, 1 thread": (1, 1),
    "1 process, 2 threads": (1, 2),
    "2 processes, 1 thread each": (2, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument("--train", nargs=2, metavar=("CASE", "THREADS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        return train(options.train[0], int(options.train[1]))
    turns = 1 if options.quick else options.turns
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"turns": turns, "load_before": os.getloadavg()[0]},
        "cases": {case: side_by_side(case, turns) for case in CASES},
        "load_after": os.getloadavg()[0],
    }
    show(record)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def side_by_side(case: str, turns: int) -> dict:
    """Rows per second of each contender, and the ratios of two processes to the others."""
    results = [{name: measured(case, *how) for name, how in CONTENDERS.items()} for _ in range(turns)]
    losses = [result["loss"] for turn in results for result in turn.values()]
    if max(losses) - min(losses) > 1e-3 * max(losses):
        raise SystemExit(f"{case}: the contenders did not learn the same: {losses}")
    rates = {name: [turn[name]["rows_per_second"] for turn in results] for name in CONTENDERS}
    *others, two = CONTENDERS
    ratios = {f"{two} / {name}": np.divide(rates[two], rates[name]) for name in others}
    return {
        "rows_per_second": {name: spread(values) for name, values in rates.items()},
        "ratios": {name: spread(values) for name, values in ratios.items()},
    }


def measured(case: str, count: int, threads: int) -> dict:
    """One training in processes of its own: rows per second and the last loss."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command = [*(torchrun if count > 1 else []), __file__, "--train", case, str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    run = subprocess.run([sys.executable, *command], env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def train(case: str, threads: int) -> None:
    """Train; the first process prints its measurement."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    settings, batch_size, iterations = CASES[case]
    tokens = np.random.default_rng(0).integers(0, SYMBOLS, (ROWS, LENGTH), np.uint8)
    network = networks.build(settings, length=LENGTH, vocabulary_size=SYMBOLS)
    flow = FlowObjective(tokens, None, Uniform(SYMBOLS), batch_size, "nelbo", 0, torch.device("cpu"))
    started = 0.0

    def objective(network, iteration, rows):
        nonlocal started
        if iteration == WARM:
            started = time.perf_counter()
        return flow(network, iteration, rows)

    how = Training(batch_size=batch_size, iterations=iterations, learning_rate=1e-3)
    trained = optimise(network, objective, how, seed=0, progress=False)
    rate = batch_size * (iterations - WARM) / (time.perf_counter() - started)
    if processes.rank() == 0:
        print(json.dumps({"rows_per_second": rate, "loss": trained.log["loss"].iloc[-1]}))


def show(record: dict) -> None:
    """The record as text."""
    print(json.dumps(record["machine"]))
    for case, result in record["cases"].items():
        print(f"\n{case}")
        for name, rate in result["rows_per_second"].items():
            print(f"  {name:28} {rate['median']:.4g} rows/s  ({rate['min']:.4g} to {rate['max']:.4g})")
        for name, ratio in result["ratios"].items():
            print(f"  {name:52} {ratio['median']:.2f}x  ({ratio['min']:.2f} to {ratio['max']:.2f})")


if __name__ == "__main__":
    main()
