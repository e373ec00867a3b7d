"""Coordinates of molecules in space."""

from functools import lru_cache

from rdkit import Chem, rdBase
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

_ITERATIONS = 2000  # of the force field, at most


@lru_cache(maxsize=16)  # a molecule is embedded when it is judged, and asked for again when it is written
def embed(smiles: str, seed: int) -> Chem.Mol | None:
    """The molecule with all hydrogens and one set of coordinates, a function of both arguments.

    The coordinates are RDKit's ETKDGv3 (Wang et al. 2020), relaxed with the force field MMFF94 where it has
    parameters for all atoms. None if there are none, also from random ones.
    """
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed % 2**31  # RDKit's seed has a sign
    with rdBase.BlockLogs():
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        for parameters.useRandomCoords in (False, True):
            if rdDistGeom.EmbedMolecule(molecule, parameters) == 0:
                rdForceFieldHelpers.MMFFOptimizeMolecule(molecule, maxIters=_ITERATIONS)
                return molecule
    return None
