"""Properties of molecules against published values."""

import pytest
from rdkit import Chem

from pairflow.metrics.properties import properties


def test_aspirin():
    """QED 0.550, logP 1.310 and SA 1.58 are what RDKit's own documentation and many tables give."""
    found = properties(Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O"))
    assert found == pytest.approx({"qed": 0.550, "sa": 1.580, "logp": 1.310, "weight": 180.159}, abs=1e-3)
