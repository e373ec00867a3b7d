"""Rules for molecules before they are written: fragments, charges, isotopes, stereochemistry."""

from rdkit import Chem
from rdkit.Chem.MolStandardize import rdMolStandardize
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow.config import LONGEST, Standardisation
from pairflow.errors import InputError

MOST_ATOMS = LONGEST  # RDKit writes larger molecules too slowly, and the largest end the process
TOO_MANY_ATOMS = f"over {MOST_ATOMS:,} atoms"


def parse(text: str) -> Chem.Mol:
    """RDKit's molecule; InputError gives the reason against the row."""
    if not text:
        raise InputError("empty")
    if "\ufffd" in text:
        raise InputError("not UTF-8 text")
    molecule = Chem.MolFromSmiles(text)
    if molecule is None:
        raise InputError("unparsable")
    if molecule.GetNumAtoms() > MOST_ATOMS:
        raise InputError(TOO_MANY_ATOMS)
    return molecule


def standardise(molecule: Chem.Mol, rules: Standardisation) -> Chem.Mol:
    """The molecule after all rules; the same object if no rule changes it.

    Raises InputError, with the reason against the row, for several fragments if the rule is `reject`.
    """
    changed = molecule
    if rules.fragments != "keep" and (parts := len(Chem.GetMolFrags(molecule))) > 1:
        if rules.fragments == "reject":
            raise InputError(f"{parts} fragments (the experiment allows only one)")
        changed = rdMolStandardize.LargestFragmentChooser(preferOrganic=True).choose(changed)
    if rules.charges == "neutralise" and any(atom.GetFormalCharge() for atom in changed.GetAtoms()):
        changed = rdMolStandardize.Uncharger().uncharge(changed)
    if rules.isotopes == "drop" and any(atom.GetIsotope() for atom in changed.GetAtoms()):
        changed = _without_isotopes(changed)
    if rules.stereo == "drop":
        changed = Chem.Mol(changed)
        Chem.RemoveStereochemistry(changed)
    if changed is molecule:
        return molecule
    # Written and read again, so that stereocentres and hydrogens are those of the text.
    changed = Chem.MolFromSmiles(Chem.MolToSmiles(changed))
    if changed is None:
        raise InputError("unparsable after the rules have been applied")
    return changed


def scaffold(molecule: Chem.Mol) -> str:
    """The Bemis-Murcko scaffold as SMILES without stereochemistry; empty for a molecule without rings."""
    return MurckoScaffold.MurckoScaffoldSmiles(mol=molecule)


def _without_isotopes(molecule: Chem.Mol) -> Chem.Mol:
    plain = Chem.Mol(molecule)
    for atom in plain.GetAtoms():
        atom.SetIsotope(0)
    return Chem.RemoveHs(plain)  # [2H] has become an ordinary hydrogen
