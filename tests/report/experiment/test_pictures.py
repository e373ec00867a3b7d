"""What the report step gathers of images."""

import numpy as np
import pyarrow as pa
import pytest
from pages import make_experiment

from pairflow.artifacts import Metadata, atomic, token_column, write_table
from pairflow.kinds.images.page.page import ImagesPage
from pairflow.plan import paths
from pairflow.report.kind_page import draw_between

TIMES = (0.75, 0.5, 0.25)
X0, X1 = np.zeros((3, 400), np.uint8), np.ones((3, 400), np.uint8)


def test_states_between_hold_data_with_probability_t():
    states = draw_between(X0, X1, 0, TIMES)
    assert states.shape == (3, 3, 400)
    assert states.dtype == np.uint8
    assert states.mean(axis=(0, 2)) == pytest.approx([0.75, 0.5, 0.25], abs=0.04)
    late, middle, early = np.moveaxis(states, 1, 0)
    assert ((late >= middle) & (middle >= early)).all()  # a position that left the data stays away


@pytest.fixture
def experiment():
    return make_experiment(data={"source": "digits"}, evaluations={"main": {"nfe": [1, 4]}})


@pytest.fixture
def folder(experiment, tmp_path):
    """Forty black and white images of 8 x 8 pixels, and pairs with inverted sources."""
    tokens = np.random.default_rng(0).integers(0, 2, (40, 64), dtype=np.uint8)
    facts = {"length": 64, "vocabulary_size": 2, "vocabulary": "v", "shape": [1, 8, 8]}
    _write(paths.data(tmp_path, "train.parquet"), Metadata(kind="tokens", **facts), tokens=tokens)
    for name in ("random", "pairflow"):
        metadata = Metadata(kind="pairs", parameters={"coupling": name}, **facts)
        _write(paths.pairs(tmp_path, 0, name), metadata, x0=1 - tokens, x1=tokens)
    return tmp_path, tokens


def _write(path, metadata: Metadata, **columns) -> None:
    with atomic(path) as [temporary]:
        table = pa.table({name: token_column(rows, 2) for name, rows in columns.items()})
        write_table(temporary, table, metadata)


def test_pictures_of_known_samples(experiment, folder):
    root, tokens = folder
    other = tokens[7].copy()
    other[:3] = 1 - other[:3]
    drawn = np.stack([tokens[5], other])
    found = ImagesPage().read(root, experiment, {"udlm": {1: tokens[:2], 4: drawn}, "random": {}})
    assert (found["images"]["udlm"][4][0] == 255 * tokens[5].reshape(8, 8, 1)).all()
    samples, nearest, distances = found["neighbours"]["udlm"]
    assert (samples == found["images"]["udlm"][4]).all()
    assert (nearest == 255 * tokens[[5, 7]].reshape(2, 8, 8, 1)).all()
    assert distances == pytest.approx([0, 255 * np.sqrt(3)])
    assert list(found["neighbours"]) == ["udlm"]


def test_pairs_are_of_the_same_data_points(experiment, folder):
    root, _ = folder
    found = ImagesPage().read(root, experiment, {})["ends"]
    assert list(found) == ["pairflow", "random"]
    for (x1, between, x0), other in zip(found.values(), reversed(list(found.values())), strict=True):
        assert x1.shape == x0.shape == (6, 8, 8, 1)
        assert between.shape == (6, 3, 8, 8, 1)
        assert (x0 == 255 - x1).all()
        assert (x1 == other[0]).all()
    assert found["random"][0].dtype == np.uint8
