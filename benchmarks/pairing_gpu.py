"""Time the GPU pairing engine on the paper's data sets, and compare its bytes with the CPU engine's.

    python benchmarks/pairing_gpu.py prepare tokens/    # from PAIRFLOW_DATA_DIR; needs RDKit, no GPU
    python benchmarks/pairing_gpu.py measure tokens/ --out record.json

The two halves may run on different machines: `tokens/` holds one compressed file per data set.
"""

import hashlib
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np

from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.gpu import engine as gpu
from pairflow.runtime.threads import available_cpus


@dataclass(frozen=True)
class Case:
    """One data set: K, T, and the seconds on an H200 that the project aims for."""

    vocabulary_size: int
    steps: int
    target_seconds: float


CASES = {
    "qm9": Case(40, 20, 3),
    "zinc250k": Case(72, 64, 45),
    "mnist": Case(2, 20, 6),
    "cifar10": Case(256, 20, 10),
}


@click.group()
def main():
    """Time the GPU pairing engine."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--only", type=click.Choice(list(CASES)), multiple=True, help="[default: all]")
def prepare(folder: Path, only):
    """Write the token rows of the data sets into FOLDER."""
    from pairing import read_digits, read_molecules  # needs RDKit

    raw = Path(os.environ["PAIRFLOW_DATA_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "qm9": lambda: read_molecules("qm9", 32)[0],
        "zinc250k": lambda: read_molecules("zinc250k", 74)[0],
        "mnist": read_digits,
        "cifar10": lambda: _cifar10(raw / "cifar10_subset.npz"),
    }
    for name in only or CASES:
        tokens = makers[name]()
        np.savez_compressed(folder / f"{name}.npz", tokens=tokens)
        print(f"{name}: {tokens.shape}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Record, JSON.")
@click.option("--only", type=click.Choice(list(CASES)), multiple=True, help="[default: all]")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@click.option("--check", type=int, default=64, show_default=True, help="Rows to pair on the CPU as well.")
def measure(folder: Path, out: Path, only, repeats, check):
    """Pair the data sets in FOLDER in full, warmed up, and write a record."""
    lack = gpu.missing()
    if lack:
        raise click.ClickException(f"the GPU engine {lack}")
    record = {"machine": _machine(), "date": datetime.now(UTC).isoformat(timespec="seconds"), "cases": {}}
    for name in only or CASES:
        tokens = np.load(folder / f"{name}.npz")["tokens"]
        result = record["cases"][name] = _measured(tokens, CASES[name], repeats, check)
        out.write_text(json.dumps(record, indent=2) + "\n")
        seconds = " ".join(f"{s:.3f}" for s in result["wall_seconds"])
        print(
            f"{name} {tokens.shape}: {seconds} s (target {result['target_seconds']} s), "
            f"{result['pairs_per_second']:.3g} pairs/s, equal to the CPU: {result['equal_to_cpu']}",
            flush=True,
        )


def _measured(tokens: np.ndarray, case: Case, repeats: int, check: int) -> dict:
    """One data set's result: seconds by the wall clock and by CUDA events, with transfers, and the check."""
    rule = {"vocabulary_size": case.vocabulary_size, "steps": case.steps, "seed": 0, "progress": False}
    few = np.linspace(0, len(tokens) - 1, check).astype(int)
    _, first, _ = _timed(tokens, few, rule)  # compiles, or loads what was compiled
    runs = [_timed(tokens, np.arange(len(tokens)), rule) for _ in range(repeats)]
    sources, wall, events = (list(column) for column in zip(*runs, strict=True))
    expected = cpu.pair_rows(tokens, tokens[few], few, **rule, threads=None)
    layout = gpu.KernelLayout.choose(tokens.shape[1], case.vocabulary_size)
    return {
        **asdict(case),
        "shape": tokens.shape,
        "layout": asdict(layout),
        "first_call_seconds": first,
        "wall_seconds": wall,
        "device_seconds": events,
        "pairs_per_second": len(tokens) ** 2 * case.steps / statistics.median(wall),
        "equal_to_cpu": all(np.array_equal(states[few], expected) for states in sources),
        "sha256": hashlib.sha256(sources[0].tobytes()).hexdigest(),
    }


def _timed(tokens, rows, rule) -> tuple[np.ndarray, float, float]:
    """Source states of some rows, and their seconds by the wall clock and between two CUDA events."""
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin = time.perf_counter()
    start.record()
    sources = gpu.pair_rows(tokens, tokens[rows], rows, **rule)
    end.record()
    end.synchronize()
    return sources, time.perf_counter() - begin, cupy.cuda.get_elapsed_time(start, end) / 1000


def _machine() -> dict:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "gpu": properties["name"].decode(),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpus": available_cpus(),
    }


def _cifar10(path: Path) -> np.ndarray:
    """10,000 training images and their mirror images, in channel-height-width order."""
    images = np.load(path)["x_train"].transpose(0, 3, 1, 2)
    return np.concatenate([images, images[..., ::-1]]).reshape(-1, 3072)


if __name__ == "__main__":
    main()
