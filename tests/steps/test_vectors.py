"""A continuous flow of two moons through every step, to the page, without Snakemake."""

import numpy as np
import pandas as pd
import pytest
from miniatures import experiment, root_of

import pairflow
from pairflow.artifacts import read_table, token_array
from pairflow.kinds.vectors.data_sets import two_moons

ROOT, EXPERIMENT = root_of("vectors"), experiment("vectors")


@pytest.fixture(scope="module")
def finished(finish):
    return finish("vectors")


def test_two_moons_are_half_circles_in_every_pair_of_coordinates():
    points = two_moons(4000, 6, 0.0, np.random.default_rng(0)).reshape(-1, 2)
    upper = np.isclose(np.hypot(*points.T), 1, atol=1e-5) & (points[:, 1] >= -1e-6)
    lower = np.isclose(np.hypot(*(points - [1, 0.5]).T), 1, atol=1e-5) & (points[:, 1] <= 0.5 + 1e-6)
    assert (upper | lower).all()
    assert abs(upper.mean() - 0.5) < 0.02
    noisy = two_moons(4000, 6, 0.05, np.random.default_rng(0)).reshape(-1, 2)
    assert abs((noisy - points).std() - 0.05) < 0.002


def test_pairs_are_those_of_the_function_and_their_diagnosis_is_of_them(finished):
    train, _ = read_table(finished / ROOT / "data/train.parquet", "vectors")
    data = token_array(train["values"])
    table, metadata = read_table(finished / ROOT / "seed0/pairs/pairflow.parquet", "vector pairs")
    x0, x1 = (token_array(table[name]) for name in ("x0", "x1"))
    expected = pairflow.pair_continuous(data, steps=20, seed=0, device="cpu", progress=False)
    np.testing.assert_array_equal(x0, expected.x0)
    np.testing.assert_array_equal(x1, expected.x1)
    np.testing.assert_array_equal(table["target"].to_numpy(), expected.target)
    assert (metadata.length, metadata.parameters["flow"]) == (4, "continuous")
    rows = pd.read_parquet(finished / ROOT / "metrics.parquet")
    rows = rows[rows.evaluation == "coupling"].set_index(["method", "metric"]).value
    assert rows["pairflow", "squared_distance"] == pytest.approx(((x1 - x0) ** 2).sum(axis=1).mean())
    assert rows["pairflow", "squared_distance"] < rows["pairflow", "squared_distance_independent"]
    assert rows["pairflow", "reached"] == len(set(expected.target)) / 300
    assert ("pairflow+rf", "reached") not in rows


def test_shards_give_the_pairs_of_the_whole_pairing(finished):
    whole, gathered = (finished / ROOT / path for path in ("seed0/pairs/pairflow", "by_hand/gathered"))
    assert gathered.with_suffix(".parquet").read_bytes() == whole.with_suffix(".parquet").read_bytes()


def test_every_metric_is_there_with_its_floor(finished):
    rows = pd.read_parquet(finished / ROOT / "metrics.parquet")
    sampled = rows[rows.evaluation == "main"]
    distances, paths = {"chamfer", "chamfer_all", "w2"}, {"path_energy", "straightness"}
    for method in EXPERIMENT.methods:
        assert set(sampled[sampled.method == method].metric) == distances | paths
    assert set(sampled[sampled.method == "data"].metric) == distances
    values = sampled.set_index(["method", "nfe", "trial", "metric"]).value
    assert values["condot", 1, 0, "straightness"] == pytest.approx(0, abs=1e-6)  # a single step is straight
    assert values["condot", 2, 0, "straightness"] > 0
    assert (sampled[sampled.metric == "w2"].value > 0).all()


def test_the_page_shows_points_pairs_and_both_baselines(finished):
    page = (finished / ROOT / "report.html").read_text()
    for text in ("Chamfer distance", "held-out data", "pairflow (sources paired", "condot (", "Dimensions d"):
        assert text in page
    assert page.count("Points of condot, ") == 2
    assert "pairs of pairflow+rf: lines from the sources" in page
    assert "greedy tail at the end" not in page


def test_images_of_a_continuous_flow_have_grey_levels_and_paths(finish):
    folder = finish("images") / root_of("images")
    pairs, _ = read_table(folder / "seed0/pairs/pairflow.parquet", "vector pairs")
    x1 = token_array(pairs["x1"])
    assert (x1.min(), x1.max()) == (-1, 1)
    drawn, metadata = read_table(folder / "seed0/samples/condot/main/nfe2.parquet", "samples")
    tokens, energy = token_array(drawn["tokens"]), drawn["energy"].to_numpy()
    assert tokens.max() < metadata.vocabulary_size
    first = tokens[drawn["trial"].to_numpy() == 0]
    np.testing.assert_array_equal(
        pairflow.load(folder / "seed0/models/condot", device="cpu").sample(30, nfe=2), first
    )
    rows = pd.read_parquet(folder / "metrics.parquet")
    values = rows[rows.evaluation == "main"].set_index(["method", "nfe", "trial", "metric"]).value
    assert values["condot", 2, 0, "path_energy"] == pytest.approx(energy[:30].mean())
    assert values["condot", 1, 1, "straightness"] == pytest.approx(0, abs=1e-4)
    assert values["condot", 2, 0, "straightness"] > 0
    assert "Paths from source to sample" in (folder / "report.html").read_text()


def test_own_vectors_are_split_and_bad_ones_refused(step, refused):
    np.save("mine.npy", np.random.default_rng(0).normal(size=(30, 3)))
    outputs = {name: f"{name}.parquet" for name in ("train", "validation")}

    def run(**settings):
        values = {"source": "vectors", "file": "mine.npy"} | settings
        return step("preprocess", "vectors", settings=values, vocabulary="vocabulary.json", **outputs)

    assert run().exit_code == 0
    parts = [token_array(read_table(name, "vectors")[0]["values"]) for name in outputs.values()]
    assert [len(part) for part in parts] == [27, 3]
    both = np.concatenate(parts)
    np.testing.assert_array_equal(np.sort(both[:, 0]), np.sort(np.load("mine.npy")[:, 0].astype(np.float32)))
    refused(run(training_rows=40), "preprocess", "mine.npy: expected at least 43 vectors")
    np.save("mine.npy", np.array([[1.0, np.nan], [0.0, 1.0]]))
    refused(run(), "preprocess", "row 0, position 1: expected a finite number")
