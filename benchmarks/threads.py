"""What several CPU threads gain or lose in training, for networks like those that `pairflow new` suggests.

    python benchmarks/threads.py --out benchmarks/records/threads.json      (minutes)

What is measured: rows per second of forward, backward and AdamW, on an idle machine and beside a process that
uses one core. Each contender is a process, which takes turns with the others; ratios are to one thread in the
same turn. A thread that waits for others sleeps, as in the steps, or spins for a while, OpenMP's default.
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
from pairflow.runtime.threads import available_cpus

CASES = {
    "transformer": Case(TRANSFORMER, 72, 72, TRANSFORMER_BATCH),
    "transformer, groups": Case(TRANSFORMER, 24, 1926, TRANSFORMER_BATCH),
    "mlp": Case(MLP, 32, 40, BATCH),
}
WAITING = {"": {"OMP_WAIT_POLICY": "passive"}, ", spinning": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "THREADS"), help="only print this one's rows/s")
    options = parser.parse_args()
    if options.one:
        case, threads = CASES[options.one[0]], int(options.one[1])
        torch.set_num_threads(threads)
        print(rate(trainer(case, "plain", torch.device("cpu")), case.rows, torch.device("cpu")))
        return
    numbers = [threads for threads in (1, 2, 4, 8) if threads <= available_cpus()]
    configuration, cases = {"turns": options.turns, "load_before": os.getloadavg()[0]}, {}
    for name in CASES:
        cases[f"{name}, idle"] = side_by_side(name, numbers, options.turns)
        with one_busy_core():
            cases[f"{name}, beside another"] = side_by_side(name, numbers, options.turns)
    deliver(cases, configuration, options.out)


@contextmanager
def one_busy_core():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()


def side_by_side(case: str, numbers: list[int], turns: int) -> dict:
    """Name of a contender -> rows per second, and the ratio to one thread."""
    contenders = {
        f"{threads} thread{'s' * (threads > 1)}{way}": (str(threads), environment)
        for threads in numbers
        for way, environment in WAITING.items()
        if threads > 1 or not way
    }
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    rates = {name: [] for name in contenders}
    for _ in range(turns):
        for name, (threads, environment) in contenders.items():
            command = [sys.executable, __file__, "--one", case, threads]
            run = subprocess.run(command, env=bare | environment, check=True, capture_output=True, text=True)
            rates[name].append(float(run.stdout))
    return {
        name: {
            "rows_per_second": spread(rates[name]),
            "ratio": spread(np.divide(rates[name], rates["1 thread"])),
        }
        for name in contenders
    }


if __name__ == "__main__":
    main()
