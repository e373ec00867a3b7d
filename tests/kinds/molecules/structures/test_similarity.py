"""Similarities and the nearest training molecule against RDKit's own, and diversity by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from pairflow.artifacts import Metadata, write_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.measures.training_molecules import TrainingNeighbours
from pairflow.kinds.molecules.on_demand.delivery import training_smiles
from pairflow.kinds.molecules.structures.descriptors import tabulate
from pairflow.kinds.molecules.structures.similarity import BITS, Neighbours, internal_diversity

SMILES = [
    *("CCO", "CCN", "CCCO", "c1ccccc1", "Cc1ccccc1"),
    *("CC(=O)O", "CC(=O)Oc1ccccc1C(=O)O", "C", "O", "CC(C)O"),
]


def fingerprints(smiles):
    return tabulate(["fingerprint"], smiles)["fingerprint"]


def rdkit_fingerprints(smiles):
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=BITS)
    return [morgan.GetFingerprint(Chem.MolFromSmiles(text)) for text in smiles]


def test_nearest_is_the_largest_of_rdkits_bulk_similarities():
    known, asked = SMILES[1:], [*SMILES, "CC(=O)Nc1ccc(O)cc1", "[Na+].[Cl-]"]
    own = Neighbours(fingerprints(known)).similarity(fingerprints(asked))
    theirs = rdkit_fingerprints(known)
    expected = [max(DataStructs.BulkTanimotoSimilarity(each, theirs)) for each in rdkit_fingerprints(asked)]
    assert own.tolist() == expected
    assert own[1:10].tolist() == [1] * 9
    assert own[-1] < 1


@pytest.mark.parametrize("density", [0.002, 0.02, 0.4, 1.0])
def test_nearest_is_exact_on_random_bits(density):
    """Sizes from few bits to all of them: the bound by sizes leaves nothing out."""
    random = np.random.default_rng(0)
    bits = [random.random((count, BITS)) < density * random.random((count, 1)) for count in (200, 40)]
    known, asked = ([*map(bytes, np.packbits(each, axis=1, bitorder="little"))] for each in bits)
    common = bits[1].astype(int) @ bits[0].T
    union = bits[1].sum(1)[:, None] + bits[0].sum(1) - common
    expected = np.divide(common, union, out=np.zeros(common.shape), where=union > 0).max(axis=1)
    np.testing.assert_array_equal(Neighbours(known).similarity(asked), expected)


def test_diversity_agrees_with_rdkit():
    theirs = rdkit_fingerprints(SMILES)
    pairs = [DataStructs.TanimotoSimilarity(*pair) for pair in itertools.combinations(theirs, 2)]
    assert internal_diversity(fingerprints(SMILES)) == pytest.approx(1 - np.mean(pairs))


def test_too_few_have_no_diversity_and_no_molecule_has_no_neighbour():
    one = [bytes(256)]
    assert np.isnan([internal_diversity(one), internal_diversity(one[:0])]).all()
    assert Neighbours(one).similarity(one[:0]).shape == (0,)


TRAINED = ["CCO", "C[C@@H](N)C(=O)O", "C[C@H](N)C(=O)O", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "CCO"]
KNOWN = [Chem.CanonSmiles(text) for text in TRAINED]


@pytest.fixture
def neighbours(tmp_path):
    def read(**columns):
        split = ["train"] * len(KNOWN) + ["validation"]
        table = pd.DataFrame({"smiles": [*KNOWN, "Cc1ccccc1O"], "split": split, **columns})
        write_table(tmp_path / "smiles.parquet", table, Metadata(kind="smiles"))
        return TrainingNeighbours.read(tmp_path / "smiles.parquet")

    return read


def test_it_is_the_training_molecule_with_rdkits_largest_similarity(neighbours):
    names = ["ethanol", "D", "L", "phenol", "aspirin", "again", "cresol"]
    read, theirs = neighbours(name=names), rdkit_fingerprints(KNOWN)
    for smiles in ("Cc1ccccc1O", "COC(=O)c1ccccc1O", "CCCO"):
        similarities = DataStructs.BulkTanimotoSimilarity(*rdkit_fingerprints([smiles]), theirs)
        row = similarities.index(max(similarities))
        expected = {"nearest": KNOWN[row], "nearest_name": names[row], "similarity": similarities[row]}
        assert read.describe(smiles) == expected


def test_a_training_molecule_is_nearest_to_itself_and_not_to_its_mirror_image(neighbours):
    read = neighbours()
    for smiles in KNOWN:
        assert read.describe(smiles) == {"nearest": smiles, "nearest_name": "", "similarity": 1.0}
    assert read.describe("[Xe]") == {"nearest": "", "nearest_name": "", "similarity": 0.0}  # shares no bit


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
