"""What several CPU threads gain or lose in training, for networks like those that `pairflow new` suggests.

    python benchmarks/threads.py --out benchmarks/records/threads.json      (minutes)

What is measured: rows per second of forward, backward and AdamW, on an idle machine and beside a process that
uses one core. Numbers of threads take turns in one process; ratios are to one thread in the same turn.
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
    "mlp": Case(MLP, 32, 40, BATCH),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    numbers = [threads for threads in (1, 2, 4, 8) if threads <= available_cpus()]
    configuration, cases = {"turns": options.turns, "load_before": os.getloadavg()[0]}, {}
    for name, case in CASES.items():
        cases[f"{name}, idle"] = side_by_side(case, numbers, options.turns)
        with one_busy_core():
            cases[f"{name}, beside another"] = side_by_side(case, numbers, options.turns)
    deliver(cases, configuration, options.out)


@contextmanager
def one_busy_core():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()


def side_by_side(case: Case, numbers: list[int], turns: int) -> dict:
    """Name of a number of threads -> rows per second, and the ratio to one thread."""
    device = torch.device("cpu")
    step = trainer(case, "plain", device)
    rates = {threads: [] for threads in numbers}
    for _ in range(turns):
        for threads in numbers:
            torch.set_num_threads(threads)
            rates[threads].append(rate(step, case.rows, device))
    return {
        f"{threads} thread{'s' * (threads > 1)}": {
            "rows_per_second": spread(rates[threads]),
            "ratio": spread(np.divide(rates[threads], rates[1])),
        }
        for threads in numbers
    }


if __name__ == "__main__":
    main()
