import gzip
import os
import platform
import subprocess
import sys
import time
from itertools import islice

import numpy as np
import pytest
from tqdm import tqdm

from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data import prepare as molecules
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.settings import Molecules
from pairflow.pairing import oracle, rule
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.cpu import keys
from pairflow.runtime import progress

COARSE = """
import sys
import numpy as np
from pairflow.pairing import oracle, rule

rule.TOLERANCE, rule.margin = 0.1, lambda keys: 2.0
from pairflow.pairing.cpu import engine as cpu, keys

for path in sys.argv[1:]:
    data = np.load(path)
    given = data, data[:200], np.arange(200)
    settings = {"vocabulary_size": int(data.max()) + 1, "steps": 20, "seed": 0}
    slow = oracle.pair_rows(*given, **settings)
    for keys.SPARSE in (0, 1000):  # bitmaps, lists
        print(np.count_nonzero((cpu.pair_rows(*given, **settings) != slow).any(axis=1)))
"""


def both(data, vocabulary_size, steps, *, queries=None, row_numbers=None, seed=0):
    """The source states of `queries` (of `data` itself) by the CPU engine and by the reference."""
    queries = data if queries is None else queries
    numbers = np.arange(len(queries)) if row_numbers is None else row_numbers
    settings = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    fast = cpu.pair_rows(data, queries, numbers, **settings, threads=2)
    return fast, oracle.pair_rows(data, queries, numbers, **settings)


@pytest.fixture(params=["bitmaps", "lists"])
def index(request, monkeypatch):
    """Tests take place twice: with either layout of the index, whichever the engine would choose."""
    monkeypatch.setattr(keys, "SPARSE", {"bitmaps": 0, "lists": 1000}[request.param])


def molecule_rows(name, every, length):
    """About 1,000 molecules of a source as token rows, and K."""
    source = MOLECULES[name]
    rows = islice(library.read_rows(source.fetch()), 0, None, every)
    prepared = molecules.prepare(rows, Molecules(source="x.smi", length=length))
    return prepared.train[:1000], prepared.vocabulary.size


def image_rows(data_dir):
    """1,000 binary digits as rows of 784 pixels."""
    with gzip.open(data_dir / "mnist" / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(16 + 1000 * 784), np.uint8, offset=16)
    return (pixels >= 128).astype(np.uint8).reshape(1000, 784)


@pytest.mark.data
@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("name", ["qm9", "zinc250k", "mnist"])
def test_trajectories_of_real_data_equal_the_reference(data_dir, name):
    if name == "mnist":
        data, vocabulary_size = image_rows(data_dir), 2
    else:
        every, length = {"qm9": (125, 32), "zinc250k": (230, 74)}[name]
        data, vocabulary_size = molecule_rows(name, every, length)
    assert len(data) == 1000
    rows = np.arange(0, 1000, {"qm9": 2, "zinc250k": 10, "mnist": 100}[name])
    fast, slow = both(data, vocabulary_size, 20, queries=data[rows], row_numbers=rows, seed=1)
    assert np.array_equal(fast, slow)


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "dtype", "steps"),
    [
        (1000, 24, 40, np.uint8, 20),
        (60, 784, 2, np.uint8, 10),
        (200, 20, 300, np.uint16, 10),
        (50, 6, 65536, np.int32, 4),
        (4, 4096, 256, np.uint8, 3),
        (20, 12288, 256, np.uint8, 3),
        (3, 16384, 300, np.uint16, 2),
        (40, 1, 3, np.int8, 5),
        (30, 5, 4, np.uint64, 1),
    ],
)
def test_every_shape_and_dtype_equals_the_reference(clustered, rows, length, vocabulary_size, dtype, steps):
    data = clustered(rows, length, vocabulary_size).astype(dtype)
    fast, slow = both(data, vocabulary_size, steps)
    assert fast.dtype == slow.dtype == dtype
    assert np.array_equal(fast, slow)


def test_the_rules_integers_have_the_levels_of_the_rule_on_the_oldest_processor(clustered, tmp_path):
    """With a cut-off so coarse that a level more or less shows, in a process that compiles it in.

    On x86 it compiles for plain x86-64, without AVX and POPCNT.
    """
    files = [tmp_path / "molecules.npy", tmp_path / "images.npy"]
    np.save(files[0], clustered(1000, 24, 40))
    np.save(files[1], clustered(1000, 60, 2))
    command = [sys.executable, "-c", COARSE, *files]
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    if platform.machine() in ("x86_64", "AMD64"):
        own |= {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}
    run = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["0"] * 4, run.stderr


@pytest.mark.usefixtures("index")
def test_many_keys_whose_last_block_is_not_full_equal_the_reference(clustered):
    fast, slow = both(data := clustered(70_000, 12, 5), 5, 6, queries=data[:20])
    assert np.array_equal(fast, slow)


def test_the_result_depends_on_neither_threads_nor_blocks_nor_slices(clustered, monkeypatch):
    data = clustered(300, 16, 20)
    settings = {"vocabulary_size": 20, "steps": 10, "seed": 3}
    whole = cpu.pair_rows(data, data, np.arange(300), threads=1, **settings)
    slices = [(0, 7), (7, 299), (299, 300)]
    parts = [cpu.pair_rows(data, data[a:b], np.arange(a, b), threads=None, **settings) for a, b in slices]
    assert np.array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(cpu, "_BLOCK", 1)  # one row per task
    assert np.array_equal(cpu.pair_rows(data, data, np.arange(300), threads=2, **settings), whole)


def test_an_interrupt_stops_before_the_next_block(clustered, monkeypatch):
    data = clustered(300, 16, 20)
    settings = {"vocabulary_size": 20, "steps": 20, "seed": 0, "threads": 2}
    walked = []

    class Bar(tqdm):
        def update(self, n=1):
            raise KeyboardInterrupt

    def walk(*args):
        walked.append(args)
        time.sleep(0.02)

    monkeypatch.setattr(progress, "tqdm", Bar)
    monkeypatch.setattr(cpu, "pair_queries", walk)
    monkeypatch.setattr(cpu, "_BLOCK", 1)
    with pytest.raises(KeyboardInterrupt):
        cpu.pair_rows(data, data, np.arange(300), **settings)
    assert len(walked) < 150


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("margin", [1e-3, 2.0])
def test_what_the_bounds_leave_open_is_decided_by_the_rules_integers(clustered, monkeypatch, margin):
    """Wider bounds leave more open. With the real ones that is one decision in a billion."""
    data = clustered(1000, 24, 40)
    monkeypatch.setattr(rule, "margin", lambda keys: margin)
    fast, slow = both(data, 40, 20, queries=data[:200])
    assert np.array_equal(fast, slow)


def test_duplicates_walk_apart(clustered):
    data = np.repeat(clustered(100, 12, 8), 2, axis=0)
    sources, slow = both(data, 8, 20)
    assert np.array_equal(sources, slow)
    assert np.count_nonzero((sources[::2] == sources[1::2]).all(axis=1)) < 5
