"""What stands in for a GPU: the kernels as C++ over cuda_on_cpu.h, by themselves or under a sanitizer."""

import ctypes
import re
import shutil
import subprocess
import zlib
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from in_ci import IN_CI

from pairflow.pairing import oracle
from pairflow.pairing.gpu import engine as gpu

HERE = Path(__file__).parent / "pairing" / "gpu"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None and not IN_CI, reason="g++ is not installed")
SMALL = gpu.KernelLayout(planes=3, bits=7, warps=2, resident=3)  # for rows of 70 tokens, K <= 8

_OPTIONS = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
SANITIZERS = {
    "thread": ["-g1", "-fsanitize=thread"],
    "address": ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
}
_KERNEL = re.compile(r"__global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(([^)]*)\)")
_PARAMETER = re.compile(r"\s*(?:const )?(.+?)(\*?) ?(\w*)")
_TYPES = {
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned short": np.uint16,
    "Jump": np.uint16,
    "uint64": np.uint64,
    "long long": np.int64,
    "double": np.float64,
}


def parameters(source: str, macros: dict[str, object]) -> dict[str, list[tuple[type, bool]]]:
    """For each kernel the types of its parameters, and whether they are arrays."""
    types = _TYPES | {"Token": np.uint8 if int(macros.get("PLANES", 1)) <= 8 else np.uint16}
    found = {}
    for name, listed in _KERNEL.findall(source):
        matches = [_PARAMETER.fullmatch(parameter) for parameter in listed.split(",")]
        found[name] = [(types[match[1]], match[2] == "*") for match in matches]
    return found


class Emulation:
    """Takes the place of `gpu.Cuda`: one block after another, its threads in order or backwards."""

    multiprocessors = 1

    def __init__(self, folder: Path, *, backwards: bool = False):
        self.folder = folder
        self.backwards = backwards

    def compile(self, source, macros):
        library = ctypes.CDLL(str(self.build(source, macros, ["-shared", "-fPIC"])))
        library.launch.restype = ctypes.c_bool
        self.library = library
        return {name: name for name in self.parameters}

    def build(self, source: str, macros: dict[str, object], options: list[str]) -> Path:
        """The kernels as a library or a program for this machine, built once in the folder."""
        self.parameters = parameters(source, macros)
        defines = gpu.defines(macros)
        built = self.folder / f"kernels-{zlib.crc32(repr((source, defines, options)).encode())}"
        if not built.exists():
            text = built.with_suffix(".cu")
            text.write_text(source)
            kernels = " ".join(f"DO({name})" for name in self.parameters)
            defines += [f'-DKERNELS="{text}"', f"-DEACH_KERNEL(DO)={kernels}"]
            files = [HERE / "emulated_kernels.cpp", "-o", built]
            command = ["g++", *_OPTIONS, *options, *defines, *files]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            assert run.returncode == 0, run.stderr
        return built

    def array(self, values):
        return np.array(values, order="C")

    def empty(self, shape, dtype):
        """What is read before it is written shall be seen."""
        return np.full(shape, 0xA5A5, dtype)

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    def numpy(self, array):
        return array.copy()

    def check(self, kernel, arguments):
        """CUDA takes any bytes for a parameter; here they have its type."""
        for value, (kind, is_array) in zip(arguments, self.parameters[kernel], strict=True):
            assert isinstance(value, np.ndarray if is_array else np.generic)
            assert value.dtype == kind, f"{kernel}: {value.dtype} instead of {kind.__name__}"

    def launch(self, kernel, blocks, threads, arguments, shared_bytes=0):
        self.check(kernel, arguments)
        slots = np.array([_slot(value) for value in arguments], np.uint64)
        numbers = [ctypes.c_uint(number) for number in (self.backwards, blocks, threads, shared_bytes)]
        finished = self.library.launch(kernel.encode(), *numbers, ctypes.c_void_p(slots.ctypes.data))
        assert finished, "some threads wait for others that never come"


class Sanitized(Emulation):
    """Each launch is a process of its own under a sanitizer; an AssertionError has what that reports.

    `without` is a barrier that is left out: its file and line.
    """

    def __init__(self, folder: Path, sanitizer: str, *, without: tuple[str, int] | None = None, **options):
        super().__init__(folder, **options)
        self.sanitizer = sanitizer
        self.without = without

    def compile(self, source, macros):
        self.program = self.build(source, macros, SANITIZERS[self.sanitizer])
        return {name: name for name in self.parameters}

    def launch(self, kernel, blocks, threads, arguments, shared_bytes=0):
        self.check(kernel, arguments)
        file = self.folder / "launch"
        file.write_bytes(b"".join(_described(value) for value in arguments))
        numbers = [int(self.backwards), blocks, threads, shared_bytes]
        run = _run([self.program, kernel, *map(str, numbers), file, *map(str, self.without or ())])
        own_lines = [
            line for line in run.stderr.splitlines() if " std::" not in line and "invoke" not in line
        ]
        assert run.returncode == 0, "\n".join(own_lines) or "some threads wait for others that never come"
        written, at = file.read_bytes(), 0
        for value in arguments:
            size = value.nbytes if isinstance(value, np.ndarray) else 8
            if isinstance(value, np.ndarray):
                value[...] = np.frombuffer(written, value.dtype, value.size, at + 8).reshape(value.shape)
            at += 8 + size


class DeviceArray(np.ndarray):
    """An array that the stand-in for CuPy made: no other may be an argument of a kernel."""


class StandInForCupy:
    """Takes the place of the module `cupy`, with what `gpu` uses of it: kernels run in an `Emulation`.

    It notes each launch as (kernel, grid, block, bytes of shared memory). Nothing here takes a stream, so all
    work has to be on the current one.
    """

    def __init__(self, folder: Path):
        self.emulation, self.launches = Emulation(folder), []
        runtime = SimpleNamespace(
            CUDARuntimeError=RuntimeError,
            cudaDevAttrMultiProcessorCount=16,
            deviceGetAttribute=lambda attribute, device: {(16, 3): 2}[attribute, device],
            getDeviceCount=lambda: 4,
        )
        device = SimpleNamespace(id=3, compute_capability="90")
        self.cuda = SimpleNamespace(Device=lambda: device, runtime=runtime)

    def RawModule(self, *, code: str, options: tuple, backend: str):
        self.options, self.backend = options, backend
        macros = dict(option[2:].split("=") for option in options if option.startswith("-D"))
        kernels = self.emulation.compile(code, macros)
        return SimpleNamespace(get_function=lambda name: partial(self._launch, kernels[name]))

    def _launch(self, kernel, grid, block, arguments, *, shared_mem=0):
        assert all(isinstance(value, (DeviceArray, np.generic)) for value in arguments)
        self.launches.append((kernel, grid, block, shared_mem))
        self.emulation.launch(kernel, *grid, *block, arguments, shared_mem)

    def asarray(self, values):
        return self.emulation.array(values).view(DeviceArray)

    def empty(self, shape, dtype):
        return self.emulation.empty(shape, dtype).view(DeviceArray)

    def zeros(self, shape, dtype):
        return self.emulation.zeros(shape, dtype).view(DeviceArray)

    def asnumpy(self, array):
        assert isinstance(array, DeviceArray)
        return np.array(array)


def equal_the_reference(
    device, layout, data, vocabulary_size, steps, *, rows=slice(None), seed=0, first_row=0, queries=None
):
    """Whether the emulated kernels give the reference's source states for some rows of `data`, or others."""
    queries = data[rows] if queries is None else queries
    numbers = np.arange(len(data))[rows][: len(queries)] + first_row
    settings = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    emulated = gpu.GpuPairer(device, layout).pair_rows(data, queries, numbers, **settings)
    assert emulated.dtype == data.dtype
    return np.array_equal(emulated, oracle.pair_rows(data, queries, numbers, **settings))


def _run(command: list) -> subprocess.CompletedProcess:
    """A process to its end; without random addresses if ThreadSanitizer could not cope with these."""
    for prefix in ([], ["setarch", "-R"]):
        run = subprocess.run([*prefix, *command], capture_output=True, text=True, check=False, timeout=300)
        if "unexpected memory mapping" not in run.stderr:
            break
    return run


def _slot(value) -> int:
    """The eight bytes in which a kernel gets an argument."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return value.ctypes.data
    return int(value) % 2**64


def _described(value) -> bytes:
    """An argument in the file of a launch: the size of an array and the array, or 0 and eight bytes."""
    if isinstance(value, np.ndarray):
        return np.uint64(value.nbytes).tobytes() + value.tobytes()
    return bytes(8) + np.uint64(_slot(value)).tobytes()
