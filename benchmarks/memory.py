"""The memory of text in the paper's vocabulary: of an iteration, a sampling step and a pairing.

    python benchmarks/memory.py --out benchmarks/records/memory.json

Each task runs in a process of its own, whose peak memory (RSS) is recorded, beside what the process has after
its imports. `iteration` is two iterations of UDLM (the first makes AdamW's moments): forward, backward, AdamW
and the moving average. A sampling step is UDLM's and PairFlow's, with its greedy tail; `rows_at_once` is how
many rows the workflow draws together. Tokens are random, by Zipf's law.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pairing import commit, machine

from pairflow import networks
from pairflow.config import Optimisation
from pairflow.flow.corruption import Uniform
from pairflow.flow.plan import SamplingPlan
from pairflow.pairing.pair import compile_for, pair
from pairflow.training.loop import optimise
from pairflow.training.objectives import FlowObjective

TASKS = ("iteration", "ancestral", "euler", "ancestral_rows_at_once", "pairing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=30_522, help="K")
    parser.add_argument("--length", type=int, default=128, help="N")
    parser.add_argument("--batch", type=int, default=8, help="rows of an iteration and of a sampling step")
    parser.add_argument("--rows", type=int, default=2000, help="rows to pair")
    parser.add_argument("--steps", type=int, default=20, help="T of the pairing")
    parser.add_argument("--width", type=int, default=768, help="of the transformer")
    parser.add_argument("--blocks", type=int, default=12, help="of the transformer; as many heads")
    parser.add_argument("--task", choices=TASKS, help="one task, in this process")
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    if options.task:
        print(json.dumps(perform(options)))
        return
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {key: value for key, value in vars(options).items() if key not in ("task", "out")},
        "tasks": {task: in_own_process(task) for task in TASKS},
        "load_after": os.getloadavg()[0],
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def in_own_process(task: str) -> dict[str, Any]:
    """What `perform` found, in a process with the same options."""
    command = [sys.executable, __file__, *sys.argv[1:], "--task", task]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def perform(options: argparse.Namespace) -> dict[str, Any]:
    """Do a task; its peak memory and CPU seconds (of all threads)."""
    imported = peak()
    run, facts = prepare(options)
    started = time.process_time()
    run()
    seconds = time.process_time() - started
    return {"peak_mib": peak(), "imports_mib": imported, "cpu_seconds": round(seconds, 1), **facts}


def peak() -> int:
    """Peak resident memory of this process so far, MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def prepare(options: argparse.Namespace):
    """A function that does the task, and facts about it."""
    size, length, batch, task = options.vocabulary, options.length, options.batch, options.task
    rows = (size ** np.random.default_rng(0).random((options.rows, length))).astype(np.uint16)  # Zipf's law
    if task == "pairing":
        compile_for(rows, vocabulary_size=size, backend="cpu")
        return lambda: pair(
            rows, vocabulary_size=size, steps=options.steps, backend="cpu", progress=False
        ), {}
    blocks, corruption = options.blocks, Uniform(size)
    settings = {"width": options.width, "blocks": blocks, "heads": blocks, "time_width": 128, "dropout": 0.1}
    network = networks.build({"name": "transformer", **settings}, length=length, vocabulary_size=size)
    facts = {"parameters": sum(tensor.numel() for tensor in network.parameters())}
    if task == "iteration":
        objective = FlowObjective(rows, None, corruption, batch, "nelbo", 0, torch.device("cpu"))
        schedule = Optimisation(batch_size=batch, iterations=2, learning_rate=3e-4, decay="constant")
        return lambda: optimise(network, objective, schedule, seed=0, progress=False), facts
    sampler, _, at_once = task.partition("_")
    count = corruption.rows_at_once(length) if at_once else batch
    x0 = corruption.source((count, length))
    plan = SamplingPlan(sampler=sampler, steps=1, prediction="leave_one_out")
    return lambda: corruption.sample(network.eval(), x0, plan), facts | {"rows": count}


if __name__ == "__main__":
    main()
