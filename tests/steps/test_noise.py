"""Noise by frequency through the commands: pairs, a model, its samples and scores, and what refuses it."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import pairflow
from pairflow.artifacts import read_table, token_array
from pairflow.config import ScoreSettings
from pairflow.generate.score import score_row
from pairflow.pairing.cpu.numbers import tokens_by_frequency
from pairflow.pairing.prior import frequencies

ROWS = np.random.default_rng(0).choice(5, (60, 6), p=[0.6, 0.2, 0.1, 0.1, 0.0])
PI = frequencies(ROWS, 5)


@pytest.fixture
def learn(token_file, train):
    """Train a method with noise by frequency, on token rows or pairs in the working directory."""
    token_file("train.parquet", ROWS, 5)
    token_file("validation.parquet", ROWS[:20], 5)
    return functools.partial(train, noise="frequencies")


def test_a_model_keeps_the_frequencies_of_its_rows_wherever_it_goes(learn, teach, done):
    assert learn("udlm").exit_code == 0
    assert json.loads(Path("udlm/model.json").read_text())["noise"] == "frequencies"
    pairflow.load("udlm", device="cpu").save("udlm.zip")
    loaded = pairflow.load("udlm.zip", device="cpu")
    assert np.array_equal(loaded.model.frequencies.numpy(), PI)
    x0 = loaded.model.corruption.source((4000, 6), torch.Generator().manual_seed(0))
    assert np.abs((x0 == 0).double().mean(0).numpy() - PI[:, 0]).max() < 0.04
    assert np.array_equal(loaded.sample(20, nfe=3), loaded.sample(20, nfe=3))
    assert score_row(loaded.model, ROWS[0], ScoreSettings(draws=16))["nll_bound"] > 0
    assert teach().exit_code == 0
    drawn = token_array(read_table("pairs.parquet", "pairs")[0]["x0"])
    assert (drawn == 0).mean() > 0.45
    done("diagnose", pairs="pairs.parquet", method="udlm+redi", out="coupling.parquet")
    values = read_table("coupling.parquet", "metrics")[0].to_pandas().set_index("metric").value
    assert values["hamming_independent"] < 4.5 < 6 * 4 / 5  # of uniform noise


def test_pairs_of_another_noise_are_refused_and_so_is_dcd(learn, distill, step, done, refused):
    pair = {"coupling": "random", "noise": "frequencies", "steps": None}
    done("pair", settings=pair, tokens="train.parquet", out="pairs.parquet", quiet=True)
    table, metadata = read_table("pairs.parquet", "pairs")
    assert np.array_equal(token_array(table["x0"]), tokens_by_frequency(0, np.arange(60), PI))
    assert metadata.parameters["noise"] == "frequencies"
    assert learn("random", "pairs.parquet").exit_code == 0
    options = {"tokens": "train.parquet", "noise": "frequencies", "threads": 1, "quiet": True}
    done("pair", out="closed.parquet", **options)
    closed, metadata = read_table("closed.parquet", "pairs")
    expected = pairflow.pair(ROWS, vocabulary_size=5, noise="frequencies", progress=False)
    assert np.array_equal(token_array(closed["x0"]), expected)
    assert metadata.parameters["noise"] == "frequencies"
    assert learn("pairflow", "closed.parquet").exit_code == 0
    text = "pairs.parquet: pairs of the noise frequencies, but the model's is uniform"
    refused(learn("random", "pairs.parquet", noise="uniform"), "train", text)
    run = distill("random+dcd", {"name": "dcd", "teacher_every": 2}, "train.parquet")
    refused(run, "distill", "+dcd: needs uniform noise")


def test_transport_leads_sources_by_frequency(learn, done):
    options = {"tokens": "train.parquet", "tau": 0.3, "quiet": True}
    done("potentials", out="pairs.parquet", noise="frequencies", **options)
    done("potentials", out="uniform.parquet", **options)
    tables = (read_table(f"{name}.parquet", "pairs") for name in ("pairs", "uniform"))
    by_frequency, uniform = (metadata.parameters["distance"] for _, metadata in tables)
    assert by_frequency < uniform - 1
    assert learn("sdot", "pairs.parquet").exit_code == 0
    coupling = pairflow.transport(ROWS, vocabulary_size=5, tau=0.3, noise="frequencies", progress=False)
    assert coupling.balance.distance == by_frequency
