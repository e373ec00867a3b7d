"""The pairing benchmark itself, on a few synthetic rows: it runs, and its contenders agree."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from pairflow.pairing import local_consensus

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "pairing.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("benchmark_of_pairing", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_baselines_compute_what_the_engine_computes(benchmark):
    data = benchmark.clusters(300, 12, 9)
    z = benchmark.noised(data, 20, 9)
    expected = local_consensus(z, data, 0.5, vocabulary_size=9)
    np.testing.assert_allclose(benchmark.by_broadcasting(z, data, 9), expected, rtol=1e-4)
    one_hot = benchmark.one_hot_keys(data, 9, "cpu")
    np.testing.assert_allclose(benchmark.by_one_hot(z, one_hot, 9), expected, rtol=1e-3, atol=1e-6)


def test_contenders_are_measured_side_by_side(benchmark):
    found = benchmark.side_by_side(benchmark.clusters(400, 8, 5), 5, turns=1)
    rates = found["pairs_per_second_and_step"]
    assert {"pairflow, 1 thread", "NumPy broadcasting", "torch one-hot, cpu"} <= set(rates)
    for name, ratio in found["ratios"].items():
        ours, other = name.split(" / ")
        assert ratio["median"] == pytest.approx(rates[ours]["median"] / rates[other]["median"])
    assert benchmark.machine()["threads"] >= 1
    run = benchmark.estimate(benchmark.clusters(400, 8, 5), 5, 3)
    assert run["estimated"]
    assert run["seconds"]["min"] > 0
