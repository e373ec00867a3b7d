"""Reads the SMILES in a field of a row of a user's file, or says why they are none."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from html import unescape
from typing import NamedTuple

from rdkit import Chem, rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.structures.standardise import UNPARSABLE, atoms_of, parse, say_problem

FOREIGN = {name: f"{name}, not SMILES" for name in ("SELFIES", "InChI", "InChIKey", "HTML")}
FOREIGN["reaction"] = "a reaction, not a molecule"
NOTHING = "no SMILES"
QUERY = "a query, not a molecule"
LOWER = "all letters in lower case, which is for aromatic atoms"
MAPPED = "mapped"  # property of a molecule whose atom maps were dropped
LOST = "lost"  # property of a molecule of whose stereochemistry RDKit has not kept all
_STRAY = re.compile(r"[^!-~]")  # a character that no SMILES has: white space, an invisible one, not ASCII
_CONTROLS = {" ": "a space", "\t": "a tab", "\n": "a line break", "\r": "a line break"}
_NOTHING = {"na", "n/a", "nan", "none", "null"}
_INCHIKEY = re.compile(r"[A-Z]{14}-[A-Z]{10}-[A-Z]")
_POLYMERS = {"SRU", "MON", "MER", "COP", "CRO", "MOD", "GRA", "ANY"}  # types of S-groups
_LABELS = ("molFileAlias", "molFileValue", "atomLabel")  # of atoms, from mol blocks and CX extensions
_MAP = re.compile(r"(\[[^\[\]]*):\d+\]")
_SMARTS = re.compile(r"\[[^\[\]]*#")  # which RDKit reads as the SMILES of a radical
# Only symbols in brackets, one of which is no atom of SMILES, or a carbon atom without any neighbour.
_SELFIES = re.compile(
    r"(?=.*\]\.?\[)(?=.*\[(C|[=#/\\][A-Z][^\[\]]*|(Expl)?[-=#/\\]*(Branch|Ring)\d[^\[\]]*)\])(?!.*\[H\])"
    r"(\[[^\[\]]+\]\.?)+"
)
# Columns with names of molecules, if no column is called `name`: "Compound ID", "IDNUMBER", "MolName" ...
_NAMING = "name|title|id|id[ _]?number|identifier|code"
_NAME_COLUMN = re.compile(rf"(?i:(^|[ _.#-])({_NAMING}))$|[a-z](Name|ID|Id)$")
HELD_OUT = "held out"
UNKNOWN = Chem.ChiralType.CHI_UNSPECIFIED


class Row(NamedTuple):
    """A row of a file of molecules: its number, its SMILES (`text`), and its name, which may be empty. If
    the reader cannot use the row, `reason` says why, and `text` is something by which to recognise the
    row. `part` is HELD_OUT if the user's own split holds the row out. `lost` says whether the file has
    stereochemistry that `text` lacks."""

    number: int
    text: str
    name: str = ""
    reason: str = ""
    part: str = ""
    lost: bool = False


def name_column(header: Iterable[str], column: str) -> str | None:
    """Find the column with the names of molecules, other than `column`; None if there is none."""
    named = [name for name in header if name != column and _NAME_COLUMN.search(name)]
    return min(named, key=lambda name: name.lower() != "name", default=None)


def read_smiles(text: str) -> Chem.Mol:
    """Read a user's SMILES, perhaps with a CX extension (`CCO |r|`), as RDKit does. Atom maps are removed,
    and then the molecule has the property MAPPED; it has the property LOST if RDKit drops stereochemistry.
    Raises InputError with the reason to reject the text, such as a character inside it at which RDKit would
    stop to read."""
    smiles, extension = text, ""
    if " " in text or not (text.isascii() and text.isprintable()):
        core = text.partition("|")[0]
        if core != text and core.rstrip() != core:
            smiles = core.rstrip()
            extension = text[len(smiles) :]
        if extension and not extension.endswith("|"):
            raise InputError("an incomplete CX extension (|...|)")
        if stray := _STRAY.search(smiles):
            name = _CONTROLS.get(stray[0]) or unicodedata.name(stray[0], "a control character")
            raise InputError(f"{name} (U+{ord(stray[0]):04X}) inside the SMILES")
    if foreign := why_foreign(smiles):
        raise InputError(foreign)
    if "~" in smiles or ("#" in smiles and _SMARTS.search(smiles)):
        raise InputError(QUERY)
    plain = _MAP.sub(r"\1]", smiles) if ":" in smiles else smiles
    try:
        molecule = parse(plain + extension)
    except InputError as error:
        raise InputError(_why_unparsable(plain) if str(error) == UNPARSABLE else str(error)) from None
    if extension and (reason := why_no_molecule(molecule)):
        raise InputError(reason)
    if plain != smiles:
        molecule.SetBoolProp(MAPPED, True)
    if _loses_stereo(plain, molecule):
        molecule.SetBoolProp(LOST, True)
    return molecule


def _loses_stereo(smiles: str, molecule: Chem.Mol) -> bool:
    """Return whether RDKit has dropped marks of stereochemistry that the SMILES have, such as an allene's."""
    if "@" in smiles:
        marked = smiles.count("@") - smiles.count("@@")  # @@ is one mark
        if marked > sum(atom.GetChiralTag() != UNKNOWN for atom in atoms_of(molecule)):
            return True
    directed = "/" in smiles or "\\" in smiles
    bonds = map(molecule.GetBondWithIdx, range(molecule.GetNumBonds() if directed else 0))
    return directed and all(bond.GetStereo() <= Chem.BondStereo.STEREOANY for bond in bonds)


def why_foreign(text: str) -> str:
    """Return the reason to reject a text that is a molecule in another notation; empty for any other text."""
    if text.startswith("InChI="):
        return FOREIGN["InChI"]
    if "&" in text and unescape(text) != text:
        return FOREIGN["HTML"]
    if ">" in text and text.replace("->", "").count(">") == 2:
        return FOREIGN["reaction"]
    if len(text) == 27 and _INCHIKEY.fullmatch(text):
        return FOREIGN["InChIKey"]
    return FOREIGN["SELFIES"] if text.startswith("[") and _SELFIES.fullmatch(text) else ""


def _why_unparsable(text: str) -> str:
    """Return the reason to reject a text that RDKit cannot read."""
    if text.lower() in _NOTHING:
        return NOTHING
    if text.islower() and Chem.MolFromSmarts(text):
        return LOWER
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None and Chem.MolFromSmarts(text):
        return QUERY
    return UNPARSABLE + say_problem(molecule)


def why_no_molecule(molecule: Chem.Mol) -> str:
    """Return the reason to reject a molecule that RDKit does not read as it was meant, because the drawing or
    the CX extension is, for example, a query or a polymer; empty for any other molecule."""
    atoms = atoms_of(molecule)
    groups = [*Chem.GetMolSubstanceGroups(molecule)]
    if any(group.GetProp("TYPE") in _POLYMERS for group in groups) or molecule.HasProp("_molLinkNodes"):
        return "a polymer or repeating unit"
    if any(map(_has_variable_end, map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())))):
        return "a substituent without a certain place"
    if any(map(_is_query, filter(Chem.Atom.HasQuery, atoms))):
        return QUERY
    if any(atom.HasProp("molAttchpt") for atom in atoms):
        return "an attachment point"
    label = next(_abbreviations(atoms, groups), "")
    return f"an abbreviation ({label}) drawn as an atom" if label else ""


def _is_query(atom: Chem.Atom) -> bool:
    """Return whether an atom stands for one of several, as a list of atoms does. Dummy atoms and R groups do
    not."""
    return atom.DescribeQuery().strip() != "AtomNull" and not atom.HasProp("_MolFileRLabel")


def _has_variable_end(bond: Chem.Bond) -> bool:
    return bond.HasProp("_MolFileBondAttach") == 1 and bond.GetProp("_MolFileBondAttach") == "ANY"


def _abbreviations(atoms: list[Chem.Atom], groups: list[Chem.SubstanceGroup]) -> Iterator[str]:
    """Yield those labels of atoms that stand for more than the atom, such as Boc, but not CH3 or numbers.
    `groups` are the molecule's substance groups, of which those on one atom may have a label, too."""
    labels = [(atom, atom.GetProp(name)) for atom in atoms for name in _LABELS if atom.HasProp(name)]
    for group in groups:
        if group.GetProp("TYPE") == "SUP" and group.HasProp("LABEL") and len(group.GetAtoms()) == 1:
            labels.append((atoms[group.GetAtoms()[0]], group.GetProp("LABEL")))
    for atom, label in labels:
        symbol, charge = atom.GetSymbol(), "[+-]?" if atom.GetFormalCharge() else ""
        plain = rf"(H\d?)?{symbol}(H\d?)?\d*{charge}|[-+.\d]*" + "|Me" * (symbol == "C")
        if atom.GetAtomicNum() and not re.fullmatch(plain, label.strip()):
            yield label.strip()


def is_molecule(text: str) -> bool:
    """Return whether RDKit reads a text as a molecule of at least one atom."""
    return count_atoms(text) > 0


def count_atoms(text: str) -> int:
    """Return the number of atoms of the molecule that RDKit reads in a text; 0 if it reads none."""
    with rdBase.BlockLogs(), suppress(InputError):
        return read_smiles(text.strip()).GetNumAtoms()
    return 0
