"""Images through the steps: their shape goes from token rows to samples; rows without one are refused."""

import importlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from pairflow.artifacts import Metadata, read_table, token_array, token_column, write_table

NETWORK = {"name": "unet", "channels": 8, "multipliers": [1, 2], "blocks": 1}
RUN = {"batch_size": 8, "iterations": 2, "learning_rate": 1e-2}
SHAPE, N, K = [1, 4, 6], 24, 3


@pytest.fixture
def step(tmp_path, monkeypatch):
    """Run a step in this process, in a folder with images (train, validation) and the same as bare rows."""
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"tokens": token_column(np.random.default_rng(0).integers(0, K, (20, N)), K)})
    shared = {"kind": "tokens", "length": N, "vocabulary_size": K, "vocabulary": "v"}
    for name, shape in (("train", SHAPE), ("validation", SHAPE), ("bare", None)):
        write_table(tmp_path / f"{name}.parquet", rows, Metadata(**shared, shape=shape))

    def run(name, **options):
        flags = [str(item) for key, value in options.items() for item in (f"--{key}", value)]
        main = importlib.import_module(f"pairflow.steps.{name}").main
        return CliRunner().invoke(main, ["--quiet", *flags])

    return run


def outputs(folder):
    parts = {"model": "model.safetensors", "description": "model.json", "log": "log.parquet"}
    files = {key: f"{folder}/{name}" for key, name in parts.items()}
    return {**files, "validation": "validation.parquet", "threads": 1}


def train(step, method, data):
    settings = json.dumps({"method": method, "network": NETWORK, "training": RUN})
    return step("train", settings=settings, data=data, **outputs(method))


def done(result):
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("method", ["mdlm", "udlm", "random"])
def test_a_shape_goes_from_token_rows_to_samples(step, method):
    data = "train.parquet"
    if method == "random":
        done(step("pair", tokens=data, out="pairs.parquet", settings='{"coupling": "random"}', threads=1))
        data = "pairs.parquet"
        assert read_table(data)[1].shape == SHAPE
    done(train(step, method, data))
    sampling = json.dumps({"samples": 5, "trials": 1, "nfe": 2})
    done(step("sample", model=method, out="samples.parquet", settings=sampling, threads=1))
    table, metadata = read_table("samples.parquet", "samples")
    assert metadata.shape == SHAPE
    assert token_array(table["tokens"]).shape == (5, N)
    assert token_array(table["tokens"]).max() < K


def test_a_shape_goes_through_a_teacher_and_distillations(step):
    done(train(step, "udlm", "train.parquet"))
    pairs = json.dumps({"method": "udlm+redi", "count": 8, "steps": 2})
    done(step("teach", model="udlm", out="taught.parquet", settings=pairs, threads=1))
    assert read_table("taught.parquet", "pairs")[1].shape == SHAPE
    for how, data in (
        ({"name": "redi"}, "taught.parquet"),
        ({"name": "dcd", "teacher_every": 1}, "train.parquet"),
    ):
        method = f"udlm+{how['name']}"
        settings = json.dumps({"method": method, "distillation": {**RUN, **how}})
        done(step("distill", settings=settings, parent="udlm", data=data, **outputs(method)))
        assert json.loads(Path(method, "model.json").read_text())["shape"] == SHAPE


def test_a_unet_on_rows_without_a_shape_is_refused(step):
    refused = train(step, "udlm", "bare.parquet")
    assert refused.exit_code == 2
    expected = f"network unet needs images; the data holds rows of {N} tokens without a shape"
    assert refused.stderr.strip().endswith(expected)
