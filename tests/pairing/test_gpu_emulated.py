"""The kernels of the GPU engine on a CPU: gpu.cu compiled as C++ over cuda_on_cpu.h. An emulation.

It shows that the kernels' logic gives the reference's bytes. It cannot show that they run on a GPU, nor how
fast: test_gpu.py and benchmarks/pairing_gpu.py do, where there is one.
"""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pairflow.pairing import gpu, reference

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


class Emulation:
    """Takes the place of `gpu.Cuda`; `warnings` of the compiler are errors."""

    multiprocessors = 1
    shared_limit = 1 << 17

    def __init__(self, folder: Path, *, fast_doubles: bool = True, backwards: bool = False):
        self.folder = folder
        self.fast_doubles = fast_doubles
        self.backwards = backwards

    def compile(self, source, macros):
        library = self.folder / "kernels.so"
        defines = [f"-D{name}={value}" for name, value in macros.items()]
        options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
        strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
        files = [f'-DGPU_CU="{source}"', HERE / "emulated_kernels.cpp", "-o", library]
        subprocess.run(["g++", *options, *strict, *defines, *files], check=True)
        kernels = ctypes.CDLL(str(library))
        kernels.set_reversed(self.backwards)
        return {"pack": kernels.launch_pack, "walk": kernels.launch_walk}

    def array(self, values):
        return np.array(values, order="C")

    zeros = staticmethod(np.zeros)
    numpy = staticmethod(np.copy)

    def launch(self, kernel, blocks, threads, arguments, shared_bytes=0):
        kernel.restype = ctypes.c_bool
        finished = kernel(ctypes.c_uint(blocks), ctypes.c_uint(threads), *map(_c_argument, arguments))
        assert finished, "some threads wait at a barrier that the others never reach"


def _c_argument(value):
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    return {np.int32: ctypes.c_int32, np.uint32: ctypes.c_uint32, np.uint64: ctypes.c_uint64}[type(value)](
        int(value)
    )


def clustered(rows, length, vocabulary_size, *, centres=5, noise=0.2, seed=0):
    """Rows scattered around a few centres, duplicates among them."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, vocabulary_size, (centres, length))[rng.integers(0, centres, rows)]
    flips = rng.random((rows, length)) < noise
    data = np.where(flips, rng.integers(0, vocabulary_size, (rows, length)), data)
    data[-1] = data[0]
    return data


def both(device, layout, data, vocabulary_size, steps, *, queries=None, row_numbers=None, seed=0):
    """The source states by the emulated kernels and by the reference."""
    queries = data if queries is None else queries
    numbers = np.arange(len(queries)) if row_numbers is None else row_numbers
    rule = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    emulated = gpu.pair_on(device, layout, data, queries, numbers, **rule, progress=False)
    return emulated, reference.pair_rows(data, queries, numbers, **rule)


@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "dtype", "steps"),
    [
        (300, 24, 40, np.uint8, 20),
        (130, 74, 72, np.uint8, 8),
        (60, 784, 2, np.uint8, 5),
        (70, 300, 2, np.int64, 4),
        (150, 33, 300, np.uint16, 6),
        (50, 6, 65536, np.int32, 4),
        (6, 4096, 256, np.uint8, 2),
        (300, 1, 3, np.int8, 5),
        (30, 5, 4, np.uint64, 1),
        (1, 4, 4, np.uint8, 20),
    ],
)
def test_gpu_kernels_emulated_on_the_cpu_equal_the_reference(
    tmp_path, rows, length, vocabulary_size, dtype, steps
):
    device = Emulation(tmp_path)
    layout = gpu.Layout.of(length, vocabulary_size, device.shared_limit)
    data = clustered(rows, length, vocabulary_size).astype(dtype)
    emulated, expected = both(device, layout, data, vocabulary_size, steps)
    assert emulated.dtype == expected.dtype == dtype
    assert np.array_equal(emulated, expected)
