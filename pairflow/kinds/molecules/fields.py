"""Reads the SMILES in a field of a user's file, or says why they are none."""

import re
import unicodedata
from contextlib import suppress
from html import unescape

from rdkit import Chem, rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.standardise import UNPARSABLE, atoms_of, parse

FOREIGN = {name: f"{name}, not SMILES" for name in ("SELFIES", "InChI", "HTML")}
QUERY = "a query, not a molecule"
LOWER = "all letters in lower case, which is for aromatic atoms"
MAPPED = "mapped"  # property of a molecule whose atom maps were dropped
_STRAY = re.compile(r"[^!-~]")  # a character that no SMILES has: white space, an invisible one, not ASCII
_CONTROLS = {" ": "a space", "\t": "a tab", "\n": "a line break", "\r": "a line break"}
_MAP = re.compile(r"(\[[^\[\]]*):\d+\]")
_SMARTS = re.compile(r"\[[^\[\]]*#")  # which RDKit reads as the SMILES of a radical
# Only symbols in brackets, one of which is no atom of SMILES, or a carbon atom without any neighbour.
_SELFIES = re.compile(
    r"(?=.*\]\.?\[)(?=.*\[(C|[=#/\\][A-Z][^\[\]]*|(Expl)?[-=#/\\]*(Branch|Ring)\d[^\[\]]*)\])(?!.*\[H\])"
    r"(\[[^\[\]]+\]\.?)+"
)


def read_smiles(text: str) -> Chem.Mol:
    """Read a user's SMILES, perhaps with a CX extension (`CCO |r|`), as RDKit does, but without atom maps: a
    molecule that had some has the property MAPPED. Raises InputError with the reason to reject the text, such
    as a character inside it at which RDKit would stop to read."""
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
        if str(error) == UNPARSABLE and plain.islower() and Chem.MolFromSmarts(plain):
            raise InputError(LOWER) from None
        if str(error) == UNPARSABLE and _is_smarts(plain):
            raise InputError(QUERY) from None
        raise
    if extension and has_query(molecule):
        raise InputError(QUERY)
    if plain != smiles:
        molecule.SetBoolProp(MAPPED, True)
    return molecule


def why_foreign(text: str) -> str:
    """The reason to reject a text that is a molecule in another notation; empty for any other text."""
    if text.startswith("InChI="):
        return FOREIGN["InChI"]
    if "&" in text and unescape(text) != text:
        return FOREIGN["HTML"]
    return FOREIGN["SELFIES"] if text.startswith("[") and _SELFIES.fullmatch(text) else ""


def _is_smarts(text: str) -> bool:
    """Whether a text that is no molecule is SMARTS, and not SMILES with another fault, such as a valence."""
    return Chem.MolFromSmiles(text, sanitize=False) is None and Chem.MolFromSmarts(text) is not None


def has_query(molecule: Chem.Mol) -> bool:
    """Whether an atom stands for one of several, as a list of atoms does. Dummy atoms and R groups do not."""
    queries = [*filter(Chem.Atom.HasQuery, atoms_of(molecule))]
    return any(
        atom.DescribeQuery().strip() != "AtomNull" and not atom.HasProp("_MolFileRLabel") for atom in queries
    )


def is_molecule(text: str) -> bool:
    """Whether RDKit reads a text as a molecule of at least one atom."""
    return count_atoms(text) > 0


def count_atoms(text: str) -> int:
    """The number of atoms of a molecule that RDKit reads in a text; 0 if it reads none."""
    with rdBase.BlockLogs(), suppress(InputError):
        return read_smiles(text.strip()).GetNumAtoms()
    return 0
