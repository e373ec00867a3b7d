"""The CPU engine equals the reference on random small data of many shapes.

By default 300 cases run. To run 2,000 of them, which takes a minute:

    PAIRFLOW_PROPERTY_CASES=2000 python -m pytest tests/pairing/cpu/test_property.py

A failure names the numbers of its cases, which `make_case` makes.
"""

import os

import numpy as np
import pytest

from pairflow.pairing import oracle, rule
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.cpu import keys
from pairflow.pairing.pair import pair

CASES = int(os.environ.get("PAIRFLOW_PROPERTY_CASES", "300"))
PARTS = 8  # tests, so that several processes share the cases
WORK = 0.025  # seconds of the reference per case
STEP_SECONDS = 8e-5  # of the reference, for a query and step
TOKEN_SECONDS = 2e-9  # and for each token compared


def make_case(number):
    """The arguments of a pairing, and under which conditions the engine does it; the same for a number."""
    rng = np.random.default_rng([17, number])
    length = int(rng.choice([1, 2, 64, 65, power(rng, 1, 40), power(rng, 2, 130), power(rng, 100, 900)]))
    most = max(2, min(20_000, 500_000 // length))
    few, many, blocks = power(rng, 1, 60), power(rng, 60, most), power(rng, 1000, most)
    count = int(rng.choice([1, 512, 513, few, many, blocks, blocks]))  # the engine's blocks have 512 keys
    size = int(rng.choice([2, 2, power(rng, 3, 60), 256, 257, power(rng, 60, 65_536), 65_536]))
    steps = power(rng, 1, 200)
    data = rows_of(rng, min(count, most), length, size)
    walking = 1 + int(WORK / (steps * (STEP_SECONDS + TOKEN_SECONDS * data.size)))
    return {
        "data": data,
        "queries": queries_of(rng, data, min(walking, 2 * len(data)), size),
        "numbers": rng.integers(0, rng.choice([10, 2**63]), walking, dtype=np.uint64)[: 2 * len(data)],
        "vocabulary_size": size,
        "steps": steps,
        "seed": int(rng.integers(0, 2**64, dtype=np.uint64)),
        "sparse": float(rng.choice([0, keys.SPARSE, 1e6])),  # bitmaps, what the engine takes, or lists
        "margin": float(rng.choice([0, 0, 1e-3, 2])),  # more of it leaves more to the rule's integers
        "threads": int(rng.integers(1, 3)),
        "subsets": int(rng.integers(2, 5)) if rng.random() < 0.1 and len(data) >= 4 else 1,
    }


def power(rng, low, high):
    """An integer whose logarithm is uniform."""
    return round(low * (max(high, low) / low) ** rng.random())


def rows_of(rng, keys, length, size):
    """Rows around few or many centres, with ties, duplicates, columns that hardly vary, or rare symbols."""
    used = power(rng, 1, size) if rng.random() < 0.5 else size
    symbols = rng.permutation(size)[:used]
    shape = (keys, length)
    if rng.random() < 0.3:  # a few symbols are frequent
        draws = symbols[np.minimum(rng.zipf(1.5, shape), used) - 1]
    else:
        draws = symbols[rng.integers(0, used, shape)]
    centres = draws[rng.integers(0, power(rng, 1, keys), keys)]
    noise = rng.choice([0, 0.02, 0.1, 0.3, 1])
    data = np.where(rng.random(shape) < noise, draws, centres)
    if rng.random() < 0.2:  # every row at one distance from all others
        data[:] = symbols[0]
        data[np.arange(keys), np.arange(keys) % length] = symbols[-1]
    if rng.random() < 0.3:
        constant = rng.random(length) < rng.choice([0.2, 0.9, 1])
        data[:, constant] = data[0, constant]
    if rng.random() < 0.2:
        data = data[rng.integers(0, keys, keys)]  # duplicates
    kinds = (np.int64, np.int32, np.min_scalar_type(size - 1))
    return data.astype(kinds[rng.integers(0, 3)])


def queries_of(rng, data, count, size):
    """Rows of the data, as they are or with other symbols in places, or rows that have nothing of them."""
    rows = data[rng.integers(0, len(data), count)]
    foreign = rng.random(rows.shape) < rng.choice([0, 0, 0, 0.2, 1])
    return np.where(foreign, rng.integers(0, size, rows.shape), rows).astype(data.dtype)


def is_equal(case):
    """Whether the engine gives the sources of the reference."""
    names = ("vocabulary_size", "steps", "seed")
    settings = {name: case[name] for name in names}
    if case["subsets"] > 1:
        rows = (0, len(case["queries"]) % len(case["data"]) + 1)
        settings |= {"subsets": case["subsets"], "rows": rows, "progress": False}
        fast, slow = (pair(case["data"], **settings, backend=name) for name in ("cpu", "reference"))
        return np.array_equal(fast, slow)
    given = (case["data"], case["queries"], case["numbers"])
    fast = cpu.pair_rows(*given, **settings, threads=case["threads"])
    return np.array_equal(fast, oracle.pair_rows(*given, **settings))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_data_give_the_bytes_of_the_reference(part, monkeypatch):
    margin, different = rule.margin, []
    for number in range(part, CASES, PARTS):
        case = make_case(number)
        monkeypatch.setattr(rule, "margin", lambda keys, more=case["margin"]: margin(keys) + more)
        monkeypatch.setattr(keys, "SPARSE", case["sparse"])
        if not is_equal(case):
            different.append(number)
    assert not different
