"""Steps as a user runs them: artifacts that fit one another, one line and exit code 2 for each mistake."""

import functools
import json
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from miniatures import data_files

import pairflow
from pairflow.artifacts import digest, provenance_path, read_provenance, read_table, token_array
from pairflow.kinds.molecules.data import reading
from pairflow.limits import KEYS
from pairflow.training.model import Model

MOLECULES = ["CCO", "OCC", "c1ccccc1", "CC(=O)O", "C#N", "CCN", "C1CC1", "CC=O"] * 4
MOLECULES += ["O=C=O", "CO", "CN", "CF"] * 4


@pytest.fixture
def preprocess(step):
    """Run the preprocess step on rows of a CSV file, or on another source."""

    def run(rows=(), folder="data", source="raw.csv", **options):
        if rows:
            Path(source).write_text("\n".join(["smiles", *rows]) + "\n")
        options = data_files(folder) | (options or {"length": 16})
        return step("preprocess", "molecules", source=source, quiet=True, **options)

    return run


@pytest.fixture
def train(train):
    return functools.partial(train, files={"validation": "data/validation.parquet"})


@pytest.fixture
def model(preprocess, step, train):
    """The working directory with data/, pairs.parquet and the model pairflow/, made by the steps."""
    for run in (
        preprocess(MOLECULES),
        step("pair", tokens="data/train.parquet", out="pairs.parquet", quiet=True),
        train("pairflow", "pairs.parquet"),
    ):
        assert run.exit_code == 0


def test_the_chain_by_hand_gives_fitting_artifacts(model, done):
    pairs, metadata = read_table("pairs.parquet", "pairs")
    settings = {"coupling": "pairflow", "steps": 20, "subsets": 1, "keys": KEYS, "seed": 0}
    assert metadata.parameters == settings | {"flow": "discrete"}
    assert metadata.inputs == {"tokens": digest("data/train.parquet")}
    train_rows, _ = read_table("data/train.parquet", "tokens")
    np.testing.assert_array_equal(token_array(pairs["x1"]), token_array(train_rows["tokens"]))
    assert json.loads(Path("pairflow/model.json").read_text())["prediction"] == "leave_one_out"
    done("sample", model="pairflow", out="samples.parquet", quiet=True, nfe=2, samples=20, trials=3)
    done("describe_molecules", smiles="data/smiles.parquet", out="molecules.parquet", quiet=True)
    files = {name: f"{name}.parquet" for name in ("samples", "molecules", "properties")}
    files |= {"vocabulary": "data/vocabulary.json", "smiles": "data/smiles.parquet"}
    done("evaluate", "molecules", out="metrics.parquet", quiet=True, **files)
    rows = pd.read_parquet("metrics.parquet")
    assert rows["method"].unique() == "pairflow"
    assert set(map(tuple, rows.groupby("metric")["trial"].apply(list))) == {(0, 1, 2)}
    counted = rows[rows["metric"].str.fullmatch("valid|invalid_.*")].groupby("trial")["value"].sum()
    assert counted.tolist() == [20, 20, 20]
    assert json.loads(provenance_path(Path("samples.parquet")).read_text())["device"] in ("cpu", "cuda")


def test_a_misspelt_column_is_one_line_and_leaves_nothing(preprocess, refused):
    run = preprocess(MOLECULES, length=16, column="smile")
    refused(run, "preprocess", "no column 'smile' (did you mean 'smiles'?); found")
    assert not list(Path().glob("data/*"))


def test_the_seconds_of_sampling_leave_out_loading_the_model(model, done, monkeypatch):
    load = Model.load

    def slowly(*args, **options):
        time.sleep(2)
        return load(*args, **options)

    monkeypatch.setattr(Model, "load", slowly)
    done("sample", model="pairflow", nfe=1, out="samples.parquet", samples=4)
    assert read_provenance(Path("samples.parquet"))["seconds"] < 2


def test_training_refuses_what_does_not_fit_the_method(model, train, step, refused):
    for method, options, text in (
        ("udlm", {}, "holds pairs, expected tokens"),
        ("pairflow", {"learning_rate": 7}, "learning_rate: input should be less than or equal to 1, found 7"),
    ):
        refused(train(method, "pairs.parquet", **options), "train", text)
    refused(step("train", network="{"), "train", "not JSON")


def test_a_gpu_that_is_not_there_is_named(step, refused):
    run = step("sample", model="absent", nfe=1, out="samples.parquet", device="cuda")
    there = torch.cuda.is_available()
    refused(run, "sample", "no such file" if there else "--device cuda: torch sees no CUDA device")


@pytest.mark.promise("signal")
def test_reading_molecules_resumes_from_what_was_read(preprocess, monkeypatch):
    """With small chunks: what was read is not read again, and the bytes are the same."""
    rows = ["C" * (1 + k % 30) + "O" * (k // 30) + "x" * (k % 50 == 49) for k in range(400)] + ["CC", "C"]
    rules = {"length": 48, "drop_duplicates": True, "min_count": 2}
    monkeypatch.setattr(reading, "_CHUNK", 10)
    monkeypatch.setattr(reading, "_SAVED", 4)
    plain, read = reading._read, []

    def record(settings, count, chunk):
        if len(read) == 22:
            read.append(None)
            raise KeyboardInterrupt
        read.append(chunk[0][0])
        return plain(settings, count, chunk)

    assert preprocess(rows, "whole", **rules).exit_code == 0
    monkeypatch.setattr(reading, "_read", record)
    assert preprocess((), "again", threads=1, **rules).exit_code == 128 + signal.SIGINT
    assert read[:-1] == [*range(0, 220, 10)]
    assert not Path("again/train.parquet").exists()
    [folder] = Path("again").glob(".train.parquet.resume/preprocess-*")
    assert len([*folder.glob("*.json")]) == 5 + 1  # of four chunks each, and the time that they took
    (folder / "spent.provenance.json").write_text('{"seconds": 5000, "device_seconds": 7000}')
    assert preprocess((), "again", threads=1, **rules).exit_code == 0
    assert read[23:] == [*range(200, 402, 10)]
    for name in ("train", "validation", "smiles", "known", "rejected"):
        assert Path(f"again/{name}.parquet").read_bytes() == Path(f"whole/{name}.parquet").read_bytes()
    assert not [*Path("again").glob(".train.parquet.resume")]
    assert read_provenance(Path("again/train.parquet"))["seconds"] > 5000


@pytest.fixture
def rows():
    """A .npy file of 60 rows, and the options that pair it."""
    np.save("rows.npy", np.random.default_rng(0).integers(0, 5, (60, 6)))
    return {"tokens": "rows.npy", "vocabulary_size": 5, "quiet": True}


def test_pairing_reads_npy_and_says_what_it_needs(step, done, rows, refused):
    run = step("pair", tokens="rows.npy", out="pairs.parquet")
    refused(run, "pair", "rows.npy: --vocabulary-size is needed with a .npy file")
    for options, text in (
        ({"vocabulary_size": 4}, "expected a token in 0..3, found 4"),
        ({"steps": 0}, "steps: input should be greater than or equal to 1, found 0"),
        ({"subsets": 10_000}, "subsets (of 60 rows): expected an integer in 1..60, found 10000"),
        ({"stepz": 3}, "No such option '--stepz'. (Did you mean"),
    ):
        refused(step("pair", out="pairs.parquet", **(rows | options)), "pair", text)
    text = "Got unexpected extra argument (rows.npy). Put quotes around a name with spaces"
    refused(step("pair", "rows.npy", **rows, out="pairs.parquet"), "pair", text)
    assert not Path("pairs.parquet").exists()
    for coupling in ("pairflow", "random"):
        done("pair", **rows, coupling=coupling, out=f"{coupling}.parquet")
        table, _ = read_table(f"{coupling}.parquet", "pairs")
        np.testing.assert_array_equal(token_array(table["x1"]), np.load("rows.npy"))
        assert 0 <= token_array(table["x0"]).min() <= token_array(table["x0"]).max() < 5


@pytest.mark.parametrize("subsets", [{}, {"subsets": 4}, {"subsets": "auto", "keys": 17}])
def test_shards_join_to_the_bytes_of_the_whole(step, done, rows, refused, subsets):
    def pair(out, **options):
        return step("pair", **rows, **subsets, **options, out=out)

    for shard in (2, 3, 1):
        assert pair(f"{shard}.parquet", shard=f"{shard}/3").exit_code == 0
    assert pair("whole.parquet").exit_code == 0
    shards = [Path(f"{shard}.parquet") for shard in (3, 1, 2)]
    done("gather", *shards, out="joined.parquet")
    assert Path("joined.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    table, _ = read_table(Path("joined.parquet"), "pairs")
    tokens, rule = np.load("rows.npy"), {"vocabulary_size": 5, "progress": False, **subsets}
    np.testing.assert_array_equal(token_array(table["x1"]), tokens)
    np.testing.assert_array_equal(token_array(table["x0"]), pairflow.pair(tokens, **rule))
    spent = [read_provenance(path)["device_seconds"] for path in shards]
    assert read_provenance(Path("joined.parquet"))["device_seconds"] >= sum(spent) > 0
    refused(step("gather", *shards[:2], out="x.parquet"), "gather", "no shard begins at row 20")
    for shard, row in zip(shards, (40, 0, 20), strict=True):
        run = step("gather", *shards, shard, out="x.parquet")
        refused(run, "gather", f"{shard}: row {row} is in another shard as well; name each shard once")
    assert pair("other.parquet", steps=7, shard="2/3").exit_code == 0
    run = step("gather", *shards[:2], "other.parquet", out="x.parquet")
    refused(run, "gather", "other.parquet: a shard of another pairing than")
    refused(pair("x.parquet", shard="4/3"), "pair", "expected k/P with 1 <= k <= P, found '4/3'")
    refused(pair("x.parquet", shard="4/61"), "pair", "--shard: 61 shards are too many for 60 rows; choose")
    assert not Path("x.parquet").exists()


def test_an_output_of_other_parameters_is_not_overwritten(step, rows, refused):
    def pair(**options):
        return step("pair", out="pairs.parquet", **(rows | options))

    for _ in range(2):
        assert pair(steps=4).exit_code == 0
    before = Path("pairs.parquet").read_bytes()
    text = "pairs.parquet: exists, with steps 4 instead of 5; remove it or choose another --out"
    refused(pair(steps=5), "pair", text)
    run = pair(steps=4, vocabulary_size=6)
    refused(run, "pair", "pairs.parquet: exists, with K 5 instead of 6")
    assert Path("pairs.parquet").read_bytes() == before


def test_sources_are_written_as_an_array(done, rows):
    done("pair", **rows, out="pairs.parquet")
    done("pair", **rows, out="x0.npy")
    sources = np.load("x0.npy")
    assert sources.dtype == np.uint8
    assert np.array_equal(sources, token_array(read_table("pairs.parquet")[0]["x0"]))
    assert read_provenance(Path("x0.npy"))["device"] == "cpu"


@pytest.mark.parametrize(
    ("out", "options", "text"),
    [
        ("x0.npz", {}, "x0.npz: unknown suffix '.npz'; expected .parquet or .npy"),
        ("x0.npy", {"shard": "1/2"}, "x0.npy: a shard is written as .parquet, which `pairflow gather` joins"),
        ("there.npy", {}, "there.npy: already exists; remove it or choose another --out"),
    ],
)
def test_pairs_are_written_only_where_they_fit(step, rows, refused, out, options, text):
    Path("there.npy").write_text("mine")
    refused(step("pair", **rows, out=out, **options), "pair", text)
    assert Path("there.npy").read_text() == "mine"
