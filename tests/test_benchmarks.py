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


def test_contenders_run_side_by_side_and_an_estimated_run_says_so(benchmark):
    found = benchmark.side_by_side(benchmark.clusters(400, 8, 5), 5, turns=1)
    rates = found["pairs_per_second_and_step"]
    assert {"pairflow, 1 thread", "NumPy broadcasting", "torch one-hot, cpu"} <= set(rates)
    assert benchmark.machine()["threads"] >= 1
    run = benchmark.estimate(benchmark.clusters(400, 8, 5), 5, 3)
    assert run["estimated"]
    assert run["seconds"]["min"] > 0


def test_rates_are_pairs_and_steps_over_the_time_of_a_clock_that_is_known(benchmark, monkeypatch):
    """Walking down from t = 1 takes 3 s to the end of the steps around t = 1/2 and 1 s to their beginning."""
    first, last = benchmark.HALF
    walks = {first: 3.0, last + 1: 1.0}
    monkeypatch.setattr(benchmark.Engine, "seconds", lambda engine, queries, threads, step: walks[step])
    monkeypatch.setattr(benchmark, "seconds_of", lambda work: 0.5)
    monkeypatch.setattr(benchmark, "available_cpus", lambda: 1)
    found = benchmark.side_by_side(benchmark.clusters(400, 8, 5), 5, turns=2)
    ours, broadcasting = 400 * (last - first + 1) * 400 / 2, 8 * 400 / 0.5
    rates = found["pairs_per_second_and_step"]
    assert rates["pairflow, 1 thread"]["median"] == ours
    assert rates["NumPy broadcasting"]["median"] == broadcasting
    assert rates["torch one-hot, cpu"]["median"] == 64 * 400 / 0.5
    ratio = {"median": ours / broadcasting, "min": ours / broadcasting, "max": ours / broadcasting}
    assert found["ratios"]["pairflow, 1 thread / NumPy broadcasting"] == ratio
