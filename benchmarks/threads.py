"""What several CPU threads gain or lose in training, for networks like those that `pairflow new` suggests.

    python benchmarks/threads.py --out benchmarks/records/threads.json      (minutes)

What is measured: rows per second of forward, backward and AdamW, on an idle machine and beside a process that
uses one core. Each contender is a process; they take turns, and ratios are to one thread in the same turn.
"slices" is how pairflow trains: each thread takes a slice of the batch through the whole network. The others
divide each operation among threads. Of these, a thread that waits for others spins for a moment, sleeps at
once, or spins for long, which is the default of OpenMP.
"""

import argparse
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch
from compile import MLP, TRANSFORMER, UNET, Case, deliver, rate, trainer
from pairing import spread

from pairflow import networks
from pairflow.config.suggest import BATCH, TRANSFORMER_BATCH
from pairflow.runtime.threads import SPINS, available_cpus
from pairflow.training.slices import slices

DROPOUT = {**TRANSFORMER, "dropout": 0.1}
CASES = {
    "transformer": Case(DROPOUT, 72, 72, TRANSFORMER_BATCH),
    "transformer, groups": Case(DROPOUT, 24, 1926, TRANSFORMER_BATCH),
    "mlp": Case(MLP, 32, 40, BATCH),
    "unet": Case(UNET, 784, 2, 32, (1, 28, 28)),
}
SLICES = "slices"
WAITING = {
    SLICES: {"GOMP_SPINCOUNT": SPINS},
    "operations": {"GOMP_SPINCOUNT": SPINS},
    "operations, asleep": {"OMP_WAIT_POLICY": "passive"},
    "operations, spinning": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=CASES, help="one of the networks; all by default")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument(
        "--one", nargs=3, metavar=("CASE", "THREADS", "WAY"), help="a contender: rows/s at each line"
    )
    options = parser.parse_args()
    if options.one:
        measure_on_request(CASES[options.one[0]], int(options.one[1]), options.one[2])
        return
    numbers = [threads for threads in (1, 2, 4, 8) if threads <= available_cpus()]
    configuration, cases = {"turns": options.turns, "load_before": os.getloadavg()[0]}, {}
    for name in options.case or CASES:
        with contenders(name, numbers) as each:
            cases[f"{name}, idle"] = side_by_side(each, options.turns)
            with one_busy_core():
                cases[f"{name}, beside another"] = side_by_side(each, options.turns)
    deliver(cases, configuration, options.out)


def measure_on_request(case: Case, threads: int, way: str) -> None:
    """Print rows per second for every line of standard input."""
    device = torch.device("cpu")
    torch.set_num_threads(threads)
    for _ in sys.stdin:  # a new training each time, as slices are timed only every 100 iterations
        with sliced(case) if way == SLICES else nullcontext(trainer(case, "plain", device)) as step:
            print(rate(step, case.rows, device), flush=True)


@contextmanager
def sliced(case: Case):
    """One iteration on a fixed batch, as a training of pairflow divides it."""
    settings, length, symbols, rows, shape = case
    network = networks.build(settings, length=length, vocabulary_size=symbols, shape=shape).train()
    optimiser = torch.optim.AdamW(network.parameters(), 1e-4, fused=True)
    tokens, times = torch.randint(0, symbols, (rows, length)), torch.rand(rows)

    def loss(network, rows):
        scores = network(tokens[rows], times[rows])
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[rows].flatten())

    with slices(network, rows, None, seed=0) as gradients:

        def step() -> None:
            gradients.backward(loss, 0)
            optimiser.step()
            optimiser.zero_grad()

        yield step


@contextmanager
def contenders(case: str, numbers: list[int]):
    """Start a process for each number of threads and way of dividing the work: its name -> the process."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    started = {}
    for threads in numbers:
        for way, environment in WAITING.items():
            if threads > 1 or way == SLICES:
                command = [sys.executable, __file__, "--one", case, str(threads), way]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
                name = "1 thread" if threads == 1 else f"{threads} threads, {way}"
                started[name] = subprocess.Popen(command, env=bare | environment, **pipes)
    yield started
    for process in started.values():
        process.communicate()


@contextmanager
def one_busy_core():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()


def side_by_side(each: dict[str, subprocess.Popen], turns: int) -> dict:
    """Name of a contender -> rows per second, and the ratio to one thread."""
    rates = {name: [] for name in each}
    for _ in range(turns):
        for name, process in each.items():
            print(file=process.stdin, flush=True)
            rates[name].append(float(process.stdout.readline()))
    return {
        name: {
            "rows_per_second": spread(rates[name]),
            "ratio": spread(np.divide(rates[name], rates["1 thread"])),
        }
        for name in each
    }


if __name__ == "__main__":
    main()
