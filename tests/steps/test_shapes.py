"""Images through the steps: their shape goes from token rows to samples; rows without one are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from pairflow.artifacts import read_table, token_array

UNET = {"name": "unet", "channels": 8, "multipliers": [1, 2], "blocks": 1}
SHAPE, N, K = [1, 4, 6], 24, 3


@pytest.fixture(autouse=True)
def images(token_file):
    """Images in the working directory (train, validation) and the same as rows without a shape (bare)."""
    rows = np.random.default_rng(0).integers(0, K, (20, N))
    for name, shape in (("train", SHAPE), ("validation", SHAPE), ("bare", None)):
        token_file(f"{name}.parquet", rows, K, shape=shape)


def test_a_shape_goes_from_token_rows_through_pairs_and_distillations_to_samples(done, train, teach, distill):
    done("pair", tokens="train.parquet", out="random.parquet", coupling="random", quiet=True)
    assert train("random", "random.parquet", UNET, iterations=2).exit_code == 0
    assert teach("random+redi", count=8, steps=2).exit_code == 0
    assert [read_table(f"{name}.parquet", "pairs")[1].shape for name in ("random", "pairs")] == [SHAPE, SHAPE]
    for how, data in (({"name": "redi"}, "pairs"), ({"name": "dcd", "teacher_every": 1}, "train")):
        method = f"random+{how['name']}"
        assert distill(method, {**how, "iterations": 2}, f"{data}.parquet").exit_code == 0
        assert json.loads(Path(method, "model.json").read_text())["shape"] == SHAPE
    sampling = {"samples": 5, "trials": 1, "nfe": 2}
    done("sample", model=method, out="samples.parquet", settings=sampling, quiet=True)
    table, metadata = read_table("samples.parquet", "samples")
    assert metadata.shape == SHAPE
    assert token_array(table["tokens"]).shape == (5, N)
    assert token_array(table["tokens"]).max() < K


def test_a_unet_on_rows_without_a_shape_is_refused(train, refused):
    text = f"network unet needs images; the data holds rows of {N} tokens without a shape"
    refused(train("udlm", "bare.parquet", UNET), "train", text)
