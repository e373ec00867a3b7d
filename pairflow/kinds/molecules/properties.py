"""Properties of a molecule that RDKit computes, and that a model can be conditioned on."""

from collections.abc import Callable, Sequence

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import QED, Crippen, Descriptors, rdMolDescriptors

COMPUTED: dict[str, Callable[[Chem.Mol], float]] = {
    "qed": QED.qed,
    "logp": Crippen.MolLogP,
    "weight": Descriptors.MolWt,
    "rings": rdMolDescriptors.CalcNumRings,
}
"""Quantitative estimate of drug-likeness, 0 to 1, higher is likelier (Bickerton et al. 2012); the
octanol-water partition coefficient by atom contributions (Wildman and Crippen 1999); molecular weight in
g/mol; number of rings (of the smallest set of smallest rings)."""


def compute(name: str, smiles: Sequence[str]) -> np.ndarray:
    """(M,) float64: the property of each molecule; NaN for a string that RDKit cannot read."""
    with rdBase.BlockLogs():
        molecules = map(Chem.MolFromSmiles, smiles)
        values = [np.nan if molecule is None else COMPUTED[name](molecule) for molecule in molecules]
    return np.array(values, np.float64)
