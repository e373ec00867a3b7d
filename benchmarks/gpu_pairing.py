"""What the GPU engine of pairing spends its time on, its launches in other shapes, and torch beside it.

`on_gpu.py` calls these functions. By itself this file is the program whose second launch `ncu` profiles:

    python benchmarks/gpu_pairing.py inputs/qm9.npz 20
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pairing
import torch

from pairflow.pairing.gpu import engine as gpu
from pairflow.pairing.pair import Pairer

PRECISIONS = ("float32", "TF32", "bfloat16", "int8")
BATCHES = (64, 1024, 2048)  # queries of a product
WARPS = (4, 8, 16)  # of a block
RESIDENT = (2, 4, 8)  # blocks of a multiprocessor
MOST_THREADS = 2048  # of a multiprocessor
SAMPLED = 20_000  # rows that are paired among all, where all would take too long
Launch = Callable[[], None]


def cuda_seconds(launch: Launch) -> float:
    """Seconds of a launch between two events of the GPU."""
    import cupy

    began, ended = cupy.cuda.Event(), cupy.cuda.Event()
    began.record()
    launch()
    ended.record()
    ended.synchronize()
    return cupy.cuda.get_elapsed_time(began, ended) / 1000


def wall_seconds(launch: Launch) -> float:
    """Seconds of a launch on a device that works while one waits."""
    began = time.perf_counter()
    launch()
    return time.perf_counter() - began


class TimedDevice:
    """A device of the GPU engine that adds up the seconds of the compilation and of each kernel."""

    def __init__(self, device: Any, clock: Callable[[Launch], float]):
        self._device, self._clock = device, clock
        self.seconds: dict[str, float] = defaultdict(float)
        self._names: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def compile(self, source: str, macros: dict[str, object]) -> dict[str, Any]:
        """The device's kernels."""
        began = time.perf_counter()
        kernels = self._device.compile(source, macros)
        self.seconds["compilation"] += time.perf_counter() - began
        self._names = {id(kernel): name for name, kernel in kernels.items()}
        return kernels

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        """The device's launch, to its end."""
        seconds = self._clock(lambda: self._device.launch(kernel, *arguments, **options))
        self.seconds[self._names[id(kernel)]] += seconds


def device_and_clock(toy: bool, folder: Path) -> tuple[Any, Callable[[Launch], float]]:
    """The GPU; for toys the emulation of the tests, which g++ compiles into the folder."""
    if not toy:
        return gpu.Cuda(), cuda_seconds
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from gpu_emulation import Emulation

    return Emulation(folder), wall_seconds


def pieces(
    tokens: np.ndarray, symbols: int, steps: int, device: Any, clock: Callable, **layout: int
) -> dict[str, float]:
    """Seconds of compilation, of packing the keys, and of pairing (at most `SAMPLED` rows) apart.

    `layout` replaces values of the engine's own KernelLayout.
    """
    timed = TimedDevice(device, clock)
    own = gpu.KernelLayout.choose(tokens.shape[1], symbols)
    pairer = gpu.GpuPairer(timed, gpu.KernelLayout(own.planes, own.bits, **layout))
    rule = {"vocabulary_size": symbols, "steps": steps, "seed": 0}
    rows = np.arange(len(tokens))[:: max(1, len(tokens) // SAMPLED)]
    first = wall_seconds(lambda: pairer.pair_rows(tokens, tokens[:1], rows[:1], **rule))
    packing = {"packing": first - timed.seconds["walk"], "pack kernel": timed.seconds["pack"]}
    timed.seconds["walk"] = 0.0
    whole = wall_seconds(lambda: pairer.pair_rows(tokens, tokens[rows], rows, **rule))
    return {
        "compilation": timed.seconds["compilation"],
        **packing,
        "rows": len(rows),
        "pairing": whole,
        "walk kernel": timed.seconds["walk"],
    }


def as_it_is(
    tokens: np.ndarray, symbols: int, steps: int, device: Any, clock: Callable
) -> dict[str, dict[str, float]]:
    """`pieces` of the engine as it is."""
    return {"as it is": pieces(tokens, symbols, steps, device, clock)}


def variants(
    tokens: np.ndarray, symbols: int, steps: int, device: Any, clock: Callable
) -> dict[str, dict[str, float]]:
    """`pieces` of the engine as it is, of one step, and of blocks of other sizes."""
    results = as_it_is(tokens, symbols, steps, device, clock)
    results["one step"] = pieces(tokens, symbols, 1, device, clock)
    for warps in WARPS:
        for resident in RESIDENT:
            if 32 * warps * resident <= MOST_THREADS:
                name = f"{warps} warps, {resident} blocks"
                layout = {"warps": warps, "resident": resident}
                results[name] = pieces(tokens, symbols, steps, device, clock, **layout)
    return results


def beside_one_hot(data: np.ndarray, symbols: int, pairer: Pairer, steps: int, device: str) -> dict[str, Any]:
    """Pairs per second and step of the engine and of torch, which computes one step of a few queries.

    The engine's keys are packed before, as torch's are encoded before. Torch's best batch of each precision
    is compared.
    """
    count, queries = min(len(data), 4000), pairing.noised(data, max(BATCHES), symbols)
    pairer.sources((0, 1))
    engine: list[float] = []
    torch_rates: dict[str, dict[int, list[float]]] = {}
    for precision in PRECISIONS:
        keys = pairing.OneHotKeys(data, symbols, device, precision)
        rates: dict[int, list[float]] = {batch: [] for batch in BATCHES}
        for turn in range(4):
            own = count * len(data) * steps / pairing.seconds_of(lambda: pairer.sources((0, count)))
            found = {batch: len(data) * batch / _seconds(keys, queries[:batch]) for batch in BATCHES}
            if turn > 0:  # the first one warms up
                engine.append(own)
                for batch, rate in found.items():
                    rates[batch].append(rate)
        torch_rates[precision] = rates
        del keys
    return _compared(engine, torch_rates)


def _seconds(keys: pairing.OneHotKeys, queries: np.ndarray) -> float:
    return pairing.seconds_of(lambda: keys.consensus(queries))


def _compared(engine: list[float], rates: dict[str, dict[int, list[float]]]) -> dict[str, Any]:
    """The rates, and the engine's over those of the best batch of each precision, within each turn."""
    turns = len(engine) // len(rates)
    ratios = {}
    for number, (precision, batches) in enumerate(rates.items()):
        best = max(batches.values(), key=np.median)
        ratios[precision] = pairing.spread(np.divide(engine[number * turns : (number + 1) * turns], best))
    of_torch = {
        precision: {batch: pairing.spread(values) for batch, values in batches.items()}
        for precision, batches in rates.items()
    }
    return {"pairs_per_second_and_step": {"engine": pairing.spread(engine), **of_torch}, "ratios": ratios}


def main() -> None:
    """Pair a few rows, and then as many as the GPU has room for at once: the launch that is profiled."""
    with np.load(sys.argv[1]) as file:
        tokens, symbols = file["tokens"], int(file["symbols"])
    layout = gpu.KernelLayout.choose(tokens.shape[1], symbols)
    pairer = gpu.GpuPairer(gpu.Cuda(), layout)
    for count in (1, pairer.blocks):
        rows = np.arange(min(count, len(tokens)))
        pairer.pair_rows(tokens, tokens[rows], rows, vocabulary_size=symbols, steps=int(sys.argv[2]), seed=0)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
