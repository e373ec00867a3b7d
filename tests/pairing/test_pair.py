import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import pairflow
from pairflow import rng
from pairflow.pairing import local_consensus, oracle, rule
from pairflow.pairing.pair import subset_rows


def pair(tokens, **settings):
    return pairflow.pair(tokens, **{"vocabulary_size": 8, "progress": False, **settings})


def test_every_backend_walks_as_algorithm_1_says(clustered):
    """The walk, repeated from the local consensus w_i step by step: its end states."""
    data = clustered(60, 9, 5)
    data[:, 4] = 3  # a column that never varies is walked apart
    rows, steps, seed = np.array([3, 17, 40, 59]), 6, 11
    z = data[rows].astype(np.int64)
    for step in range(steps, 0, -1):
        consensus = local_consensus(z, data, step / steps, vocabulary_size=5)
        uniforms, words = rng.draws(seed, rows, step, 9)
        moved = uniforms < rule.step_rates(steps, 5)[step - 1] * consensus
        others = rng.choose(words, np.uint64(4)).astype(np.int64)
        z = np.where(moved, others + (others >= z), z)
    settings = {"vocabulary_size": 5, "steps": steps, "seed": seed}
    for backend in ("cpu", "reference"):
        assert np.array_equal(z, pair(data, **settings, backend=backend)[rows])


def test_of_long_random_rows_only_the_own_weight_counts():
    """The source is then independent of the row."""
    tokens = np.random.default_rng(0).integers(0, 60, (30, 500), np.uint8)
    distance = (pair(tokens, vocabulary_size=60, steps=20, seed=0) != tokens).sum(axis=1).mean()
    assert distance == pytest.approx(500 * 59 / 60, rel=0.005)


def test_the_bytes_of_a_pairing_never_change():
    tokens = np.arange(20).reshape(5, 4) % 6
    sources = pair(tokens, vocabulary_size=6, steps=3, seed=1)
    assert sources.tolist() == [[1, 1, 1, 4], [4, 3, 1, 3], [0, 4, 4, 5], [4, 4, 4, 3], [3, 0, 2, 1]]


def test_subsets_are_a_partition_of_equal_parts():
    parts = subset_rows(10, 3, 0)
    assert sorted(map(len, parts)) == [3, 3, 4]
    assert sorted(np.concatenate(parts)) == list(range(10))
    assert any(not np.array_equal(a, b) for a, b in zip(parts, subset_rows(10, 3, 1), strict=True))


def test_a_pairing_in_subsets_is_the_pairing_of_its_parts(clustered):
    tokens = clustered(203, 12, 8)
    sources = pair(tokens, subsets=4, seed=5)
    for rows in subset_rows(203, 4, 5):
        part = tokens[rows]
        alone = oracle.pair_rows(part, part, rows, vocabulary_size=8, steps=20, seed=5)
        assert np.array_equal(sources[rows], alone)
    assert not np.array_equal(sources, pair(tokens, seed=5))


def test_automatic_subsets_have_at_most_as_many_rows_as_asked(clustered):
    tokens = clustered(203, 12, 8)
    for keys, subsets in ((203, 1), (202, 2), (51, 4), (50, 5)):
        assert np.array_equal(pair(tokens, subsets="auto", keys=keys), pair(tokens, subsets=subsets))
        assert max(map(len, subset_rows(203, subsets, 0))) <= keys
    assert np.array_equal(pair(tokens, subsets="auto"), pair(tokens))  # 250,000 rows by default


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize(("dtype", "size"), [(np.uint8, 300), (np.int8, 200), (np.int16, 40_000)])
def test_tokens_of_a_small_dtype_give_the_sources_of_a_large_one(dtype, size, backend):
    """K is larger than what occurs: a vocabulary with symbols that these rows do not use."""
    tokens = np.random.default_rng(0).integers(0, 100, (40, 6))
    rule = {"vocabulary_size": size, "steps": 5, "backend": backend, "progress": False}
    wide, small = pairflow.pair(tokens, **rule), pairflow.pair(tokens.astype(dtype), **rule)
    assert np.array_equal(wide, small)
    assert wide.max() > np.iinfo(dtype).max
    assert small.dtype == np.uint16 if size != 200 else small.dtype == np.uint8


def test_input_is_left_alone_and_rows_may_be_lists_or_a_column_of_lists(clustered):
    """Of pandas, of Arrow, and of Python's integers."""
    tokens = clustered(40, 6, 8)
    lists, before, sources = [list(row) for row in tokens], tokens.copy(), pair(tokens)
    assert np.array_equal(tokens, before)
    column = pd.Series(lists)
    flat = pa.array(tokens.ravel())
    arrow = [pa.array(lists), pa.FixedSizeListArray.from_arrays(flat, 6)]
    arrow += [pa.chunked_array([pa.array(lists, pa.large_list(flat.type))])]
    for rows in (tokens.tolist(), np.asfortranarray(tokens), column, tokens.astype(object), *arrow):
        assert np.array_equal(pair(rows), sources)


GOOD = [[0, 1, 2], [3, 4, 5]]
HIDDEN = np.ma.masked_array(GOOD, [[False] * 3, [False, True, False]])


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.array, torch.tensor])
def test_integers_of_any_library_are_numbers(kind):
    numbers = {"vocabulary_size": 8, "steps": 2, "seed": 3, "subsets": 1, "threads": 1}
    whole = np.ma.masked_array(GOOD)  # hides nothing
    for tokens, rows in ((GOOD, (0, 2)), (whole, (kind(0), kind(2)))):
        given = {key: value if tokens is GOOD else kind(value) for key, value in numbers.items()}
        assert np.array_equal(pair(tokens, rows=rows, **given), pair(GOOD, **numbers))


def test_a_tensor_that_numpy_cannot_read_is_named():
    with pytest.raises(pairflow.InputError, match=r"^tokens: cannot be read as a NumPy array: .*grad"):
        pair(torch.zeros(2, 2, requires_grad=True))


@pytest.mark.parametrize("subsets", [1, 4])
@pytest.mark.parametrize("shards", [2, 7])
def test_shards_are_slices_of_the_whole(shards, subsets):
    tokens = np.random.default_rng(0).integers(0, 6, (101, 9), dtype=np.uint8)
    rule = {"vocabulary_size": 6, "steps": 8, "subsets": subsets, "seed": 5, "progress": False}
    edges = [101 * k // shards for k in range(shards + 1)]
    parts = [pairflow.pair(tokens, rows=edge, **rule) for edge in itertools.pairwise(edges)]
    assert np.array_equal(np.concatenate(parts), pairflow.pair(tokens, **rule))


def test_a_tensor_gives_a_tensor_of_the_same_sources(clustered):
    tokens = clustered(50, 12, 8)
    for tensor in (torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(tokens.astype(np.uint8))):
        sources = pair(tensor)
        assert isinstance(sources, torch.Tensor)
        assert (sources.dtype, sources.device) == (torch.int64, tensor.device)
        np.testing.assert_array_equal(sources.numpy(), pair(tokens))
    np.testing.assert_array_equal(pair(tensor, rows=(3, 5)).numpy(), pair(tokens)[3:5])


WHOLE, STEPS = "expected an integer", "steps: expected an integer in 1..4294967295"
REFUSED = [
    ([[0.5, 1.0]], {}, "tokens: expected an integer dtype, found float64"),
    ([0, 1, 2], {}, "tokens: expected a 2-D array (rows, positions), found 1 dimension(s); cut a"),
    ("rows.npy", {}, "tokens: expected a 2-D array (rows, positions), found 0 dimension(s); read a file by"),
    ({"input_ids": GOOD}, {}, "tokens: expected an array; pass one of 'input_ids' of the mapping"),
    ([[0, 1], [2]], {}, "tokens: expected rows of one length, found 2 in row 0 and 1 in row 1"),
    ([[]], {}, "tokens: expected at least one row and one position, found shape (1, 0)"),
    ([[0, 1], [2, -1]], {}, "tokens: row 1, position 1: expected a token in 0..7, found -1"),
    ([[0, 1], [8, 2]], {}, "tokens: row 1, position 0: expected a token in 0..7, found 8"),
    (np.zeros((1, 16385), int), {}, "tokens: expected at most 16384 positions per row, found 16385"),
    (list(HIDDEN), {}, "tokens: expected an array without masked values, found a masked array with some"),
    (GOOD, {"vocabulary_size": 8.0}, f"vocabulary_size: {WHOLE} in 2..65536, found 8.0"),
    (GOOD, {"steps": 0}, f"{STEPS}, found 0"),
    (GOOD, {"steps": np.True_}, f"{STEPS}, found np.True_"),
    (GOOD, {"rows": (False, True)}, "rows: expected two integers (first, last), found (False, True)"),
    (GOOD, {"rows": (1, 3)}, "rows: expected 0 <= first < last <= 2, found"),
    (GOOD, {"subsets": 3}, f"subsets (of 2 rows): {WHOLE} in 1..2, found 3"),
    (GOOD, {"seed": -1}, f"seed: {WHOLE} in 0..18446744073709551615, found -1"),
    (GOOD, {"threads": 0}, f"threads: {WHOLE} in 1..4096, found 0"),
    (GOOD, {"backend": "cuda"}, "backend: expected one of auto, cpu, gpu, reference; found 'cuda'"),
]


@pytest.mark.parametrize(("tokens", "settings", "message"), REFUSED)
def test_bad_input(tokens, settings, message):
    with pytest.raises(pairflow.InputError, match=f"^{re.escape(message)}"):
        pair(tokens, **settings)
