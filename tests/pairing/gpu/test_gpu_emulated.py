"""The kernels of the GPU engine on a CPU: compiled as C++ over cuda_on_cpu.h. An emulation.

It shows that the kernels' logic gives the reference's bytes. It cannot show that they run on a GPU, nor how
fast: test_gpu.py and benchmarks/on_gpu.py do, where there is one.
"""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from gpu_emulation import SMALL, Emulation, StandInForCupy, equal_the_reference, needs_compiler

from pairflow.pairing import oracle, rule
from pairflow.pairing.gpu import engine as gpu

pytestmark = needs_compiler

# Points 3 and 4 of the rule: `weights` (N + 1,) of the levels whose keys `counts` (N + 1,) holds.
WEIGH_LEVELS = """
extern "C" __global__ void weigh_levels(const unsigned* counts, const double* table, int keys,
                                        long long* weights) {
    if (threadIdx.x > 0) return;
    Levels levels;
    levels.keys_left = keys;
    do levels.add(counts[levels.count], table);
    while (!levels.complete());
    const double scale = weight_scale(levels.total);
    for (int level = 0; level < levels.count; ++level) weights[level] = weight_of(table[level], scale);
}
"""


# Offsets (row, columns, column) of 32 arrays.
OFFSETS = """
extern "C" __global__ void offsets(const int* rows, const int* columns, const int* column, uint64* found) {
    const int i = threadIdx.x;
    found[i] = at(rows[i], columns[i], column[i]);
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where libraries of kernels are kept that several tests load."""
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "dtype", "steps"),
    [
        (200, 24, 40, np.uint8, 20),
        (100, 74, 72, np.uint8, 8),
        (60, 784, 2, np.uint8, 5),
        (70, 300, 2, np.int64, 4),
        (150, 33, 300, np.uint16, 6),
        (50, 6, 65536, np.int32, 4),
        (3, 3072, 256, np.uint8, 2),
        (2, 16384, 2, np.uint8, 1),
        (200, 1, 3, np.int8, 5),
        (30, 5, 4, np.uint64, 1),
        (1, 4, 4, np.uint8, 20),
    ],
)
def test_gpu_kernels_emulated_on_the_cpu_equal_the_reference(
    folder, clustered, rows, length, vocabulary_size, dtype, steps
):
    device = Emulation(folder)
    layout = replace(gpu.KernelLayout.choose(length, vocabulary_size), warps=2)
    data = clustered(rows, length, vocabulary_size, dtype=dtype)
    assert equal_the_reference(device, layout, data, vocabulary_size, steps, rows=slice(0, 30))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("warps", [1, 3, 8])
def test_gpu_kernels_emulated_on_the_cpu_with_any_number_of_warps(folder, clustered, warps, backwards):
    """2,100 keys are three tiles, and 70 positions more candidates than a warp takes at a time."""
    device, layout = Emulation(folder, backwards=backwards), replace(SMALL, warps=warps)
    assert equal_the_reference(device, layout, clustered(2100, 70, 6), 6, 4, rows=slice(100, 105))


@pytest.mark.parametrize("tolerance", [0.1, 0.01, rule.TOLERANCE])
def test_gpu_kernels_emulated_on_the_cpu_decide_exactly_what_bounds_leave_open(
    folder, clustered, monkeypatch, tolerance
):
    monkeypatch.setattr(rule, "margin", lambda keys: 2.0)  # which leaves everything open
    monkeypatch.setattr(rule, "TOLERANCE", tolerance)  # a coarse one shows a level more or less
    data, device = clustered(300, 70, 6), Emulation(folder)
    assert equal_the_reference(device, SMALL, data, 6, 8, rows=slice(0, 8))


def test_gpu_kernels_emulated_on_the_cpu_with_columns_that_do_not_vary(folder, clustered):
    data = clustered(60, 70, 6)
    data[:, ::3] = 4
    assert equal_the_reference(Emulation(folder), SMALL, data, 6, 5, rows=slice(0, 9))
    strangers = clustered(4, 70, 6, seed=1)
    assert equal_the_reference(Emulation(folder), SMALL, data, 6, 5, queries=strangers)
    data[:] = 4  # nothing varies
    assert equal_the_reference(Emulation(folder), SMALL, data, 6, 5, rows=slice(0, 3))


def test_gpu_kernels_emulated_on_the_cpu_with_large_numbers(folder, clustered):
    data, device = clustered(90, 70, 6), Emulation(folder)
    assert equal_the_reference(device, SMALL, data, 6, 5, rows=slice(0, 9), first_row=2**40, seed=2**64 - 1)
    strangers = clustered(8, 70, 6, seed=1)
    assert equal_the_reference(device, SMALL, data, 6, 5, queries=strangers)


def test_gpu_weights_emulated_on_the_cpu_are_those_of_the_rule(folder):
    device = Emulation(folder)
    weigh = device.compile(gpu.source() + WEIGH_LEVELS, SMALL.macros())["weigh_levels"]
    rng = np.random.default_rng(0)
    for steps, vocabulary_size in ((20, 2), (7, 8)):
        for table in rule.level_tables(steps, 70, vocabulary_size):
            counts = (2 ** rng.uniform(0, 20, 71) * (rng.random(71) < 0.5)).astype(np.uint32)
            counts[0] = 1
            weights, expected = np.zeros((2, 71), np.int64)
            device.launch(
                weigh, 1, 32, (counts, np.ascontiguousarray(table), np.int32(counts.sum()), weights)
            )
            rule.level_weights(counts.astype(np.int64), table, expected)
            assert np.array_equal(weights, expected)


def offsets_are_right(folder) -> bool:
    """Whether offsets in the largest arrays are right: N = 16,384, and 2^25 words for 2^30 keys."""
    device = Emulation(folder)
    kernel = device.compile(gpu.source() + OFFSETS, SMALL.macros())["offsets"]
    largest = np.tile([[16383 * 16 + 15], [2**25], [2**25 - 1]], 32).astype(np.int32)
    largest[:, 1:4] = np.array([[2**30 - 1, 16384, 16383], [2**30, 16385, 16384], [7919, 15, 0]]).T
    found = np.zeros(32, np.uint64)
    device.launch(kernel, 1, 32, (*map(np.ascontiguousarray, largest), found))
    return found.tolist() == [int(a) * int(b) + int(c) for a, b, c in largest.T]


def products_beside_at(source: str) -> list[str]:
    """Factors that grow with the data, in code that does not leave the offset to `at`."""
    code = re.sub(r"//.*", "", source).replace("return row * columns + column", "")
    return re.findall(r"\*\s*\(?(?:\w+\.)*(?:words|length)\b|\b(?:words|length)\s*\*", code)


def test_gpu_offsets_hold_in_the_largest_data(folder):
    assert offsets_are_right(folder)
    assert not products_beside_at(gpu.source())


# What a test of the kernels has to notice: a text in them, and another in its place.
MISTAKES = {
    "vote of some lanes": ("__any_sync(ALL, nearer != 0)", "__any_sync(ALL >> 1, nearer != 0)"),
    "offset beside at": ("tokens[at(key, length, position)]", "tokens[key * length + position]"),
    "padding counts": ("(1u << left) - 1 : 0u", "ALL : ALL"),
    "distances of the step before": ("step.number > 1) move", "step.number > 2) move"),
    "one level too few": ("complete = levels.complete();", "complete = levels.count > 1;"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_gpu_kernels_is_noticed(folder, clustered, monkeypatch, mistake):
    right, wrong = MISTAKES[mistake]
    assert right in gpu.source()
    source = gpu.source().replace(right, wrong)
    monkeypatch.setattr(gpu, "source", lambda: source)
    data = clustered(300, 70, 6)
    if "lane" in mistake:
        with pytest.raises(AssertionError, match="whole_warp"):
            Emulation(folder).compile(source, SMALL.macros())
    elif "offset" in mistake:
        assert products_beside_at(source) or not offsets_are_right(folder)
    else:
        assert not equal_the_reference(Emulation(folder), SMALL, data, 6, 8, rows=slice(0, 8))


@pytest.mark.parametrize("vocabulary_size", [6, 300])
def test_cuda_asks_cupy_for_what_the_kernels_take(folder, clustered, monkeypatch, vocabulary_size):
    """The class `Cuda` over a stand-in for CuPy, which looks at names, types, sizes and shared memory."""
    cupy = StandInForCupy(folder)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    data = clustered(40, 70, vocabulary_size, dtype=np.int32)
    settings = {"vocabulary_size": vocabulary_size, "steps": 3, "seed": 0}
    rows, layout = (data, data[:10], np.arange(10)), gpu.KernelLayout.choose(70, vocabulary_size)
    emulated = gpu.GpuPairer(gpu.Cuda(), layout).pair_rows(*rows, **settings)
    assert np.array_equal(emulated, oracle.pair_rows(*rows, **settings))
    assert cupy.launches == [
        ("pack", (2,), (256,), 0),  # 40 keys, 32 to a block
        ("walk", (8,), (256,), 256 * 20 + 32),  # four blocks on each of two multiprocessors
        ("walk", (2,), (256,), 256 * 20 + 32),  # the last two queries
    ]
    assert cupy.options == ("--std=c++17", "--fmad=false", *gpu.defines(layout.macros()))
    assert cupy.backend == "nvrtc"


def test_gpu_launches_emulated_on_the_cpu_do_not_change_the_result(folder, clustered, monkeypatch, capsys):
    """Nor do earlier calls: the keys are packed again only for other data."""
    data, launches = clustered(40, 70, 6), []
    settings = {"vocabulary_size": 6, "steps": 4, "seed": 0}
    expected = oracle.pair_rows(data, data, np.arange(40), **settings)
    device = Emulation(folder)
    launch = device.launch
    monkeypatch.setattr(device, "launch", lambda *args: launches.append(len(args[3])) or launch(*args))
    pairer = gpu.GpuPairer(device, SMALL, progress=True)
    for seconds in (0.0, 1e9):  # three rows at a time, or four times as many as before
        monkeypatch.setattr(gpu, "_LAUNCH_SECONDS", seconds)
        halves = [pairer.pair_rows(data, data[i::2], np.arange(40)[i::2], **settings) for i in (0, 1)]
        assert np.array_equal(np.concatenate(halves, axis=1).reshape(40, 70), expected)
    assert "20/20" in capsys.readouterr().err
    assert launches.count(6) == 1  # the arguments of `pack`
    other = clustered(40, 70, 6, seed=1)
    assert np.array_equal(
        pairer.pair_rows(other, other, np.arange(40), **settings),
        oracle.pair_rows(other, other, np.arange(40), **settings),
    )
    assert launches.count(6) == 2


@pytest.mark.parametrize(
    ("size", "seconds", "following"), [(8, 0.01, 32), (32, 0.5, 64), (64, 3.0, 20), (4, 9, 4)]
)
def test_launches_grow_to_a_second(size, seconds, following):
    assert gpu._next_size(size, seconds, 4) == following
