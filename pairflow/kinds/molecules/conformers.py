"""Computes 3D coordinates of molecules."""

from functools import lru_cache

from rdkit import Chem, rdBase
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

_ITERATIONS = 2000  # most iterations of the force field


@lru_cache(maxsize=16)  # called for the same molecule when it is filtered and when it is written
def embed(smiles: str, seed: int) -> Chem.Mol | None:
    """Return a molecule with all hydrogens and 3D coordinates, which `smiles` and `seed` determine.

    The coordinates are RDKit's ETKDGv3 (Wang et al. 2020), relaxed with the force field MMFF94 if it has
    parameters for all atoms. Returns None if RDKit finds no coordinates, even from a random start.
    """
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed % 2**31  # RDKit takes a signed 32-bit number
    with rdBase.BlockLogs():
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        for parameters.useRandomCoords in (False, True):
            if rdDistGeom.EmbedMolecule(molecule, parameters) == 0:
                rdForceFieldHelpers.MMFFOptimizeMolecule(molecule, maxIters=_ITERATIONS)
                return molecule
    return None
