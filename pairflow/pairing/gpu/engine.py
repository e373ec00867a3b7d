"""The exact GPU engine of Algorithm 1: CuPy raw kernels (the .cu files), with the oracle's results.

It works like the CPU engine; keys are data rows. A block takes one query after another through all T steps:

1. Draw. A position whose random number is not below the step's rate stays, for any data. The remaining
   positions are candidates; a step without candidates is finished.
2. Decide. Levels are counted from the nearest on, four at a time: all keys, and the keys that agree at each
   undecided candidate, until bounds decide all candidates (agreement.cu).
3. Jump. The distances of all keys are stored as bits, 32 keys per word. A change of a symbol reads the bits
   of one column, adds 1 to keys with the old symbol and subtracts 1 from keys with the new (distances.cu).

Global memory holds the data, N * PLANES bits per key, and BITS bits per key for each running block. Shared
memory is 5 KB, whatever the shape.

benchmarks/records/speed.md estimates its time on an H200.

For large K the CPU engine has lists of the keys with a symbol, so that a change updates about 2 M / K keys
instead of all M. They would save most of the time for CIFAR-10 here, too. But they would need counters and
atomic additions instead of bits, and a second way to find levels. One layout that is fast enough for every
target is easier to read and to verify.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairflow.errors import InputError
from pairflow.pairing import rule
from pairflow.runtime.progress import bar

_HERE = Path(__file__).parent
_KERNELS = (_HERE / f"{name}.cu" for name in ("distances", "agreement", "trajectory"))
_SOURCES = (_HERE.parent.parent / "rng.cu", *_KERNELS)
OPTIONS = ("--std=c++17", "--fmad=false")  # a fused multiply-add would round once, the rule rounds twice
MIN_CAPABILITY = 80  # the first with __reduce_add_sync, a sum over a warp
MAX_KEYS = 2**30  # keys are numbered by 32-bit integers
_LANES = 32
_TILE = 32 * _LANES  # keys per warp: one 32-bit word per lane
_LAUNCH_SECONDS = 1.0  # the progress bar, Ctrl-C and displays wait for the end of a launch


class Missing(NamedTuple):
    """The reason why the engine cannot run: `text` is the end of a sentence.

    `gpu` says whether there is a GPU, which cannot be used.
    """

    text: str
    gpu: bool = False

    def __str__(self) -> str:
        return self.text


class UnusableGpu(Exception):
    """The GPU cannot pair these data, but a CPU can. The text is the end of a sentence, as in `Missing`."""


@dataclass(frozen=True)
class KernelLayout:
    """Constants with which the kernels are compiled.

    `planes` is the number of bits of a symbol, `bits` that of a distance, `warps` the number of warps in a
    block, and `resident` the number of blocks on a multiprocessor at a time.
    """

    planes: int
    bits: int
    warps: int = 8
    resident: int = 4

    @classmethod
    def choose(cls, length: int, vocabulary_size: int) -> "KernelLayout":
        """Return the layout for N = `length` and K = `vocabulary_size`."""
        return cls((vocabulary_size - 1).bit_length(), length.bit_length())

    @property
    def token(self) -> np.dtype:
        """The type of the symbols that the kernel `pack` reads."""
        return np.min_scalar_type(2**self.planes - 1)

    @property
    def threads(self) -> int:
        """The number of threads in a block."""
        return _LANES * self.warps

    @property
    def shared_bytes(self) -> int:
        """The size of the struct Shared of distances.cu, in bytes."""
        return self.threads * (4 * 4 + 4) + 8 * 4

    def macros(self) -> dict[str, object]:
        """Return the macros that the kernels need, from name to value."""
        return {
            "PLANES": self.planes,
            "BITS": self.bits,
            "WARPS": self.warps,
            "RESIDENT": self.resident,
            "TOLERANCE": rule.TOLERANCE,
            "WEIGHT_BITS": rule.WEIGHT_BITS,
            "SHARED_BYTES": self.shared_bytes,
        }


def source() -> str:
    """Return the kernels in CUDA C++, with file names and lines for the compiler's messages."""
    return "".join(f'#line 1 "{path.name}"\n{path.read_text()}' for path in _SOURCES)


def defines(macros: dict[str, object]) -> list[str]:
    """Return the compiler's options that define these macros."""
    return [f"-D{name}={value}" for name, value in macros.items()]


def missing() -> Missing | None:
    """Return what this engine lacks on this machine, or None if it can run."""
    try:
        import cupy
    except ImportError:
        return Missing('needs CuPy: pip install "pairflow[gpu]", or "pairflow[gpu-cuda12]" for CUDA 12')
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        has_driver = runtime.driverGetVersion() > 0
        advice = '; the extra "gpu-cuda12" suits drivers below 580' if has_driver else ""
        return Missing(f"needs a CUDA device, and none is visible ({error}){advice}", gpu=has_driver)
    if not count:
        return Missing("needs a CUDA device, and none is visible")
    capability = cupy.cuda.Device().compute_capability
    if int(capability) < MIN_CAPABILITY:
        version, least = (f"{number // 10}.{number % 10}" for number in (int(capability), MIN_CAPABILITY))
        return Missing(
            f"needs a GPU of compute capability {least} or more, and this one has {version}", gpu=True
        )
    return None


def held_memory_mb() -> float:
    """Return the memory of CuPy's pool in MiB, the maximum so far, because the pool gives none back."""
    import cupy

    return cupy.get_default_memory_pool().total_bytes() / 2**20


class GpuPairer:
    """Pairs rows on a device, `Cuda` or its emulation; packed keys are reused while `data` is the same array.

    Raises UnusableGpu if the kernels cannot be compiled, or if there is too little memory.
    """

    def __init__(self, device: Any, layout: KernelLayout, *, progress: bool = False):
        self.device, self.layout, self.progress = device, layout, progress
        self.blocks = layout.resident * device.multiprocessors  # blocks that run at the same time
        self.rows_at_once = self.blocks  # rows of the next launch
        self.kernels = device.compile(source(), layout.macros())
        self.data: np.ndarray | None = None
        self.keys: tuple = ()
        self.scratch: tuple = ()

    def pair_rows(
        self,
        data: np.ndarray,
        queries: np.ndarray,
        row_numbers: np.ndarray,
        *,
        vocabulary_size: int,
        steps: int,
        seed: int,
    ) -> np.ndarray:
        """Pair rows as `oracle.pair_rows` does: the same arguments give the same bytes.

        `data` (M, N) are all data rows, `queries` (B, N) those to pair, and `row_numbers` (B,) their numbers
        in the data set. Returns sources (B, N). Raises InputError if `data` has 2^30 rows or more, and
        UnusableGpu if there is too little memory.
        """
        try:
            if data is not self.data:
                self._load(data)
            settings = _rule_on(self.device, len(data), data.shape[1], vocabulary_size, steps)
            settings += np.uint64(seed), np.uint32(vocabulary_size - 1)
            return self._pair_in_launches(queries, row_numbers, settings)
        except MemoryError as error:
            raise UnusableGpu(f"has too little memory: {error}") from None

    def _pair_in_launches(self, queries: np.ndarray, row_numbers: np.ndarray, settings: tuple) -> np.ndarray:
        """Return the sources (B, N) of the queries, launch by launch; `settings` are as in `_pair`."""
        sources = np.empty_like(queries)
        start = 0
        with bar(total=len(queries), desc="pairing", unit="row", quiet=not self.progress) as paired:
            while start < len(queries):
                began = time.perf_counter()
                rows = slice(start, start + self.rows_at_once)
                sources[rows] = self._pair(queries[rows], row_numbers[rows], settings)
                paired.update(len(sources[rows]))
                start = rows.stop
                self.rows_at_once = _next_size(self.rows_at_once, time.perf_counter() - began, self.blocks)
        return sources

    def _load(self, data: np.ndarray) -> None:
        """Pack `data` as the keys on the device, and allocate scratch memory for the blocks.

        Raises InputError if there are too many rows.
        """
        if len(data) >= MAX_KEYS:
            raise InputError(f"tokens: the GPU engine takes fewer than {MAX_KEYS} rows, found {len(data)}")
        self.data, self.keys, self.scratch = None, (), ()  # frees their memory first
        self.keys = _packed(self.device, self.kernels, self.layout, data)
        self.scratch = _scratch(self.device, self.layout, self.blocks, data)
        self.data, self.rows_at_once = data, self.blocks

    def _pair(self, queries: np.ndarray, row_numbers: np.ndarray, settings: tuple) -> np.ndarray:
        """Return the sources of `queries` (b, N), computed in one launch of the kernel `walk`.

        `settings` are the last arguments of the kernel: the results of `_rule_on`, then the seed and K - 1.
        """
        device, layout = self.device, self.layout
        states = device.array(queries.astype(np.uint16))
        numbers = device.array(np.asarray(row_numbers, dtype=np.uint64))
        arguments = (*self.keys, states, numbers, np.int32(len(queries)), *self.scratch, *settings)
        blocks = min(self.blocks, len(queries))
        device.launch(self.kernels["walk"], blocks, layout.threads, arguments, layout.shared_bytes)
        return device.numpy(states)


class Cuda:
    """The part of CuPy that this engine uses, on its current device; tests replace it by an emulation."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        number = cupy.cuda.Device().id
        count = cupy.cuda.runtime.cudaDevAttrMultiProcessorCount
        self.multiprocessors = cupy.cuda.runtime.deviceGetAttribute(count, number)

    def compile(self, source: str, macros: dict[str, object]) -> dict[str, Callable]:
        """Return the compiled kernels `pack` and `walk` of `source`, by name.

        CuPy caches the machine code on disk. Raises UnusableGpu if they cannot be compiled.
        """
        options = (*OPTIONS, *defines(macros))
        try:
            module = self._cupy.RawModule(code=source, options=options, backend="nvrtc")
            return {name: module.get_function(name) for name in ("pack", "walk")}
        except Exception as error:  # errors of NVRTC, the driver and CuPy have no common class
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnusableGpu(f"cannot be compiled here: {first_line}") from None

    def array(self, values: np.ndarray) -> Any:
        """Return a copy of `values` on the device."""
        return self._cupy.asarray(np.ascontiguousarray(values))

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an uninitialised array on the device."""
        return self._cupy.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array of zeros on the device."""
        return self._cupy.zeros(shape, dtype)

    def numpy(self, array: Any) -> np.ndarray:
        """Return a copy of `array` on the host, once the device is done with it."""
        return self._cupy.asnumpy(array)

    def launch(
        self, kernel: Callable, blocks: int, threads: int, arguments: tuple, shared_bytes: int = 0
    ) -> None:
        """Start `kernel` in `blocks` blocks of `threads` threads.

        `arguments` are arrays of the device and NumPy scalars.
        """
        kernel((blocks,), (threads,), arguments, shared_mem=shared_bytes)


def _packed(device: Any, kernels: dict[str, Callable], layout: KernelLayout, data: np.ndarray) -> tuple:
    """Pack the data rows on the device as keys; return the arguments of the kernel that describe them.

    These are: columns (the bits of the symbols), held (which symbols occur at each position), constants (the
    symbol of each constant position, -1 elsewhere), M, words per column, and N. Keys are sorted, so that a
    tile has few different distances.
    """
    from pairflow.pairing.cpu.keys import sorted_rows

    keys, length = data.shape
    data = data.astype(layout.token, copy=False)
    words = -(-keys // _TILE) * _LANES
    columns = device.zeros(words * length * layout.planes, np.uint32)
    held = device.zeros(length * max(1, 2**layout.planes // _LANES), np.uint32)
    tokens = device.array(data[sorted_rows(data)])
    sizes = np.int32(keys), np.int32(words), np.int32(length)
    device.launch(kernels["pack"], -(-keys // _LANES), layout.threads, (tokens, *sizes, columns, held))
    constants = np.where((data == data[0]).all(axis=0), data[0].astype(np.int32), np.int32(-1))
    return columns, held, device.array(constants), *sizes


def _scratch(device: Any, layout: KernelLayout, blocks: int, data: np.ndarray) -> tuple:
    """Allocate the scratch memory of all blocks: return the device arrays distances, candidates and jumps."""
    words = -(-len(data) // _TILE) * _LANES
    distances = device.empty((blocks, layout.bits, words), np.uint32)
    candidates, jumps = (device.empty((blocks, data.shape[1], numbers), np.uint16) for numbers in (1, 3))
    return distances, candidates, jumps


def _rule_on(device: Any, keys: int, length: int, vocabulary_size: int, steps: int) -> tuple:
    """Return the kernel's arguments from `pairing.rule`: rates, tables, margin, T."""
    rates = rule.step_rates(steps, vocabulary_size)
    tables = rule.level_tables(steps, length, vocabulary_size)
    margin = np.array([rule.margin(keys)])
    return *map(device.array, (rates, tables, margin)), np.uint32(steps)


def _next_size(size: int, seconds: float, blocks: int) -> int:
    """Return the size of the next launch, a multiple of `blocks`, after one of `size` rows took `seconds`.

    Sizes grow at most fourfold, because the first launch also loads the kernels.
    """
    rows = min(4 * size, size * _LAUNCH_SECONDS / seconds)
    return max(1, int(rows) // blocks) * blocks
