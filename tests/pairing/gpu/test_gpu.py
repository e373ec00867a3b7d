"""The GPU engine on a GPU: the same bytes as the CPU engine."""

import csv
import gzip
from dataclasses import replace

import numpy as np
import pytest

import pairflow
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.gpu import engine as gpu

LACK = gpu.missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(LACK is not None, reason=f"the GPU engine {LACK}")]


def equal_the_cpu(data, vocabulary_size, steps, *, rows=slice(None), seed=0):
    """Whether both engines give the same source states for some rows of `data`."""
    queries, numbers = data[rows], np.arange(len(data))[rows]
    rule = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    layout = gpu.KernelLayout.choose(data.shape[1], vocabulary_size)
    fast = gpu.GpuPairer(gpu.Cuda(), layout).pair_rows(data, queries, numbers, **rule)
    assert fast.dtype == data.dtype
    return np.array_equal(fast, cpu.pair_rows(data, queries, numbers, **rule, threads=None))


@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "dtype", "steps"),
    [
        (3000, 24, 40, np.uint8, 20),
        (3000, 74, 72, np.uint8, 64),
        (2000, 784, 2, np.uint8, 20),
        (3000, 33, 300, np.uint16, 10),
        (500, 6, 65536, np.int32, 4),
        (60, 4096, 65536, np.int32, 3),
        (200, 3072, 256, np.uint8, 5),
        (300, 1, 3, np.int8, 5),
        (1, 4, 4, np.uint64, 20),
    ],
)
def test_gpu_and_cpu_agree_on_clustered_data(clustered, rows, length, vocabulary_size, dtype, steps):
    data = clustered(rows, length, vocabulary_size, dtype=dtype)
    assert equal_the_cpu(data, vocabulary_size, steps, seed=2**64 - 1)


@pytest.mark.data
def test_gpu_and_cpu_agree_on_qm9(data_dir):
    with gzip.open(data_dir / "qm9.csv.gz", "rt") as file:
        smiles = [row["smiles"].encode().ljust(32, b"\0") for row in csv.DictReader(file)]
    data = np.frombuffer(b"".join(smiles), dtype=np.uint8).reshape(-1, 32)
    assert equal_the_cpu(data, 128, 20, rows=slice(0, None, 133))


def test_the_result_depends_neither_on_launches_nor_on_the_layout(clustered, monkeypatch):
    data = clustered(3000, 40, 20)
    rule = {"vocabulary_size": 20, "steps": 10, "seed": 3}
    layout = gpu.KernelLayout.choose(40, 20)
    whole = gpu.GpuPairer(gpu.Cuda(), layout).pair_rows(data, data, np.arange(3000), **rule)
    pairer = gpu.GpuPairer(gpu.Cuda(), replace(layout, warps=4, resident=1))
    monkeypatch.setattr(gpu, "_LAUNCH_SECONDS", 0.0)
    parts = [pairer.pair_rows(data, data[a:b], np.arange(a, b), **rule) for a, b in ((0, 7), (7, 3000))]
    assert np.array_equal(np.concatenate(parts), whole)


def test_what_bounds_leave_open_is_decided_exactly(clustered, monkeypatch):
    monkeypatch.setattr(gpu.rule, "margin", lambda keys: 2.0)  # which leaves everything open
    assert equal_the_cpu(clustered(3000, 24, 40), 40, 20)


def test_subsets_agree_through_the_public_function(clustered):
    data = clustered(500, 12, 8)
    rule = {"vocabulary_size": 8, "subsets": 3, "seed": 5, "progress": False}
    assert np.array_equal(
        pairflow.pair(data, backend="gpu", **rule), pairflow.pair(data, backend="cpu", **rule)
    )
