"""Metrics of distinct molecules, beside training and held-out ones, by hand."""

from collections import Counter

import numpy as np
import pytest

from pairflow.kinds.molecules.measures import chemistry
from pairflow.kinds.molecules.measures.chemistry import TrainingMolecules
from pairflow.kinds.molecules.structures.descriptors import PROPERTIES, STRUCTURES, tabulate
from pairflow.kinds.molecules.structures.similarity import Neighbours

TRAINED = ["CCO", "CC(=O)O", "c1ccccc1", "Cc1ccccc1", "C1CC1C"]
# Distinct molecules: ethanol, toluene, phenol, cyclopropanol, cyclobutane, pyridine.
DRAWN = [
    *("OCC", "CCO", "C1=CC=CC=C1C", "Oc1ccccc1", "C1CC1O", "C1CCC1", "c1ccncc1"),
    *("C1CC", "", "CC(C)(C)(C)C"),
]


def trained_on(smiles):
    table = tabulate(PROPERTIES + STRUCTURES, smiles)
    neighbours, scaffolds = Neighbours(table["fingerprint"]), Counter(table["scaffold"])
    return TrainingMolecules(neighbours, scaffolds, chemistry.properties_of(table))


@pytest.fixture(scope="module")
def training():
    return trained_on(TRAINED)


def test_molecules_are_distinct_by_canonical_smiles():
    actual = chemistry.distinct(DRAWN)
    assert len(actual) == 6
    assert actual["CCO"] == "CCO"  # the first of its spellings in sorted order
    assert actual["Cc1ccccc1"] == "C1=CC=CC=C1C"


def test_by_hand(training):
    values = chemistry.compare(chemistry.describe_samples(DRAWN, training), training)
    assert values["scaffolds"] == 4  # benzene (twice), cyclopropane, cyclobutane, pyridine; ethanol has none
    assert values["novel_scaffolds"] == 2  # cyclobutane, pyridine
    assert values["common_scaffolds"] == 3  # toluene, phenol, cyclopropanol
    assert values["common_frameworks"] == 4  # pyridine has that of benzene
    assert 2 / 6 < values["nn_similarity"] < 1  # ethanol and toluene are known
    assert 0 < values["internal_diversity"] < 1


def test_the_training_set_is_at_no_distance_and_one_molecule_at_the_mean_distance_of_a_property(training):
    values = chemistry.compare(chemistry.describe_samples(TRAINED, training), training)
    assert (values["nn_similarity"], values["novel_scaffolds"]) == (1, 0)
    assert [values[f"{name}_wasserstein"] for name in PROPERTIES] == [0] * 4
    butanol = chemistry.compare(chemistry.describe_samples(["CCCCO"], training), training)
    expected = np.abs(74.123 - training.properties[:, 3]).mean()
    assert butanol["weight_wasserstein"] == pytest.approx(expected, abs=1e-3)


def test_of_nothing_valid_counts_are_zero_and_means_are_undefined(training):
    nothing = chemistry.describe_samples(["", "C1CC"], training)
    values = chemistry.compare(nothing, training)
    assert (values["scaffolds"], values["novel_scaffolds"]) == (0, 0)
    means = [value for name, value in values.items() if not name.endswith(("scaffolds", "frameworks"))]
    assert np.isnan(means).all()
    single = chemistry.compare(chemistry.describe_samples(["CCO"], training), training)
    assert single["nn_similarity"] == 1
    assert np.isnan(single["internal_diversity"])


def test_common_cores_are_the_ten_most_common_scaffolds_and_their_frameworks():
    trained = Counter({"": 99, "C1CC1": 2, **{f"C1{'C' * n}C1": 3 for n in range(2, 12)}})
    found = chemistry.count_cores(["C1CC1", "", "C1CCC1", "C1CCC1"], trained)
    assert found == {"common_scaffolds": 2, "common_frameworks": 2}
    assert chemistry.framework("O=C1NC(=O)c2ccccc21") == "C1CCC2CCCC2C1"
    five = "c1ccc(P(c2ccccc2)(c2ccccc2)(c2ccccc2)c2ccccc2)cc1"
    assert [chemistry.framework(text) for text in (five, "c1cccc1")] == [five, "c1cccc1"]


def test_histograms_count_every_molecule_once(training):
    actual = chemistry.describe_samples([*DRAWN, "CCCCCCCCCCCC", "O"], training)
    counts = chemistry.histograms(chemistry.properties_of(actual), training.properties)
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
    counts = chemistry.histograms(np.full((2, 4), 5.0), np.ones((3, 4)))  # training molecules are all alike
    assert counts["training"].sum() == 12
    assert counts.loc[counts["high"] == np.inf, "samples"].tolist() == [2] * 4
