"""What a chemist asks of a molecule first."""

from rdkit import Chem
from rdkit.Chem import QED, Crippen, Descriptors


def properties(molecule: Chem.Mol) -> dict[str, float]:
    """Drug-likeness, synthetic accessibility, octanol-water partition coefficient and weight of a molecule.

    - `qed`: 0 to 1, higher is likelier to be a drug (Bickerton et al. 2012).
    - `sa`: 1 (easy to make) to 10 (Ertl and Schuffenhauer 2009, from RDKit's Contrib).
    - `logp`: by atom contributions (Wildman and Crippen 1999).
    - `weight`: g/mol.
    """
    from rdkit.Contrib.SA_Score import sascorer  # reads a table of fragments when it is first used

    return {
        "qed": QED.qed(molecule),
        "sa": sascorer.calculateScore(molecule),
        "logp": Crippen.MolLogP(molecule),
        "weight": Descriptors.MolWt(molecule),
    }
