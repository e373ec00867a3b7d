"""The benchmarks of pairing themselves, on a few synthetic rows: they run, and their contenders agree."""

import argparse
import hashlib
import importlib.util
import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from torch_threads import threads_restored

from pairflow.pairing import local_consensus
from pairflow.pairing.pair import pair

SCRIPTS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """Import a script of the folder, whose modules import one another."""
    monkeypatch.syspath_prepend(SCRIPTS)

    def imported(name: str):
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", SCRIPTS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return imported


@pytest.fixture
def benchmark(load):
    return load("pairing")


@pytest.fixture
def rivals(load, monkeypatch):
    """The comparison with other libraries, as many as are installed, with as many threads as there are."""
    module = load("rivals")
    monkeypatch.setattr(module, "limited", nullcontext)
    return module


def test_the_baselines_compute_what_the_engine_computes(benchmark):
    data = benchmark.clusters(300, 12, 9)
    z = benchmark.noised(data, 20, 9)
    expected = local_consensus(z, data, 0.5, vocabulary_size=9)
    np.testing.assert_allclose(benchmark.by_broadcasting(z, data, 9), expected, rtol=1e-4)
    for precision, error in (("float32", 1e-3), ("TF32", 1e-3), ("bfloat16", 1e-2), ("int8", 1e-2)):
        one_hot = benchmark.OneHotKeys(data[:296], 9, "cpu", precision)
        few = local_consensus(z, data[:296], 0.5, vocabulary_size=9)
        np.testing.assert_allclose(one_hot.consensus(z), few, rtol=error, atol=1e-6)


def test_contenders_run_side_by_side(benchmark):
    with threads_restored():
        found = benchmark.side_by_side(benchmark.clusters(400, 8, 5), 5, turns=1)
    rates = found["pairs_per_second_and_step"]
    assert {"pairflow, 1 thread", "NumPy broadcasting", "torch one-hot, cpu"} <= set(rates)
    assert benchmark.machine()["threads"] >= 1


def test_a_whole_pairing_is_timed_beside_another_checkout(benchmark):
    data = benchmark.clusters(40, 8, 5)
    run = benchmark.whole_run(data, 5, 3, turns=1, beside=SCRIPTS.parent)
    sources = pair(data, vocabulary_size=5, steps=3, backend="cpu", progress=False)
    assert run["sources"] == hashlib.sha256(sources.tobytes()).hexdigest()
    assert run["beside"]["same_bytes"]
    assert run["beside"]["ratio"]["median"] == run["beside"]["seconds"]["median"] / run["seconds"]["median"]


@pytest.mark.parametrize(("symbols", "dtype"), [(2, np.uint8), (9, np.uint8), (300, np.uint16)])
def test_rivals_run_side_by_side_after_they_gave_what_the_reference_gives(rivals, symbols, dtype, load):
    data = rivals.sample(load("pairing").clusters(400, 12, symbols), 300).astype(dtype)
    shape = rivals.side_by_side(data, symbols, argparse.Namespace(turns=2, seconds=1e-4))
    names = [(entry["name"], entry["result"]) for entry in shape["threads"][1]]
    assert {("pairflow", "step"), ("pairflow", "distances"), ("SciPy cdist", "distances")} < set(names)
    assert {("torch SDPA, one-hot", "step"), ("torch, Algorithm 1 as written", "step")} < set(names)
    assert len(names) + len(shape["left_out"]) == len(rivals.RIVALS) + 3
    table = rivals.tables({"shapes": [{"name": "rows", **shape}]})
    assert f"**rows** (300 keys, N = 12, K = {symbols})" in table


def test_a_rival_that_computes_something_else_is_not_timed(rivals, load):
    data = load("pairing").clusters(50, 12, 9)
    wrong = rivals.RIVALS[0]._replace(build=lambda data, symbols: lambda z: np.ones((len(z), len(data))))
    with pytest.raises(AssertionError, match="NumKong, bytes: not the distances of the reference"):
        rivals.checked(wrong, data, data, 9)
    far = rivals.RIVALS[0]._replace(result="row", build=lambda data, symbols: lambda z: np.zeros(len(z), int))
    with pytest.raises(AssertionError, match="NumKong, bytes: not the law of semidiscrete transport"):
        rivals.checked(far, data, data[::-1], 9)


def test_the_distances_of_couplings_are_measured_beside_what_is_expected(monkeypatch, tmp_path, load):
    coupling = load("coupling")
    outputs = {"--out": tmp_path / "coupling.json", "--plot": tmp_path / "coupling.svg"}
    words = [str(word) for pair in outputs.items() for word in pair]
    monkeypatch.setattr("sys.argv", ["coupling.py", "--toy", *words])
    coupling.main()
    record = json.loads((tmp_path / "coupling.json").read_text())
    assert {(result["data"], result["K"]) for result in record["results"]} >= {("text", 27), ("zipf", 256)}
    assert all(0.7 < result["expected"] <= result["ratio"] <= 1 for result in record["results"])
    assert "N = 16" in (tmp_path / "coupling.svg").read_text()


def test_the_expected_distance_is_that_of_long_random_rows(load):
    coupling = load("coupling")
    only_the_own_weight_counts = coupling.expected(np.full(50, 1 / 50), 10_000, 10, 20)
    assert only_the_own_weight_counts == pytest.approx(1)
    rows = np.random.default_rng(0).integers(20, size=(2000, 64), dtype=np.uint8)
    [found] = coupling.measure("random", 20, rows, [40])
    assert found["expected"] == pytest.approx(found["ratio"], abs=0.015)
    assert found["ratio"] < 0.95


def test_the_memory_of_each_task_is_measured(load):
    memory = load("memory")
    sizes = {"vocabulary": 50, "length": 8, "batch": 2, "rows": 30, "steps": 2, "width": 16, "blocks": 1}
    for task in memory.TASKS:
        found = memory.perform(argparse.Namespace(**sizes, task=task))
        assert found["peak_mib"] >= found["imports_mib"] > 0
