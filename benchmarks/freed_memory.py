"""What keeping freed memory gains (`runtime.memory`): sampling and training with it and without it, in turns.

    python benchmarks/freed_memory.py --out benchmarks/records/freed-memory.json      (minutes)

Each turn of a contender is a new process with one thread on the CPU. The model is the published `zinc250k`;
the training is one of a network like it. Ratios are to the process without, in the same turn.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from compile import TRANSFORMER, Case, deliver, rate, trainer
from pairing import spread

import pairflow
from pairflow.artifacts.provenance import peak_memory_mb
from pairflow.runtime import memory

SAMPLES, NFE = 1024, 8
CPU = torch.device("cpu")
LIKE_PUBLISHED = Case(TRANSFORMER, 24, 1926, 32)
WORK = ("sampling", "training")
KEPT, GIVEN_BACK = "freed memory kept", "given back"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    parser.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(once(*options.once)))
        return
    configuration = {"turns": options.turns, "samples": SAMPLES, "nfe": NFE}
    configuration["load_before"] = os.getloadavg()[0]
    deliver({work: side_by_side(work, options.turns) for work in WORK}, configuration, options.out)


def side_by_side(work: str, turns: int) -> dict:
    """Contender -> rows per second, ratio to the one that gives memory back, peak memory in MB."""
    measured = {GIVEN_BACK: [], KEPT: []}
    for _ in range(turns):
        for contender, results in measured.items():
            command = [sys.executable, __file__, "--once", work, contender]
            results.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    rates = {contender: [rows for rows, _ in results] for contender, results in measured.items()}
    return {
        contender: {
            "rows_per_second": spread(rates[contender]),
            "ratio": spread(np.divide(rates[contender], rates[GIVEN_BACK])),
            "memory_mb": spread([memory for _, memory in results]),
        }
        for contender, results in measured.items()
    }


def once(work: str, contender: str) -> tuple[float, float]:
    """Rows per second and peak memory in MB of this process."""
    if contender == KEPT:
        memory.keep_freed()
    torch.set_num_threads(1)
    if work == "training":
        rows = rate(trainer(LIKE_PUBLISHED, "plain", CPU), LIKE_PUBLISHED.rows, CPU)
    else:
        pairflow.load("zinc250k", device="cpu").sample(8, nfe=1)
        started = time.perf_counter()
        pairflow.load("zinc250k", device="cpu").sample(SAMPLES, nfe=NFE)
        rows = SAMPLES / (time.perf_counter() - started)
    return rows, peak_memory_mb("cpu")


if __name__ == "__main__":
    main()
