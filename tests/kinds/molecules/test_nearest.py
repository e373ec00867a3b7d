"""The nearest training molecule: RDKit's own answer, and itself for a training molecule."""

import pandas as pd
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from pairflow.artifacts import Metadata, write_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.on_demand import TrainingNeighbours, training_smiles

TRAINED = ["CCO", "C[C@@H](N)C(=O)O", "C[C@H](N)C(=O)O", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "CCO"]
SMILES = [Chem.CanonSmiles(text) for text in TRAINED]


@pytest.fixture
def neighbours(tmp_path):
    def read(**columns):
        split = ["train"] * len(SMILES) + ["validation"]
        table = pd.DataFrame({"smiles": [*SMILES, "Cc1ccccc1O"], "split": split, **columns})
        write_table(tmp_path / "smiles.parquet", table, Metadata(kind="smiles"))
        return TrainingNeighbours(tmp_path / "smiles.parquet")

    return read


def test_it_is_the_training_molecule_with_rdkits_largest_similarity(neighbours):
    names = ["ethanol", "D", "L", "phenol", "aspirin", "again", "cresol"]
    read = neighbours(name=names)
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [morgan.GetFingerprint(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
    for smiles in ("Cc1ccccc1O", "COC(=O)c1ccccc1O", "CCCO"):
        own = morgan.GetFingerprint(Chem.MolFromSmiles(smiles))
        similarities = DataStructs.BulkTanimotoSimilarity(own, prints)
        row = similarities.index(max(similarities))
        assert read.describe(smiles) == {
            "nearest": SMILES[row],
            "nearest_name": names[row],
            "similarity": similarities[row],
        }


def test_a_training_molecule_is_nearest_to_itself_and_not_to_its_mirror_image(neighbours):
    read = neighbours()
    for smiles in SMILES:
        assert read.describe(smiles) == {"nearest": smiles, "nearest_name": "", "similarity": 1.0}


def test_nothing_is_near_to_a_molecule_that_shares_no_bit(neighbours):
    assert neighbours().describe("[Xe]") == {"nearest": "", "nearest_name": "", "similarity": 0.0}


def test_the_training_molecules_are_beside_the_model_or_in_its_experiment(tmp_path, monkeypatch):
    model, data = tmp_path / "results/mine/seed0/models/pairflow", tmp_path / "results/mine/data"
    model.mkdir(parents=True)
    data.mkdir()
    message = rf"^{model}/smiles\.parquet: no such file; --nearest needs .*: copy data/smiles\.parquet of the"
    with pytest.raises(InputError, match=message):
        training_smiles(model)
    (data / "smiles.parquet").touch()
    monkeypatch.chdir(model)
    assert training_smiles(model.relative_to(model)) == data / "smiles.parquet"
    (model / "smiles.parquet").touch()
    assert training_smiles(model) == model / "smiles.parquet"
