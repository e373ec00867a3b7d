import csv
import gzip
import time

import numpy as np
import pytest

from pairflow.pairing import cpu, reference


def clustered(rows, length, vocabulary_size, *, centres=5, noise=0.2, seed=0):
    """Rows scattered around a few centres, duplicates among them."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, vocabulary_size, (centres, length))[rng.integers(0, centres, rows)]
    flips = rng.random((rows, length)) < noise
    data = np.where(flips, rng.integers(0, vocabulary_size, (rows, length)), data)
    data[1] = data[0]
    return data


def both(data, vocabulary_size, steps, *, row_numbers=None, seed=0):
    """The source states by the CPU engine and by the reference."""
    numbers = np.arange(len(data)) if row_numbers is None else row_numbers
    rule = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    fast = cpu.pair_rows(data, data, numbers, **rule, threads=2, progress=False)
    return fast, reference.pair_rows(data, data, numbers, **rule)


def test_trajectories_of_clustered_data_equal_the_reference():
    fast, slow = both(clustered(1000, 24, 40), 40, 20)
    assert np.array_equal(fast, slow)


@pytest.mark.data
def test_trajectories_of_qm9_equal_the_reference(data_dir):
    with gzip.open(data_dir / "qm9.csv.gz", "rt") as file:
        smiles = [row["smiles"].encode().ljust(32, b"\0") for row in csv.DictReader(file)][::133][:1000]
    data = np.frombuffer(b"".join(smiles), dtype=np.uint8).reshape(1000, 32)
    fast, slow = both(data, 128, 20)
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "dtype", "steps"),
    [
        (60, 784, 2, np.uint8, 10),
        (80, 300, 2, np.int64, 5),
        (200, 20, 300, np.uint16, 10),
        (100, 10, 1000, np.int32, 10),
        (50, 6, 65536, np.int32, 4),
        (4, 4096, 256, np.uint8, 3),
        (40, 1, 3, np.int8, 5),
        (30, 5, 4, np.uint64, 1),
    ],
)
def test_every_shape_and_dtype_equals_the_reference(rows, length, vocabulary_size, dtype, steps):
    data = clustered(rows, length, vocabulary_size).astype(dtype)
    fast, slow = both(data, vocabulary_size, steps)
    assert fast.dtype == slow.dtype == dtype
    assert np.array_equal(fast, slow)


def test_one_row_and_large_row_numbers_and_seeds():
    fast, slow = both(np.array([[0, 1, 2, 3]]), 4, 20, row_numbers=np.array([2**40 + 1]), seed=2**64 - 1)
    assert np.array_equal(fast, slow)


def test_duplicates_walk_apart():
    data = np.repeat(clustered(100, 12, 8), 2, axis=0)
    sources, slow = both(data, 8, 20)
    assert np.array_equal(sources, slow)
    assert np.count_nonzero((sources[::2] == sources[1::2]).all(axis=1)) < 5


def test_the_result_depends_on_neither_threads_nor_blocks_nor_slices(monkeypatch):
    data = clustered(300, 16, 20)
    rule = {"vocabulary_size": 20, "steps": 10, "seed": 3, "progress": False}
    whole = cpu.pair_rows(data, data, np.arange(300), threads=1, **rule)
    slices = [(0, 7), (7, 299), (299, 300)]
    parts = [cpu.pair_rows(data, data[a:b], np.arange(a, b), threads=None, **rule) for a, b in slices]
    assert np.array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(cpu, "_BLOCK", 1)  # one row per task
    assert np.array_equal(cpu.pair_rows(data, data, np.arange(300), threads=2, **rule), whole)


def test_an_interrupt_stops_before_the_next_block(monkeypatch):
    data = clustered(300, 16, 20)
    rule = {"vocabulary_size": 20, "steps": 20, "seed": 0, "threads": 2, "progress": False}
    walked = []

    class Bar(cpu.tqdm):
        def update(self, n=1):
            raise KeyboardInterrupt

    def walk(*args):
        walked.append(args)
        time.sleep(0.02)

    monkeypatch.setattr(cpu, "tqdm", Bar)
    monkeypatch.setattr(cpu, "walk", walk)
    monkeypatch.setattr(cpu, "_BLOCK", 1)
    with pytest.raises(KeyboardInterrupt):
        cpu.pair_rows(data, data, np.arange(300), **rule)
    assert len(walked) < 150


def test_the_bar_counts_rows(capsys):
    data = clustered(50, 6, 5)
    rule = {"vocabulary_size": 5, "steps": 2, "seed": 0, "threads": 1}
    cpu.pair_rows(data, data, np.arange(50), **rule, progress=True)
    assert "50/50" in capsys.readouterr().err
    cpu.pair_rows(data, data, np.arange(50), **rule, progress=False)
    assert capsys.readouterr() == ("", "")
