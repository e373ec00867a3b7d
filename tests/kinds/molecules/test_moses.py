"""Measures beside held-out molecules, and filters, by hand."""

from collections import Counter

import numpy as np
import pytest

from pairflow.kinds.molecules import chemistry, descriptors
from pairflow.kinds.molecules.similarity import Neighbours, internal_diversity, root_mean_square_diversity

TRAINED = ["CCO", "c1ccccc1CC"]
ANISOLE, AMIDE, PYRIDINE = "COc1ccccc1", "CC(=O)NCC", "CCc1ccncc1"
HELD_OUT = [ANISOLE, AMIDE, PYRIDINE]


@pytest.fixture(scope="module")
def training():
    fingerprints, scaffolds = descriptors.structures(TRAINED)
    return chemistry.TrainingMolecules(Neighbours(fingerprints), frozenset(scaffolds), np.zeros((1, 4)))


@pytest.fixture(scope="module")
def measure(training):
    """The metrics of molecules beside HELD_OUT."""
    held_out = chemistry.describe_held_out(HELD_OUT, training)

    def run(smiles):
        described = chemistry.DescribedMolecules.from_smiles(smiles, training)
        rows = np.arange(len(smiles))
        return chemistry.compare_as_moses(described, chemistry.Pieces.from_smiles(smiles), rows, held_out)

    return run


def test_the_angle_between_counts_leaves_the_empty_name_out():
    assert chemistry.cosine(Counter("aab"), Counter("aab")) == pytest.approx(1)
    assert chemistry.cosine(Counter("ab"), Counter("ac")) == pytest.approx(0.5)
    assert chemistry.cosine(Counter("a"), Counter("b")) == 0
    assert chemistry.cosine(Counter({"a": 3, "": 5}), Counter({"a": 1, "": 1, "b": 1})) == pytest.approx(
        0.5**0.5
    )
    assert np.isnan(chemistry.cosine(Counter({"": 2}), Counter("a")))


def test_molecules_are_cut_at_brics_bonds():
    fragments = chemistry.Pieces.from_smiles([ANISOLE, AMIDE, "CCCC"]).fragments
    assert [sorted(pieces) for pieces in fragments] == [
        ["[16*]c1ccccc1", "[3*]OC"],
        ["[1*]C(C)=O", "[4*]CC", "[5*]N[5*]"],
        ["CCCC"],
    ]


def test_the_held_out_molecules_are_like_themselves(measure):
    values = measure(HELD_OUT)
    for kind in ("similarity", "fragments", "scaffolds"):
        assert values[f"held_out_{kind}"] == pytest.approx(1)
    assert values["unseen_scaffolds"] == pytest.approx(0.5**0.5)  # benzene and pyridine beside pyridine


def test_only_scaffolds_that_no_training_molecule_has_are_unseen(measure):
    values = measure([PYRIDINE])
    assert values["unseen_similarity"] == 1
    assert values["unseen_scaffolds"] == pytest.approx(1)
    assert values["held_out_scaffolds"] == pytest.approx(0.5**0.5)  # of benzene, pyridine
    assert measure(["c1ccccc1"])["unseen_scaffolds"] == 0


def test_reactive_groups_do_not_pass_the_filters(measure):
    """An azo compound and an acyl chloride beside paracetamol and ethanol."""
    smiles = ["c1ccccc1N=Nc1ccccc1", "CC(=O)Cl", "CC(=O)Nc1ccc(O)cc1", "CCO"]
    assert chemistry.Pieces.from_smiles(smiles).passes.tolist() == [False, False, True, True]
    assert measure(smiles)["filters"] == 0.5


def test_what_rdkit_cannot_read_has_no_pieces_and_does_not_pass(training):
    pieces = chemistry.Pieces.from_smiles(["CC(C)(C)(C)C", "CCO"])
    assert [*pieces.fragments] == [[], ["CCO"]]
    assert pieces.passes.tolist() == [False, True]
    [held_out] = chemistry.describe_held_out(["CC(C)(C)(C)C", "CCO"], training).values()
    assert held_out.fragments == {"CCO": 1}


def test_without_molecules_nothing_is_defined(measure):
    assert all(np.isnan(value) for value in measure([]).values())


def test_the_root_of_mean_squares_by_hand():
    """Sets {0}, {0, 1} and {2}: similarities 1/2, 0 and 0."""
    rows = np.zeros((3, 32), np.uint64)
    rows[:, 0] = [1, 3, 4]
    assert internal_diversity(rows) == pytest.approx(1 - 1 / 6)
    assert root_mean_square_diversity(rows) == pytest.approx(1 - (0.25 / 3) ** 0.5)
    assert np.isnan(root_mean_square_diversity(rows[:1]))
