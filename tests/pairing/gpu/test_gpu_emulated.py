"""The kernels of the GPU engine on a CPU: compiled as C++ over cuda_on_cpu.h. An emulation.

It shows that the kernels' logic gives the reference's bytes. It cannot show that they run on a GPU, nor how
fast: test_gpu.py and benchmarks/pairing_gpu.py do, where there is one.
"""

import ctypes
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pairflow.pairing import oracle, rule
from pairflow.pairing.gpu import engine as gpu

HERE = Path(__file__).parent
NO_COMPILER = shutil.which("g++") is None and not os.environ.get("CI")  # CI has to run these tests
pytestmark = pytest.mark.skipif(NO_COMPILER, reason="g++ is not installed")

SMALL = gpu.KernelLayout(length=70, planes=3, queries=3, keys=2, warps=2, chunk=2)


class Emulation:
    """Takes the place of `gpu.Cuda`: one block after another, its threads in order or backwards."""

    multiprocessors = 1
    shared_limit = 1 << 17

    def __init__(self, folder: Path, *, fast_doubles: bool = True, backwards: bool = False, **macros):
        self.folder = folder
        self.fast_doubles = fast_doubles
        self.backwards = backwards
        self.macros = macros

    def compile(self, source, macros):
        text, library = self.folder / "kernels.cu", self.folder / "kernels.so"
        text.write_text(source)
        defines = gpu.defines(macros | self.macros)
        options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
        strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
        files = [f'-DKERNELS="{text}"', HERE / "emulated_kernels.cpp", "-o", library]
        subprocess.run(["g++", *options, *strict, *defines, *files], check=True)
        kernels = ctypes.CDLL(str(library))
        kernels.set_reversed(self.backwards)
        kernels.weigh_levels.restype = ctypes.c_longlong
        names = {"pack": "launch_pack", "walk": "launch_walk", "weigh": "weigh_levels"}
        return {name: getattr(kernels, function) for name, function in names.items()}

    def array(self, values):
        return np.array(values, order="C")

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    def numpy(self, array):
        return array.copy()

    def launch(self, kernel, blocks, threads, arguments, shared_bytes=0):
        kernel.restype = ctypes.c_bool
        finished = kernel(ctypes.c_uint(blocks), ctypes.c_uint(threads), *map(_in_c, arguments))
        assert finished, "some threads wait for others that never come"


def _in_c(value):
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    kinds = {np.int32: ctypes.c_int32, np.uint32: ctypes.c_uint32, np.uint64: ctypes.c_uint64}
    return kinds[type(value)](int(value))


def equal_the_reference(
    device, layout, data, vocabulary_size, steps, *, rows=slice(None), seed=0, first_row=0, queries=None
):
    """Whether the emulated kernels give the reference's source states for some rows of `data`, or others."""
    queries = data[rows] if queries is None else queries
    numbers = np.arange(len(data))[rows][: len(queries)] + first_row
    settings = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    emulated = gpu.pair_on(device, layout, data, queries, numbers, **settings, progress=False)
    assert emulated.dtype == data.dtype
    return np.array_equal(emulated, oracle.pair_rows(data, queries, numbers, **settings))


@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "dtype", "steps"),
    [
        (200, 24, 40, np.uint8, 20),
        (100, 74, 72, np.uint8, 8),
        (60, 784, 2, np.uint8, 5),
        (70, 300, 2, np.int64, 4),
        (150, 33, 300, np.uint16, 6),
        (50, 6, 65536, np.int32, 4),
        (3, 4096, 256, np.uint8, 2),
        (2, 16384, 2, np.uint8, 2),
        (200, 1, 3, np.int8, 5),
        (30, 5, 4, np.uint64, 1),
        (1, 4, 4, np.uint8, 20),
    ],
)
def test_gpu_kernels_emulated_on_the_cpu_equal_the_reference(
    tmp_path, clustered, rows, length, vocabulary_size, dtype, steps
):
    device = Emulation(tmp_path)
    layout = gpu.KernelLayout.choose(length, vocabulary_size, device.shared_limit)
    data = clustered(rows, length, vocabulary_size, dtype=dtype)
    assert equal_the_reference(device, layout, data, vocabulary_size, steps)


@pytest.mark.parametrize(
    "layout",
    [
        SMALL,
        replace(SMALL, queries=1, keys=1, warps=1, chunk=1),
        replace(SMALL, queries=7, keys=4, warps=3, chunk=3),
        replace(SMALL, queries=32, keys=3, warps=4, planes=16),
    ],
    ids=str,
)
def test_gpu_kernels_emulated_on_the_cpu_with_any_layout(tmp_path, clustered, layout):
    """600 keys are several rounds of a small block."""
    data = clustered(600, 70, 6)
    assert equal_the_reference(Emulation(tmp_path), layout, data, 6, 6, rows=slice(100, 145))


def test_gpu_kernels_emulated_on_the_cpu_where_slices_of_keys_share_a_bit(tmp_path, clustered, monkeypatch):
    monkeypatch.setattr(gpu, "_NEAR_WORDS", 1)  # 40 slices of 32 keys
    layout = replace(SMALL, keys=1)
    assert equal_the_reference(Emulation(tmp_path), layout, clustered(1280, 70, 6), 6, 4, rows=slice(0, 9))


@pytest.mark.parametrize(
    "macros",
    [
        {"BY_LEVEL": 0},
        {"BY_LEVEL": 1000, "DENSE": -1},
        {"BY_LEVEL": 1000, "DENSE": 32},
        {"fast_doubles": False},
        {"fast_doubles": False, "BY_LEVEL": 0},
        {"backwards": True},
        {"backwards": True, "fast_doubles": False, "BY_LEVEL": 1000},
    ],
    ids=["levels", "dense keys", "sparse keys", "int64", "int64 levels", "backwards", "int64 keys backwards"],
)
def test_gpu_kernels_emulated_on_the_cpu_add_in_every_way(tmp_path, clustered, macros):
    data = clustered(300, 70, 6)
    assert equal_the_reference(Emulation(tmp_path, **macros), SMALL, data, 6, 8, rows=slice(0, 24))


def test_gpu_kernels_emulated_on_the_cpu_with_large_numbers_and_queries_that_are_no_keys(tmp_path, clustered):
    data, device = clustered(90, 70, 6), Emulation(tmp_path)
    assert equal_the_reference(device, SMALL, data, 6, 5, rows=slice(0, 9), first_row=2**40, seed=2**64 - 1)
    strangers = clustered(8, 70, 6, seed=1)
    assert equal_the_reference(device, SMALL, data, 6, 5, queries=strangers)


def test_gpu_weights_emulated_on_the_cpu_are_those_of_the_rule(tmp_path):
    weigh = Emulation(tmp_path).compile(gpu.source(), SMALL.macros(fast_doubles=True))["weigh"]
    rng = np.random.default_rng(0)
    for steps, vocabulary_size in ((20, 2), (7, 8)):
        for table in rule.level_tables(steps, 70, vocabulary_size):
            counts = (2 ** rng.uniform(0, 20, 71) * (rng.random(71) < 0.5)).astype(np.uint32)
            nearest = int(rng.integers(0, 60))
            counts[:nearest], counts[nearest] = 0, 1
            weights, expected = np.zeros((2, 71), np.int64)
            total = weigh(*map(_in_c, (counts, table, np.int32(counts.sum()), weights)))
            rule.level_weights(counts[nearest:].astype(np.int64), table, expected[nearest:])
            assert np.array_equal(weights, expected)
            assert total == (counts * expected).sum()


def test_gpu_launches_emulated_on_the_cpu_do_not_change_the_result(tmp_path, clustered, monkeypatch, capsys):
    data = clustered(40, 70, 6)
    monkeypatch.setattr(gpu, "_WAVES", 2)  # 2 blocks of 3 queries per launch
    assert equal_the_reference(Emulation(tmp_path), SMALL, data, 6, 4)
    monkeypatch.setattr(gpu, "_SCRATCH", 1)  # one query per launch
    assert equal_the_reference(Emulation(tmp_path), SMALL, data, 6, 4, rows=slice(0, 5))
    settings = {"vocabulary_size": 6, "steps": 1, "seed": 0}
    gpu.pair_on(Emulation(tmp_path), SMALL, data, data, np.arange(40), **settings, progress=True)
    assert "40/40" in capsys.readouterr().err
