"""Coordinates in space: all atoms have them, they are relaxed, and they follow from molecule and seed."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdForceFieldHelpers, rdMolTransforms

from pairflow.kinds.molecules.selection import embed

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_all_atoms_have_places_in_space_with_the_right_distances():
    molecule = embed(ASPIRIN, 0)
    assert Chem.MolToSmiles(Chem.RemoveHs(molecule)) == ASPIRIN
    assert molecule.GetNumAtoms() == 21
    conformer = molecule.GetConformer()
    assert conformer.Is3D()
    assert rdMolTransforms.GetBondLength(conformer, 0, 1) == pytest.approx(1.50, abs=0.03)  # CH3-C(=O)
    assert rdMolTransforms.GetBondLength(conformer, 1, 2) == pytest.approx(1.21, abs=0.03)  # C=O


def test_the_force_field_has_nothing_left_to_relax():
    molecule = embed(ASPIRIN, 0)
    field = rdForceFieldHelpers.MMFFGetMoleculeForceField(
        molecule, rdForceFieldHelpers.MMFFGetMoleculeProperties(molecule)
    )
    assert np.abs(field.CalcGrad()).max() < 0.1  # kcal/mol/angstrom


def test_coordinates_are_a_function_of_the_seed():
    places = []
    for seed in (2**32 - 1, 5, 2**32 - 1):
        embed.cache_clear()
        places.append(embed(ASPIRIN, seed).GetConformer().GetPositions())
    np.testing.assert_array_equal(places[0], places[2])
    assert not np.allclose(places[0], places[1])


@pytest.mark.parametrize("impossible", ["C1#CC1", "C1C[C@@H]2C[C@@H]1CC2"])
def test_an_impossible_molecule_has_no_place(impossible, capfd):
    assert embed(impossible, 0) is None
    assert capfd.readouterr() == ("", "")
