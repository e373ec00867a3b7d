"""The models that come with pairflow: small files, a card, and samples of their own."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from rdkit import Chem

import pairflow
from pairflow import published
from pairflow.artifacts import read_object
from pairflow.errors import InputError
from pairflow.training.model import Model

NAMES = published.names()
FILES = {"README.md", "model.safetensors", "model.json", "sampling.json", "vocabulary.json", "known.parquet"}
FILES |= {"config.json"}


@pytest.mark.parametrize("name", NAMES)
def test_a_published_model_is_small_and_its_card_says_how_it_was_trained(name):
    folder = published.locate(name)
    norms = {"norms.parquet"} if name == "zinc250k" else set()
    assert {path.name for path in folder.iterdir()} == FILES | norms
    assert sum(path.stat().st_size for path in folder.iterdir()) < 20e6
    card, facts = (folder / "README.md").read_text(), read_object(folder / "model.json")
    assert f"{facts['training']['iterations']:,} iterations of {facts['training']['batch_size']} rows" in card
    assert f"{facts['parameters']:,} parameters" in card
    assert f"N = {facts['length']}, K = {facts['vocabulary_size']}" in card
    header = yaml.safe_load(card.split("---")[1])
    assert (header["license"], header["library_name"]) == ("apache-2.0", "pairflow")
    sizes = read_object(folder / "config.json")
    assert sizes["vocab_size"] == facts["vocabulary_size"]
    assert sizes["max_position_embeddings"] == facts["length"]
    for heading in ("Data", "Training", "What it makes", "Licence"):
        assert re.search(f"^## {heading}$", card, re.MULTILINE)


def test_python_takes_the_name_and_computes_in_single_precision():
    model = Model.load(published.locate("zinc250k"))
    assert {str(tensor.dtype) for tensor in model.network.state_dict().values()} == {"torch.float32"}
    rows = pairflow.load("zinc250k").sample(2, nfe=1)
    assert rows.shape == (2, model.length)
    assert np.array_equal(rows, pairflow.load(published.locate("zinc250k")).sample(2, nfe=1))


def test_its_samples_are_new_molecules(tmp_path, monkeypatch, done):
    monkeypatch.chdir(tmp_path)
    options = {"nfe": 4, "count": 20, "novel": True, "unique": True, "seed": 1}
    run = done("sample", model="zinc250k", out="new.smi", quiet=True, **options)
    assert len(set(Path("new.smi").read_text().splitlines())) == 20
    kept = re.search(r"\(([\d.]+)% valid; .*--novel kept ([\d.]+)%", run.stderr)
    assert kept, run.stderr
    assert min(map(float, kept.groups())) > 95


def test_the_model_of_qm9_makes_small_molecules_with_its_settings(tmp_path, monkeypatch, done):
    monkeypatch.chdir(tmp_path)
    run = done("sample", model="qm9", out="new.csv", count=20, unique=True, quiet=True, seed=1)
    assert "takes NFE 8" in run.stderr or "--nfe 8" in run.stderr
    assert float(re.search(r"\(([\d.]+)% valid", run.stderr)[1]) > 95
    table = pd.read_csv("new.csv")
    assert len(set(table.smiles)) == 20
    assert all(1 <= Chem.MolFromSmiles(text).GetNumHeavyAtoms() <= 15 for text in table.smiles)


def test_a_name_of_no_published_model_is_a_path_and_a_folder_of_its_name_is_refused(tmp_path):
    folder = published.FOLDER / "zinc250k"
    assert published.locate("zinc250k", tmp_path) == folder
    assert published.locate(folder) == folder
    assert published.name_of(folder) == "zinc250k"
    for other in ("./zinc250k", "models/zinc250k", "mine"):
        assert published.locate(other, tmp_path) == tmp_path / other
        assert published.name_of(tmp_path / other) is None
    (tmp_path / "zinc250k").mkdir()
    text = "zinc250k: a model of pairflow has this name, and so has a folder here; rename the folder"
    with pytest.raises(InputError, match=f"^{text}$"):
        published.locate("zinc250k", tmp_path)


def test_a_misspelt_name_is_answered_with_the_right_one(tmp_path, monkeypatch, step):
    monkeypatch.chdir(tmp_path)
    run = step("sample", model="zinc25k", nfe=1, count=1, out="x.smi")
    error = "pairflow sample: error: zinc25k/model.json: no such file (did you mean 'zinc250k'?)\n"
    assert (run.exit_code, run.stderr) == (2, error)
    run = step("sample", model="mine", nfe=1, count=1, out="x.smi")
    error = f"mine/model.json: no such file: with pairflow come {', '.join(NAMES)}\n"
    assert run.stderr == f"pairflow sample: error: {error}"


def test_they_are_listed_with_what_they_make(done):
    listed = done("models")
    names, cards = listed.stdout.splitlines()[::2], listed.stdout.splitlines()[1::2]
    assert [line.partition(" (")[0] for line in names] == NAMES
    assert [line.strip() for line in cards] == [str(published.FOLDER / name / "README.md") for name in NAMES]
    groups = names[NAMES.index("zinc250k")]
    assert ": A model of drug-like molecules, written in groups of atoms. Of its samples 63 %" in groups


@pytest.mark.parametrize(
    ("name", "side", "ink", "agree"), [("digits", 8, 0.323, 0.664), ("mnist_binary", 28, 0.132, 0.932)]
)
def test_models_of_images_draw_strokes_as_real_digits_have(
    tmp_path, monkeypatch, done, name, side, ink, agree
):
    """Shares of white pixels, and of equal neighbours: 0.56 and 0.77 of them for scattered pixels."""
    monkeypatch.chdir(tmp_path)
    done("sample", model=name, out="new.npy", count=40, quiet=True, seed=1)
    images = np.load("new.npy")[..., 0]
    assert images.shape == (40, side, side)
    assert set(np.unique(images)) == {0, 255}
    assert abs((images > 0).mean() - ink) < 0.04
    assert abs((images[:, :, 1:] == images[:, :, :-1]).mean() - agree) < 0.04


def test_the_model_of_shakespeare_writes_words(tmp_path, monkeypatch, done):
    monkeypatch.chdir(tmp_path)
    done("sample", model="shakespeare", nfe=8, out="new.txt", count=20, quiet=True, seed=1)
    lines = Path("new.txt").read_text().splitlines()
    assert len(lines) == 20
    words = " ".join(lines).split()
    common = {"the", "and", "to", "of", "i", "my", "a", "you", "that", "in", "is", "not", "me", "it", "your"}
    assert sum(word in common for word in words) / len(words) > 0.15
