"""Reads, standardises and writes molecules; fields.py reads the SMILES of users.

The rules are on fragments, charges, isotopes, stereochemistry, metals and dummies.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache, partial
from itertools import chain

from rdkit import Chem, rdBase
from rdkit.Chem.MolStandardize import rdMolStandardize
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import LONGEST, Standardisation
from pairflow.runtime.processes import map_chunks

MOST_ATOMS = LONGEST  # RDKit takes too long to write larger molecules, and crashes on the largest
_COUNTER_IONS = {3, 11, 19, 37, 55, 87, 4, 12, 20, 38, 56, 88}  # groups 1 and 2 without hydrogen
_METALS = _COUNTER_IONS | {13, *range(21, 32), *range(39, 51), *range(57, 85), *range(89, 104)}
TOO_MANY_ATOMS = f"over {MOST_ATOMS:,} atoms"
_MOST_CHARACTERS = 8 * MOST_ATOMS  # of a SMILES; an atom such as [C@@H] or [13CH2] has up to seven
_ATOM = re.compile(r"\[(?!H\])[^\]]*\]|Br|Cl|[BCNOPSFIbcnops*]")  # in SMILES; RDKit drops most [H]
# Explicit hydrogens and stereochemistry, with which RDKit may need several rounds to a lasting SMILES.
_UNSETTLED = re.compile(r"\[H\]|[/\\@]")
_ROUNDS = 10
_CHUNK = 128  # molecules that are sent to a process at a time
IDENTITIES = {
    "smiles": "canonical SMILES",
    "inchikey": "standard InChIKey",
    "tautomer": "canonical tautomer",
}
UNPARSABLE, DUMMY, METAL = "unparsable", "with an R group or dummy atom", "with a metal"


def say_too_large(text: str) -> str:
    """Return why a SMILES string is too large for RDKit, which could take minutes to find the rings; an empty
    text if it is not."""
    if len(text) > _MOST_CHARACTERS:
        return f"over {_MOST_CHARACTERS:,} characters"
    many = len(text) > MOST_ATOMS and len(_ATOM.findall(text)) > MOST_ATOMS
    return TOO_MANY_ATOMS if many else ""


def parse(text: str) -> Chem.Mol:
    """Read a SMILES string as an RDKit molecule. Raises InputError with the reason to reject it."""
    if not text:
        raise InputError("empty")
    if reason := say_too_large(text):
        raise InputError(reason)
    molecule = Chem.MolFromSmiles(text)
    if molecule is None:
        raise InputError(UNPARSABLE)
    if molecule.GetNumAtoms() > MOST_ATOMS:
        raise InputError(TOO_MANY_ATOMS)
    return molecule


def say_problem(molecule: Chem.Mol | None) -> str:
    """Return what is wrong with a molecule that RDKit reads only without checks, such as a valence; empty if
    that is unknown. The text follows the word "unparsable" in messages. `molecule` was read without checks,
    and is None if that failed, too."""
    if molecule is None:
        return ""
    for problem in Chem.DetectChemistryProblems(molecule):
        if problem.GetType() != "AtomValenceException":
            return " (no Kekulé structure)"
        atom = molecule.GetAtomWithIdx(problem.GetAtomIdx())
        return f" (a valence is too high): atom {atom.GetIdx() + 1}, {atom.GetSymbol()}"
    return ""


def write_smiles(molecule: Chem.Mol, read_from: str = "") -> str:
    """Write a molecule as canonical SMILES that stay the same when RDKit reads and writes them again. What
    RDKit writes first may change: `[H]/N=C` becomes `[H]N=C`, and then `C=N`. `read_from` is the text that
    the molecule was read from, if known: if RDKit writes that text, nothing needs to be read again."""
    smiles = Chem.MolToSmiles(molecule)
    for _ in range(_ROUNDS):
        if smiles == read_from or not _UNSETTLED.search(smiles):
            break
        if (again := Chem.MolFromSmiles(smiles)) is None:
            break
        written = Chem.MolToSmiles(again)
        if written == smiles:
            break
        smiles = written
    return smiles


def standardise(molecule: Chem.Mol, rules: Standardisation) -> Chem.Mol:
    """Apply all rules to a molecule. Returns a new molecule, or the same object if no rule changes it. Raises
    InputError, with the reason, if a rule rejects the molecule."""
    changed = molecule
    if rules.metals == "reject" and has_metal(molecule):
        raise InputError(METAL)
    if rules.dummies == "reject" and has_dummy(molecule):  # in any fragment
        raise InputError(DUMMY)
    if rules.fragments != "keep" and (parts := len(Chem.GetMolFrags(molecule))) > 1:
        if rules.fragments == "reject":
            raise InputError(f"{parts} fragments (the experiment allows only one)")
        changed = rdMolStandardize.LargestFragmentChooser(preferOrganic=True).choose(changed)
    if changed is not molecule and rules.metals == "reject" and has_metal(changed):  # of CaCl2 the ion
        raise InputError(METAL)
    if changed.GetNumHeavyAtoms() < rules.min_heavy_atoms:
        raise InputError(f"under {rules.min_heavy_atoms} heavy atoms")
    if rules.charges == "neutralise" and any(atom.GetFormalCharge() for atom in atoms_of(changed)):
        changed = rdMolStandardize.Uncharger().uncharge(changed)
    if rules.isotopes == "drop" and any(atom.GetIsotope() for atom in atoms_of(changed)):
        changed = Chem.Mol(changed)
        for atom in changed.GetAtoms():
            atom.SetIsotope(0)
        changed = Chem.RemoveHs(changed)  # [2H] has become an ordinary hydrogen
    if rules.stereo == "drop":
        changed = Chem.Mol(changed)
        Chem.RemoveStereochemistry(changed)
    if changed is molecule:
        return molecule
    # Writing and reading updates stereocentres and hydrogens.
    changed = Chem.MolFromSmiles(Chem.MolToSmiles(changed))
    if changed is None:
        raise InputError("unparsable after the rules have been applied")
    return changed


@lru_cache(maxsize=2**16)  # tautomers take long
def identify(smiles: str, identity: str) -> str:
    """Return a text that is the same for all molecules that count as one by the rule `identity` ("smiles",
    "inchikey" or "tautomer"). `smiles` is canonical, and is returned if RDKit cannot read it, or if the
    molecule has no InChIKey."""
    if identity == "smiles":
        return smiles
    with rdBase.BlockLogs():
        if (molecule := Chem.MolFromSmiles(smiles)) is None:
            return smiles
        if identity == "inchikey":
            return Chem.MolToInchiKey(molecule) or smiles
        return write_smiles(_tautomers().Canonicalize(molecule))


@cache
def _tautomers() -> rdMolStandardize.TautomerEnumerator:
    return rdMolStandardize.TautomerEnumerator()


def identify_all(smiles: Iterable[str], identity: str, threads: int = 1) -> dict[str, str]:
    """Map each canonical SMILES to the text that identifies its molecule by the rule `identity` (see
    `identify`), computed in up to `threads` processes."""
    names = [*dict.fromkeys(smiles)]
    if identity == "smiles":
        return dict(zip(names, names, strict=True))
    chunks = [names[first : first + _CHUNK] for first in range(0, len(names), _CHUNK)]
    keys = map_chunks(partial(_identify, identity), chunks, min(threads, len(chunks)))
    return dict(zip(names, chain.from_iterable(keys), strict=True))


def _identify(identity: str, smiles: Iterable[str]) -> list[str]:
    return [identify(text, identity) for text in smiles]


def say_rules(rules: Standardisation) -> str:
    """Return in words the rules that differ from the defaults, such as `charges neutralise, stereo drop`;
    empty if none does."""
    none = Standardisation()
    values = {name: getattr(rules, name) for name in Standardisation.model_fields}
    return ", ".join(f"{name} {value}" for name, value in values.items() if value != getattr(none, name))


def atoms_of(molecule: Chem.Mol) -> list[Chem.Atom]:
    """Return the atoms of a molecule, ten times as fast as `GetAtoms`."""
    return [*map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))]


def has_dummy(molecule: Chem.Mol) -> bool:
    """Return whether a molecule has a dummy atom (`*` in SMILES), such as an R group or an attachment
    point."""
    return any(atom.GetAtomicNum() == 0 for atom in atoms_of(molecule))


def has_metal(molecule: Chem.Mol) -> bool:
    """Return whether a molecule has a metal. Lone atoms and ions of groups 1 and 2 do not count beside
    others: they are counter-ions."""
    metals = [atom for atom in atoms_of(molecule) if atom.GetAtomicNum() in _METALS]
    return any(atom.GetDegree() or atom.GetAtomicNum() not in _COUNTER_IONS for atom in metals) or (
        len(metals) == molecule.GetNumAtoms() > 0
    )


def has_mixed_stereo(molecule: Chem.Mol) -> bool:
    """Return whether a molecule has racemic or relative stereocentres, such as those in `C[C@H](O)F
    |&1:1|`."""
    groups = molecule.GetStereoGroups()
    return len(groups) > 0 and any(
        group.GetGroupType() != Chem.StereoGroupType.STEREO_ABSOLUTE for group in groups
    )


def scaffold(molecule: Chem.Mol) -> str:
    """Return the Bemis-Murcko scaffold of a molecule (its rings and what links them) as SMILES without
    stereochemistry; empty for a molecule without rings."""
    if not molecule.GetRingInfo().NumRings():
        return ""  # for which RDKit would take minutes in a long chain
    return MurckoScaffold.MurckoScaffoldSmiles(mol=molecule)
