"""`pairflow.PairDataset`: the pairs of `pairflow.pair`, or given ones, for a loader of torch."""

import numpy as np
import pandas as pd
import pytest
import torch

import pairflow
from pairflow.errors import InputError

ROWS = np.random.default_rng(0).integers(5, size=(30, 4), dtype=np.uint8)


def test_the_pairs_are_those_of_pair():
    sources = pairflow.pair(ROWS, vocabulary_size=5, steps=7, subsets=2, seed=3, progress=False)
    how = {"vocabulary_size": 5, "steps": 7, "subsets": 2, "seed": 3, "progress": False}
    for data in (ROWS, ROWS.tolist(), torch.from_numpy(ROWS), pd.Series(ROWS.tolist()), pd.DataFrame(ROWS)):
        pairs = pairflow.PairDataset(data, **how)
        assert len(pairs) == 30
        for m, (x0, x1) in enumerate(pairs):
            assert x0.dtype == x1.dtype == torch.int64
            np.testing.assert_array_equal(x0, sources[m])
            np.testing.assert_array_equal(x1, ROWS[m])
    [(x0, x1)] = torch.utils.data.DataLoader(pairs, batch_size=30)
    assert x0.shape == x1.shape == (30, 4)


def test_given_sources_stay():
    pairs = pairflow.PairDataset(ROWS, vocabulary_size=5, sources=ROWS[::-1])
    np.testing.assert_array_equal(pairs.columns["x0"], ROWS[::-1])
    np.testing.assert_array_equal(pairs.columns["x1"], ROWS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": [[5]]}, r"^data: row 0, position 0: expected a token in 0\.\.4, found 5$"),
        ({"sources": ROWS[:3]}, r"^sources, data: expected one shape .*, found \(3, 4\) and \(30, 4\)$"),
        ({"vocabulary_size": None}, "^vocabulary_size: "),
    ],
)
def test_bad_values_are_one_line(changed, message):
    with pytest.raises(InputError, match=message):
        pairflow.PairDataset(**{"data": ROWS, "vocabulary_size": 5, **changed})


def test_columns_become_a_data_set_of_datasets(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    pairs = pairflow.PairDataset(ROWS, vocabulary_size=5, sources=ROWS[::-1])
    table = datasets.Dataset.from_dict(pairs.columns)
    assert table.column_names == ["x0", "x1"]
    assert table[2] == {"x0": ROWS[-3].tolist(), "x1": ROWS[2].tolist()}
