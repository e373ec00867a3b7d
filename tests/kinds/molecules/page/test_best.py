"""The core of a library, which the report looks for among the samples."""

import pytest

from pairflow.kinds.molecules.page.best import find_core


@pytest.mark.parametrize(
    ("trained", "samples", "core"),
    [
        (  # an anilide: all three have it, half of the samples
            ["CC(=O)Nc1ccccc1", "CCC(=O)Nc1ccccc1", "CC(=O)Nc1ccc(C)cc1"],
            ["CC(=O)Nc1ccccc1C", "CCO"],
            ("substructure", "CC(=O)Nc1ccccc1", 1.0, 0.5),
        ),
        (  # quinoline is in two of three, and what all three share has a single heteroatom
            ["Cc1ccc2ncccc2c1", "Cc1ccc2nccnc2c1", "c1ccc2ncccc2c1O"],
            ["c1ccc2ncccc2c1", "CCO", "CCN", "CC"],
            ("ring system", "c1ccc2ncccc2c1", 2 / 3, 0.25),
        ),
    ],
)
def test_the_core_is_what_the_training_molecules_share(trained, samples, core):
    found = find_core(trained, samples)
    assert (found.name, found.smiles, found.training, found.samples) == core


def test_molecules_without_rings_may_have_no_core():
    assert find_core(["CCO", "CCCN"], ["CC"]) is None
    assert find_core(["CCO", "CCCN"], []) is None
