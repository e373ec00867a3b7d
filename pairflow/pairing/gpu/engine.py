"""The exact GPU engine of Algorithm 1: CuPy raw kernels (the .cu files beside), bit for bit the oracle.

A block takes a few queries through all T steps; its warps share the keys, in slices of 128. A step is two
passes over all keys, and nothing of size M leaves the chip:

1. Distances, by bits: 32 positions of a key are PLANES words, so 32 positions of a pair cost PLANES LOP3 and
   one POPC. KEYS keys x QUERIES queries stay in registers, like the tile of a matrix product. Keys that can
   matter are counted by distance in shared memory; then one thread per query finds its integer weights.
2. The same distances again, where a key was counted. For a slice and a query with keys that have a weight the
   lanes become positions: PLANES words hold 32 keys' symbols there, and a comparison gives a bit per key that
   agrees. Few keys are added one by one; many keys on few levels level by level, POPC of bits times weight.
   The sums are float64 (integers below 2^53, so exact) where the device adds it fast, else int64.

Global memory holds the data (16 bits a token and twice PLANES bits), and per running query N states and sums.

Estimates for an H200, not measurements: 132 multiprocessors at 1.75 GHz, and per clock in each 64 LOP3,
integer additions or comparisons, 16 POPC and 64 float64 additions. Clocks of the busiest unit per pair (a
query, a key, a step), from the compiled instructions and from the share f of pairs with a weight, counted on
samples of 4 to 24 queries against all keys:

                      pairs     f     pass 1   again   sums   clocks   seconds at 65 % of the peak
    QM9               3.2e11    0.55  0.13     0.12    0.6    0.85     1.8   (target  3)
    ZINC-250k         3.2e12    0.26  0.39     0.26    0.7    1.35     29    (target 45)
    MNIST-Binary      7.2e10    0.30  1.6      0.9     4.7    7.2      3.5   (target  6)
    20,000 CIFAR-10   8.0e9     1e-4  13.5     1.0     0      14.5     0.8   (target 10)

Likeliest to be off: the counting in shared memory, the weights read from there, and how much of the second
pass's columns the first-level cache keeps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.errors import InputError
from pairflow.pairing import rule
from pairflow.runtime.progress import bar

_HERE = Path(__file__).parent
_KERNELS = (_HERE / f"{name}.cu" for name in ("distances", "agreement", "trajectory"))
_SOURCES = (_HERE.parent.parent / "rng.cu", *_KERNELS)
MAX_KEYS = 2**30  # keys are numbered by 32-bit integers
_LANES = 32
_WARPS = 8
_NEAR_WORDS = 256  # a bit per slice of keys; beyond 8,192 slices share bits and are looked at in vain
_DENSE = 12  # below, looking for the keys that have a weight is cheaper than adding zeros
_BY_LEVEL = 4  # below, adding key by key is cheaper than level by level
_WAVES = 16  # blocks per multiprocessor and launch; between launches the bar moves and Ctrl-C works
_SCRATCH = 1 << 28  # bytes for the sums of the running queries


@dataclass(frozen=True)
class KernelLayout:
    """How the kernels are compiled for rows of `length` positions whose symbols have `planes` bits.

    A block of `warps` warps takes `queries` queries, a thread compares `keys` keys with all of them, and sums
    over keys are made for `chunk` groups of 32 positions at a time. A multiprocessor holds `resident` blocks.
    """

    length: int
    planes: int
    queries: int
    keys: int
    warps: int
    chunk: int
    resident: int = 1

    @classmethod
    def choose(cls, length: int, vocabulary_size: int, shared_limit: int) -> "KernelLayout":
        """Choose the layout with most queries per block (at most 16) that fits into `shared_limit` bytes."""
        planes = (vocabulary_size - 1).bit_length()
        groups = -(-length // _LANES)
        most = max(1, min(8, 32 // planes))  # planes * chunk words of a query's state stay in registers
        chunk = min(range(1, most + 1), key=lambda c: (-(-groups // c) * c, -c)) if groups > most else groups
        keys = 4 if planes <= 8 else 2
        for queries in (16, 8, 4, 2, 1):
            layout = cls(length, planes, queries, keys, _WARPS, chunk)
            if layout.shared_bytes <= shared_limit:
                break
        if 2 * layout.shared_bytes <= shared_limit:
            return replace(layout, resident=2)
        wider = replace(layout, warps=2 * _WARPS)
        return wider if wider.shared_bytes <= shared_limit else layout

    @property
    def groups(self) -> int:
        """Groups of 32 positions."""
        return -(-self.length // _LANES)

    @property
    def slice(self) -> int:
        """Keys that a warp compares at a time."""
        return _LANES * self.keys

    @property
    def shared_bytes(self) -> int:
        """The size of the struct Shared."""
        per_block = self.warps * (self.slice * 8 + 4) + _NEAR_WORDS * 4
        per_query = 8 + 8 + self.groups * self.planes * 4 + (self.length + 1) * 4 + 3 * 4
        distances = self.warps * self.queries * self.slice * 2
        return -(-(per_block + self.queries * per_query + distances) // 16) * 16

    def macros(self, *, fast_doubles: bool) -> dict[str, object]:
        """The constants that the kernels expect from the compiler."""
        return {
            "LENGTH": self.length,
            "PLANES": self.planes,
            "QUERIES": self.queries,
            "KEYS": self.keys,
            "WARPS": self.warps,
            "CHUNK": self.chunk,
            "RESIDENT": self.resident,
            "NEAR_WORDS": _NEAR_WORDS,
            "DENSE": _DENSE,
            "BY_LEVEL": _BY_LEVEL,
            "SUM": "double" if fast_doubles else "long long",
            "TOLERANCE": rule.TOLERANCE,
            "WEIGHT_BITS": rule.WEIGHT_BITS,
            "SHARED_BYTES": self.shared_bytes,
        }


def source() -> str:
    """The kernels in CUDA C++; messages about them name file and line."""
    return "".join(f'#line 1 "{path.name}"\n{path.read_text()}' for path in _SOURCES)


def defines(macros: dict[str, object]) -> list[str]:
    """The compiler's options for macros."""
    return [f"-D{name}={value}" for name, value in macros.items()]


def missing() -> str | None:
    """A sentence about what this engine needs and does not find; None if it can run here."""
    try:
        import cupy
    except ImportError:
        return 'needs CuPy: pip install "pairflow[gpu]"'
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"needs a CUDA device, and none is visible ({error})"
    return None if count else "needs a CUDA device, and none is visible"


def held_memory_mb() -> float:
    """Memory that CuPy has taken from the GPU, MiB: the most so far, as its pool gives none back."""
    import cupy

    return cupy.get_default_memory_pool().total_bytes() / 2**20


def pair_rows(
    data: np.ndarray,
    queries: np.ndarray,
    row_numbers: np.ndarray,
    *,
    vocabulary_size: int,
    progress: bool,
    **numbers: int,
) -> np.ndarray:
    """`oracle.pair_rows`, with the same arguments and the same bytes, on CuPy's current device.

    `progress` shows a bar. Raises InputError if there is no such device, if `data` has 2^30 rows or more, or
    if rows are too long for its shared memory (N <= 4096 fits every GPU).
    """
    lack = missing()
    if lack:
        raise InputError(f'backend: "gpu" {lack}')
    device = Cuda()
    layout = KernelLayout.choose(data.shape[1], vocabulary_size, device.shared_limit)
    numbers["vocabulary_size"] = vocabulary_size
    return pair_on(device, layout, data, queries, row_numbers, progress=progress, **numbers)


def pair_on(
    device: Any,
    layout: KernelLayout,
    data: np.ndarray,
    queries: np.ndarray,
    row_numbers: np.ndarray,
    *,
    vocabulary_size: int,
    steps: int,
    seed: int,
    progress: bool,
) -> np.ndarray:
    """`pair_rows` on a device like `Cuda`, with a layout."""
    if len(data) >= MAX_KEYS:
        raise InputError(f"tokens: the GPU engine takes fewer than {MAX_KEYS} rows, found {len(data)}")
    if layout.shared_bytes > device.shared_limit:
        raise InputError(
            f"tokens: rows of {layout.length} tokens need {layout.shared_bytes >> 10} KiB of shared memory, "
            f'this GPU has {device.shared_limit >> 10}: use the backend "cpu"'
        )
    kernels = device.compile(source(), layout.macros(fast_doubles=device.fast_doubles))
    keys = _packed(device, kernels, layout, data)
    settings = _rule_on(device, len(data), layout.length, vocabulary_size, steps)
    randomness = np.uint64(seed), np.uint32(vocabulary_size - 1)
    size = min(_WAVES * device.multiprocessors * layout.queries, max(1, _SCRATCH // (8 * layout.length)))
    sources = np.empty_like(queries)
    with bar(total=len(queries), desc="pairing", unit="row", quiet=not progress) as paired:
        for start in range(0, len(queries), size):
            rows = slice(start, start + size)
            states = device.array(queries[rows].astype(np.uint16))
            numbers = device.array(np.asarray(row_numbers[rows], dtype=np.uint64))
            agreement = device.zeros(states.shape, np.float64 if device.fast_doubles else np.int64)
            walking = states, numbers, agreement, np.int32(len(states))
            blocks, threads = -(-len(states) // layout.queries), _LANES * layout.warps
            arguments = (*keys, *walking, *settings, *randomness)
            device.launch(kernels["walk"], blocks, threads, arguments, layout.shared_bytes)
            sources[rows] = device.numpy(states)
            paired.update(len(states))
    return sources


class Cuda:
    """CuPy's current device, as far as this engine uses it; the tests put an emulation in its place."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        runtime = cupy.cuda.runtime
        number = cupy.cuda.Device().id

        def attribute(name: str) -> int:
            return runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), number)

        self.multiprocessors = attribute("MultiProcessorCount")
        self.shared_limit = attribute("MaxSharedMemoryPerBlockOptin")
        self.fast_doubles = attribute("SingleToDoublePrecisionPerfRatio") <= 4

    def compile(self, source: str, macros: dict[str, object]) -> dict[str, Callable]:
        """The kernels `pack` and `walk` of `source`. CuPy keeps the machine code on disk."""
        options = ("--std=c++17", *defines(macros))
        module = self._cupy.RawModule(code=source, options=options, backend="nvrtc")
        kernels = {name: module.get_function(name) for name in ("pack", "walk")}
        kernels["walk"].max_dynamic_shared_size_bytes = macros["SHARED_BYTES"]
        return kernels

    def array(self, values: np.ndarray) -> Any:
        """A copy of `values` on the device."""
        return self._cupy.asarray(np.ascontiguousarray(values))

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros on the device."""
        return self._cupy.zeros(shape, dtype)

    def numpy(self, array: Any) -> np.ndarray:
        """A copy of `array` on the host, once the device is done with it."""
        return self._cupy.asnumpy(array)

    def launch(
        self, kernel: Callable, blocks: int, threads: int, arguments: tuple, shared_bytes: int = 0
    ) -> None:
        """Starts a kernel; arguments are arrays of the device and NumPy scalars."""
        kernel((blocks,), (threads,), arguments, shared_mem=shared_bytes)


def _packed(device: Any, kernels: dict[str, Callable], layout: KernelLayout, data: np.ndarray) -> tuple:
    """The keys as `walk` takes them: rows, columns, their number M, and the stride, M made whole slices."""
    keys = len(data)
    stride = -(-keys // layout.slice) * layout.slice
    words = layout.groups * layout.planes * stride
    rows, columns = device.zeros(words, np.uint32), device.zeros(words, np.uint32)
    tokens = device.array(data.astype(np.uint16))
    blocks = -(-(stride // _LANES * layout.groups) // layout.warps)
    packing = (tokens, np.int32(keys), np.int32(stride), rows, columns)
    device.launch(kernels["pack"], blocks, _LANES * layout.warps, packing)
    return rows, columns, np.int32(keys), np.int32(stride)


def _rule_on(device: Any, keys: int, length: int, vocabulary_size: int, steps: int) -> tuple:
    """The numbers of the rule as `walk` takes them: rates, tables, reaches, T."""
    rates = rule.step_rates(steps, vocabulary_size)
    tables = rule.level_tables(steps, length, vocabulary_size)
    return device.array(rates), device.array(tables), device.array(_reaches(tables, keys)), np.uint32(steps)


def _reaches(tables: np.ndarray, keys: int) -> np.ndarray:
    """For each step, a level that no kept level lies beyond, as (T,) int32.

    Keys not yet seen are at most M, the total is at least 1 and rounding is monotonic: so the rule stops at
    the latest after the first level g with M * table[g+1] <= 1e-9.
    """
    stops = keys * tables[:, 1:] <= rule.TOLERANCE  # (T, N)
    return np.where(stops.any(axis=1), stops.argmax(axis=1), tables.shape[1] - 1).astype(np.int32)
