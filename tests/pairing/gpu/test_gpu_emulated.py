"""The kernels of the GPU engine on a CPU: compiled as C++ over cuda_on_cpu.h. An emulation.

It shows that the kernels' logic gives the reference's bytes. It cannot show that they run on a GPU, nor how
fast: test_gpu.py and benchmarks/on_gpu.py do, where there is one.
"""

from dataclasses import replace

import numpy as np
import pytest
from gpu_emulation import SMALL, Emulation, needs_compiler

from pairflow.pairing import oracle, rule
from pairflow.pairing.gpu import engine as gpu

pytestmark = needs_compiler

# Points 3 and 4 of the rule: `counts` (N + 1,) are given by distance; `weights` (N + 2,) end with their sum.
WEIGH_LEVELS = """
extern "C" __global__ void weigh_levels(const unsigned* counts, const double* table, int keys,
                                        long long* weights) {
    if (threadIdx.x > 0) return;
    extern __shared__ double dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    for (int distance = 0; distance <= LENGTH; ++distance) shared.count[0][distance] = counts[distance];
    weigh(shared, 0, table, keys);
    for (int distance = shared.nearest[0]; distance <= shared.last[0]; ++distance)
        weights[distance] = (long long)weight_of(table[distance - shared.nearest[0]], shared.scale[0]);
    weights[LENGTH + 1] = shared.total[0];
}
"""


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
    device = Emulation(tmp_path)
    weigh = device.compile(gpu.source() + WEIGH_LEVELS, SMALL.macros(fast_doubles=True))["weigh_levels"]
    rng = np.random.default_rng(0)
    for steps, vocabulary_size in ((20, 2), (7, 8)):
        for table in rule.level_tables(steps, 70, vocabulary_size):
            counts = (2 ** rng.uniform(0, 20, 71) * (rng.random(71) < 0.5)).astype(np.uint32)
            nearest = int(rng.integers(0, 60))
            counts[:nearest], counts[nearest] = 0, 1
            weights, expected = np.zeros(72, np.int64), np.zeros(71, np.int64)
            arguments = (counts, np.ascontiguousarray(table), np.int32(counts.sum()), weights)
            device.launch(weigh, 1, 32, arguments, SMALL.shared_bytes)
            rule.level_weights(counts[nearest:].astype(np.int64), table, expected[nearest:])
            assert np.array_equal(weights[:-1], expected)
            assert weights[-1] == (counts * expected).sum()


def test_gpu_launches_emulated_on_the_cpu_do_not_change_the_result(tmp_path, clustered, monkeypatch, capsys):
    data = clustered(40, 70, 6)
    monkeypatch.setattr(gpu, "_WAVES", 2)  # 2 blocks of 3 queries per launch
    assert equal_the_reference(Emulation(tmp_path), SMALL, data, 6, 4)
    monkeypatch.setattr(gpu, "_SCRATCH", 1)  # one query per launch
    assert equal_the_reference(Emulation(tmp_path), SMALL, data, 6, 4, rows=slice(0, 5))
    settings = {"vocabulary_size": 6, "steps": 1, "seed": 0}
    gpu.pair_on(Emulation(tmp_path), SMALL, data, data, np.arange(40), **settings, progress=True)
    assert "40/40" in capsys.readouterr().err
