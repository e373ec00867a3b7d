"""What several CPU threads gain or lose in training, for networks like those that `pairflow new` suggests.

    python benchmarks/threads.py --out benchmarks/records/threads.json      (minutes)

What is measured: rows per second of forward, backward and AdamW, on an idle machine and beside a process that
uses one core. Each contender is a process; they take turns, and ratios are to one thread in the same turn. A
thread that waits for others spins for a moment, as in the steps, sleeps at once, or spins for long, which is
the default of OpenMP.
"""

import argparse
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from compile import MLP, TRANSFORMER, Case, deliver, rate, trainer
from pairing import spread

from pairflow.config.suggest import BATCH, TRANSFORMER_BATCH
from pairflow.runtime.threads import SPINS, available_cpus

CASES = {
    "transformer": Case(TRANSFORMER, 72, 72, TRANSFORMER_BATCH),
    "transformer, groups": Case(TRANSFORMER, 24, 1926, TRANSFORMER_BATCH),
    "mlp": Case(MLP, 32, 40, BATCH),
}
WAITING = {
    "": {"GOMP_SPINCOUNT": SPINS},
    ", asleep": {"OMP_WAIT_POLICY": "passive"},
    ", spinning": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument(
        "--one", nargs=2, metavar=("CASE", "THREADS"), help="a contender: rows/s at each line"
    )
    options = parser.parse_args()
    if options.one:
        measure_on_request(CASES[options.one[0]], int(options.one[1]))
        return
    numbers = [threads for threads in (1, 2, 4, 8) if threads <= available_cpus()]
    configuration, cases = {"turns": options.turns, "load_before": os.getloadavg()[0]}, {}
    for name in CASES:
        with contenders(name, numbers) as each:
            cases[f"{name}, idle"] = side_by_side(each, options.turns)
            with one_busy_core():
                cases[f"{name}, beside another"] = side_by_side(each, options.turns)
    deliver(cases, configuration, options.out)


def measure_on_request(case: Case, threads: int) -> None:
    """Print rows per second for every line of standard input."""
    device = torch.device("cpu")
    torch.set_num_threads(threads)
    step = trainer(case, "plain", device)
    for _ in sys.stdin:
        print(rate(step, case.rows, device), flush=True)


@contextmanager
def contenders(case: str, numbers: list[int]):
    """Start a process for each number of threads and way of waiting: its name -> the process."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    started = {}
    for threads in numbers:
        for way, environment in WAITING.items():
            if threads > 1 or not way:
                command = [sys.executable, __file__, "--one", case, str(threads)]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
                name = f"{threads} thread{'s' * (threads > 1)}{way}"
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
