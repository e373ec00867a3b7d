"""Fine-tuning through the steps: data in a parent's symbols, and trainings that start from its weights."""

import json
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import yaml
from miniatures import data_files

from pairflow.artifacts import read_metadata, read_table, token_array

NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16}
OLD = [f"{'C' * n}{end}" for n in range(1, 9) for end in ("", "N", "O")]
NEW = [f"{'C' * n}{end}" for n in range(1, 9) for end in ("Cl", "O", "Br")]


@pytest.fixture
def prepare(step):
    """Preprocess molecules into the folder of a name; with the vocabulary of a parent if there is one."""

    def run(name, molecules, parent=None, **settings):
        Path(name).mkdir()
        Path(f"{name}.smi").write_text("\n".join(molecules))
        values = {"source": f"{name}.smi", "length": 14, "validation_fraction": 0.2} | settings
        files = data_files(name) | ({"parent_vocabulary": f"{parent}/vocabulary.json"} if parent else {})
        return step("preprocess", "molecules", settings=values, quiet=True, **files)

    return run


@pytest.fixture
def tune(train):
    """Train udlm on the rows of a folder, into another folder, perhaps from a parent."""

    def run(data, model, parent=None, method="udlm", **options):
        files = {name: f"{data}/{name}.parquet" for name in ("validation", "known")}
        files |= {"vocabulary": f"{data}/vocabulary.json"} | ({"from": parent} if parent else {})
        return train(method, f"{data}/train.parquet", files=files, folder=model, **options)

    return run


def test_new_symbols_follow_the_parents_and_its_model_is_where_a_training_starts(prepare, tune, done):
    assert prepare("old", OLD).exit_code == 0
    assert tune("old", "parent").exit_code == 0
    assert prepare("new", NEW, parent="parent").exit_code == 0
    old, new = (json.loads(Path(name, "vocabulary.json").read_text())["tokens"] for name in ("old", "new"))
    assert new == [*old, "Br", "Cl"]
    assert "parent_vocabulary" in read_metadata(Path("new/train.parquet")).inputs
    tuned = tune("new", "tuned", parent="parent")
    assert tuned.exit_code == 0, tuned.stderr
    said = "starts from the udlm in parent; it did not know 2 of the symbols: Br Cl\n"
    assert f"pairflow train: {said}" in tuned.stderr
    parent, child = (json.loads(Path(name, "model.json").read_text()) for name in ("parent", "tuned"))
    assert child["inputs"]["parent"] == parent["weights"]
    done("sample", model="tuned", settings={"count": 3, "nfe": 2, "raw": True}, out="x.smi", quiet=True)


def test_a_training_that_changes_nothing_draws_the_parents_samples(prepare, tune, done):
    """One iteration at a learning rate of 1e-12, on other molecules of the same symbols."""
    assert prepare("old", OLD).exit_code == 0
    assert tune("old", "parent", iterations=30).exit_code == 0
    assert prepare("less", OLD[:20], parent="parent").exit_code == 0
    assert tune("less", "tuned", parent="parent", iterations=1, learning_rate=1e-12).exit_code == 0
    assert tune("less", "untuned", iterations=1, learning_rate=1e-12).exit_code == 0
    rows = {}
    for name in ("parent", "tuned", "untuned"):
        settings = {"nfe": 2, "samples": 50, "trials": 1}
        done("sample", model=name, settings=settings, out=f"{name}.parquet", quiet=True)
        rows[name] = token_array(read_table(Path(f"{name}.parquet"))[0]["tokens"])
    np.testing.assert_array_equal(rows["tuned"], rows["parent"])
    assert (rows["untuned"] != rows["parent"]).any()


def test_what_no_training_can_start_from_is_refused_in_one_line(prepare, tune, refused):
    assert prepare("old", OLD).exit_code == 0
    assert tune("old", "parent").exit_code == 0
    wide = tune("old", "x", parent="parent", network=NETWORK | {"width": 32})
    refused(wide, "train", "parent: cannot start from this model: its network width is 16, expected 32")
    shutil.copytree("parent", "bare")
    Path("bare/vocabulary.json").unlink()
    refused(prepare("more", NEW, parent="bare"), "preprocess", "bare/vocabulary.json: no such file")
    written = prepare("other", NEW, parent="parent", representation="selfies")
    refused(written, "preprocess", "representation: selfies, but the model to start from has smiles")
    assert not Path("x").exists()


@pytest.fixture
def add(step, miniature):
    """`pairflow new` on a library of alkanes with halogens, from a parent."""

    def run(parent, **settings):
        Path("workflow_config.yaml").write_text(yaml.safe_dump({"experiments": {"other": miniature()}}))
        ends = ("O", "N", "F", "Cl", "Br", "S", "I")
        lines = [f"{'C' * n}{end}" for n in range(2, 10) for end in ends]
        lines += [f"{'C' * n}C({one}){two}" for n in range(1, 6) for one, two in combinations(ends, 2)]
        Path("mine.smi").write_text("\n".join(lines))
        options = {"from": parent, "no_estimate": True, "device": "cpu", "quiet": True, **settings}
        return step("new", "mine.smi", config="workflow_config.yaml", **options)

    return run


def test_new_writes_an_experiment_in_the_form_of_the_parent(prepare, tune, add):
    assert prepare("old", OLD).exit_code == 0
    assert tune("old", "models/parent").exit_code == 0
    run = add("models/parent")
    assert run.exit_code == 0, run.stderr
    experiment = yaml.safe_load(Path("experiments/mine.yaml").read_text())["experiments"]["mine"]
    assert experiment["from"] == "models/parent"
    assert experiment["network"] == NETWORK | {"dropout": 0.0}
    assert (experiment["data"]["length"], experiment["data"]["representation"]) == (14, "smiles")
    assert experiment["training"]["learning_rate"] == 5e-4


def test_new_refuses_a_parent_that_the_molecules_do_not_fit(prepare, tune, add, refused):
    assert prepare("old", OLD, length=9, max_too_long_share=0.5).exit_code == 0
    assert tune("old", "parent").exit_code == 0
    text = "of the molecules are longer than the 9 tokens of the model to start from"
    refused(add("parent"), "new", text)
    other = add("zinc250k", representation="smiles")
    refused(other, "new", "--representation: smiles, but the model to start from has groups")
    assert not Path("experiments/mine.yaml").exists()
