"""What `torch.compile` and channels-last memory gain in training: the same networks and batches side by side.

    python benchmarks/compile.py --out benchmarks/records/compile.json      (minutes)

What is measured: rows per second of forward, backward and AdamW after the first iterations, and the seconds
that compiling took. Contenders take turns in one process; ratios are to the plain network in the same turn.
A CPU uses one thread, as the rules do. A plain network computes as in training: a GPU in bf16, except for the
U-Net, which computes in float32.
"""

import argparse
import json
import os
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pairing import commit, machine, spread

from pairflow import networks


class Case(NamedTuple):
    """A network's settings, length N, symbols K, rows per batch, and the shape of an image."""

    settings: dict[str, Any]
    length: int
    symbols: int
    rows: int
    shape: tuple[int, ...] | None = None


MLP = {"name": "mlp", "width": 384, "blocks": 2, "time_width": 128, "dropout": 0.0}
TRANSFORMER = {
    "name": "transformer",
    "width": 128,
    "blocks": 4,
    "heads": 4,
    "time_width": 64,
    "dropout": 0.0,
}
UNET = {
    "name": "unet",
    "channels": 16,
    "multipliers": [1, 2, 4],
    "blocks": 1,
    "attention": [2],
    "dropout": 0.0,
    "head": "logistic",
}
CASES = {
    "mlp of the demo": Case(MLP, 16, 24, 256),
    "transformer, width 128": Case(TRANSFORMER, 32, 40, 64),
    "unet of mnist_binary_small": Case(UNET, 784, 2, 32, (1, 28, 28)),
}
SECONDS = 6.0  # of one turn of one contender


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    configuration = {"turns": options.turns, "device": device.type, "load_before": os.getloadavg()[0]}
    cases = {name: side_by_side(case, kinds(case), options.turns, device) for name, case in CASES.items()}
    deliver(cases, configuration, options.out)


def deliver(cases: dict, configuration: dict, out: Path | None) -> None:
    """Print the cases, and write their record."""
    for case, contenders in cases.items():
        for name, result in contenders.items():
            ratio, rate = result["ratio"], result["rows_per_second"]["median"]
            between = f"{ratio['min']:.2f} to {ratio['max']:.2f}"
            print(f"{case:28} {name:22} {rate:8.4g} rows/s  {ratio['median']:.2f}x ({between})")
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {**configuration, "torch": torch.__version__, "load_after": os.getloadavg()[0]},
        "cases": cases,
    }
    if out:
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def kinds(case: Case) -> list[str]:
    """The contenders: the plain network, and what may be faster, or is the other precision on a GPU."""
    if case.settings["name"] == "unet":
        return ["plain", "bf16", "channels last", "compiled"]
    return ["plain", "float32", "compiled"]


def side_by_side(case: Case, kinds: list[str], turns: int, device: torch.device) -> dict:
    """Contender -> rows per second, ratio to the plain one, seconds until its first iteration was over."""
    contenders, first = {}, {}
    for kind in kinds:
        started = time.perf_counter()
        contenders[kind] = trainer(case, kind, device)
        contenders[kind]()
        first[kind] = time.perf_counter() - started
    rates = {kind: [] for kind in kinds}
    for _ in range(turns):
        for kind, step in contenders.items():
            rates[kind].append(rate(step, case.rows, device))
    return {
        kind: {
            "rows_per_second": spread(rates[kind]),
            "ratio": spread(np.divide(rates[kind], rates["plain"])),
            "first_iteration_seconds": first[kind],
        }
        for kind in kinds
    }


def rate(step, rows: int, device: torch.device) -> float:
    for _ in range(2):
        step()
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        step()
        done += 1
        if device.type == "cuda":
            torch.cuda.synchronize()
    return rows * done / (time.perf_counter() - started)


def trainer(case: Case, kind: str, device: torch.device):
    """One iteration on a fixed batch."""
    settings, length, symbols, rows, shape = case
    torch.manual_seed(0)
    image = {} if shape is None else {"shape": shape}
    network = networks.build(settings, length=length, vocabulary_size=symbols, **image).to(device).train()
    if kind == "channels last":
        network = network.to(memory_format=torch.channels_last)
    called = torch.compile(network) if kind == "compiled" else network
    optimiser = torch.optim.AdamW(network.parameters(), 1e-4, fused=True)
    tokens = torch.randint(0, symbols, (rows, length), device=device)
    times = torch.rand(rows, device=device)
    bf16 = partial(torch.autocast, device.type, torch.bfloat16)
    if kind == "bf16":  # which the U-Net switches off, but for this part
        network.transform = bf16()(network.transform)

    def step() -> None:
        with bf16(enabled=device.type == "cuda" and kind != "float32"):
            scores = called(tokens, times)
        torch.nn.functional.cross_entropy(scores.float().flatten(0, 1), tokens.flatten()).backward()
        optimiser.step()
        optimiser.zero_grad()

    return step


if __name__ == "__main__":
    main()
