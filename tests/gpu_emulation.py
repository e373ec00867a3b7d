"""What stands in for a GPU: the kernels as C++ over cuda_on_cpu.h, by themselves or under a sanitizer."""

import ctypes
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from in_ci import IN_CI

from pairflow.pairing.gpu import engine as gpu

HERE = Path(__file__).parent / "pairing" / "gpu"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None and not IN_CI, reason="g++ is not installed")
SMALL = gpu.KernelLayout(planes=3, bits=7, warps=2, resident=3)  # for rows of 70 tokens, K <= 8

_OPTIONS = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
SANITIZERS = {
    "thread": ["-g1", "-fsanitize=thread"],
    "address": ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
}
_KERNEL = re.compile(r"__global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(")


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
        return {name: name for name in _KERNEL.findall(source)}

    def build(self, source: str, macros: dict[str, object], options: list[str]) -> Path:
        """The kernels as a library or a program for this machine, built once in the folder."""
        defines = gpu.defines(macros)
        built = self.folder / f"kernels-{zlib.crc32(repr((source, defines, options)).encode())}"
        if not built.exists():
            text = built.with_suffix(".cu")
            text.write_text(source)
            kernels = " ".join(f"DO({name})" for name in _KERNEL.findall(source))
            defines += [f'-DKERNELS="{text}"', f"-DEACH_KERNEL(DO)={kernels}"]
            files = [HERE / "emulated_kernels.cpp", "-o", built]
            subprocess.run(["g++", *_OPTIONS, *options, *defines, *files], check=True)
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

    def launch(self, kernel, blocks, threads, arguments, shared_bytes=0):
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
        return {name: name for name in _KERNEL.findall(source)}

    def launch(self, kernel, blocks, threads, arguments, shared_bytes=0):
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
