"""Metrics of distinct molecules, by hand."""

import numpy as np
import pytest

from pairflow.kinds.molecules import chemistry, descriptors
from pairflow.kinds.molecules.similarity import Neighbours

TRAINED = ["CCO", "CC(=O)O", "c1ccccc1", "Cc1ccccc1", "C1CC1C"]
# Distinct molecules: ethanol, toluene, phenol, cyclopropanol, cyclobutane, pyridine.
DRAWN = [
    *("OCC", "CCO", "C1=CC=CC=C1C", "Oc1ccccc1", "C1CC1O", "C1CCC1", "c1ccncc1"),
    *("C1CC", "", "CC(C)(C)(C)C"),
]


@pytest.fixture(scope="module")
def training():
    fingerprints, scaffolds = descriptors.structures(TRAINED)
    return chemistry.TrainingMolecules(
        Neighbours(fingerprints), frozenset(scaffolds), descriptors.properties(TRAINED)
    )


def describe(strings, training):
    return chemistry.DescribedMolecules.from_smiles(list(chemistry.distinct(strings).values()), training)


def test_molecules_are_distinct_by_canonical_smiles():
    actual = chemistry.distinct(DRAWN)
    assert len(actual) == 6
    assert actual["CCO"] == "CCO"  # the first of its spellings in sorted order
    assert actual["Cc1ccccc1"] == "C1=CC=CC=C1C"


def test_by_hand(training):
    values = chemistry.compare(describe(DRAWN, training), training)
    assert values["scaffolds"] == 4  # benzene (twice), cyclopropane, cyclobutane, pyridine; ethanol has none
    assert values["novel_scaffolds"] == 2  # cyclobutane, pyridine
    assert 2 / 6 < values["nn_similarity"] < 1  # ethanol and toluene are known
    assert 0 < values["internal_diversity"] < 1


def test_the_training_set_itself_is_at_no_distance(training):
    values = chemistry.compare(describe(TRAINED, training), training)
    assert values["nn_similarity"] == 1
    assert values["novel_scaffolds"] == 0
    for name in descriptors.PROPERTIES:
        assert values[f"{name}_wasserstein"] == 0


def test_the_distance_of_a_property_is_in_its_unit(training):
    """One molecule against five: the mean distance of its weight from theirs."""
    distance = chemistry.compare(describe(["CCCCO"], training), training)["weight_wasserstein"]
    assert distance == pytest.approx(np.abs(74.123 - training.properties[:, 3]).mean(), abs=1e-3)


def test_of_nothing_valid_counts_are_zero_and_means_are_undefined(training):
    values = chemistry.compare(describe(["", "C1CC"], training), training)
    assert (values["scaffolds"], values["novel_scaffolds"]) == (0, 0)
    assert np.isnan([value for name, value in values.items() if "scaffolds" not in name]).all()
    single = chemistry.compare(describe(["CCO"], training), training)
    assert single["nn_similarity"] == 1
    assert np.isnan(single["internal_diversity"])


def test_connected_samples_are_valid_and_in_one_piece():
    assert chemistry.count_connected(["CCO", "CCO", "C.C", "C1.C1", "C1CC", ""]) == 3


def test_histograms_count_every_molecule_once(training):
    actual = describe([*DRAWN, "CCCCCCCCCCCC", "O"], training)
    counts = chemistry.histograms(actual.properties, training.properties)
    assert list(counts.columns) == ["property", "low", "high", "samples", "training"]
    for name, part in counts.groupby("property"):
        assert part["samples"].sum() == 8, name
        assert part["training"].sum() == len(TRAINED)
        assert part["training"].iloc[[0, -1]].tolist() == [0, 0]  # beyond the training molecules' range
        assert part["low"].iloc[0] == -np.inf
        assert part["high"].iloc[-1] == np.inf
        assert (part["low"].iloc[1:].to_numpy() == part["high"].iloc[:-1].to_numpy()).all()
    weight = counts[counts["property"] == "weight"]
    assert weight["samples"].iloc[[0, -1]].tolist() == [1, 2]  # water; toluene's heavier: phenol and dodecane


def test_training_molecules_that_are_all_alike_have_bins_too():
    same = np.ones((3, 4))
    counts = chemistry.histograms(np.full((2, 4), 5.0), same)
    assert counts["training"].sum() == 12
    assert counts.loc[counts["high"] == np.inf, "samples"].tolist() == [2] * 4


@pytest.mark.parametrize(
    ("smiles", "properties", "useful", "strict"),
    [
        ("CCO", [0.5, 0.5, 5.0, 0.5], False, False),  # known
        ("CCCO", [0.5, 0.5, 5.0, 0.5], True, True),
        ("CCCO", [0.05, 0.95, 9.5, 0.05], True, True),  # at the bounds
        ("CCCO", [0.049, 0.5, 5.0, 0.5], False, False),
        ("CCCO", [0.5, 0.5, 9.51, 0.5], False, False),
        ("CCCO", [0.5, 0.96, 5.0, 0.5], True, False),
        ("CCCO", [0.5, 0.5, 5.0, 0.04], True, False),
        ("CCCO", [np.nan, 0.5, 5.0, 0.5], False, False),
        ("C1CCCCCCC1", [0.5, 0.5, 5.0, 0.5], True, True),  # a ring of eight
        ("C1CCCCCCCC1O", [0.5, 0.5, 5.0, 0.5], False, False),
        ("c1ccc2ccccc2c1", [0.5, 0.5, 5.0, 0.5], True, True),  # two rings of six
    ],
)
def test_useful_molecules_by_hand(training, smiles, properties, useful, strict):
    """The middle 90 % of 101 even values from 0 to 1, and from 0 to 10, are 0.05 to 0.95 and 0.5 to 9.5."""
    values = np.linspace(0, 1, 101)
    of_library = chemistry.TrainingMolecules(
        training.neighbours, training.scaffolds, np.column_stack([values, values, 10 * values, values])
    )
    drawn = chemistry.are_useful({smiles: smiles}, np.array([properties]), of_library, {"CCO"})
    assert {name: flags.tolist() for name, flags in drawn.items()} == {
        "useful": [useful],
        "useful_strict": [strict],
    }


def test_none_of_no_molecules_is_useful(training):
    drawn = chemistry.are_useful({}, np.empty((0, 4)), training, set())
    assert drawn["useful_strict"].tolist() == []
