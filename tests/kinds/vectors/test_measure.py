"""The floor of vectors: several draws of held-out ones, as many as a trial has samples."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairflow.artifacts import Metadata
from pairflow.kinds.vectors import measure as vectors
from pairflow.kinds.vectors.measure import draw_floor
from pairflow.metrics.measured import RealRows

MEASURED = ("chamfer", "chamfer_all", "w2")


def real(held_out: int) -> RealRows:
    random = np.random.default_rng(0)
    train, others = random.normal(size=(300, 2)), random.normal(size=(held_out, 2))
    return RealRows(train, others, Path("train.parquet"), Metadata(kind="vectors"), {})


def test_the_floor_has_ten_draws_of_as_many_vectors_as_samples():
    rows = pd.DataFrame(draw_floor(real(80), samples=40, seed=0))
    for name in MEASURED:
        own = rows[rows.metric == name]
        assert own.trial.tolist() == list(range(vectors.DRAWS))
        assert set(own.samples) == {40}
        assert own.value.nunique() == vectors.DRAWS


def test_a_draw_of_all_vectors_is_made_once_but_fewer_of_them_are_drawn_again(monkeypatch):
    monkeypatch.setattr(vectors, "TRANSPORTED", 20)
    rows = pd.DataFrame(draw_floor(real(40), samples=50, seed=0))
    measured = rows[rows.metric.isin(MEASURED)].groupby("metric")
    assert measured.value.count().to_dict() == {"chamfer": 1, "chamfer_all": 1, "w2": vectors.DRAWS}
    assert measured.samples.first().to_dict() == {"chamfer": 40, "chamfer_all": 40, "w2": 20}


@pytest.mark.parametrize("seed", range(3))
def test_half_of_the_data_are_about_the_floor_and_not_all_above_it(monkeypatch, seed):
    """More vectors of the distribution of the data are within four deviations, on either side."""
    monkeypatch.setattr(vectors, "TRANSPORTED", 40)
    data = real(300)
    floor = pd.DataFrame(draw_floor(data, samples=40, seed=seed))
    w2 = floor[floor.metric == "w2"].value
    fresh = np.random.default_rng(seed + 1).normal(size=(40, 2))
    [value] = [row["value"] for row in vectors.compare(fresh, data) if row["metric"] == "w2"]
    assert abs(value - w2.mean()) < 4 * w2.std()
