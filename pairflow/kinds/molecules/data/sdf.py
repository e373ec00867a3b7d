"""Reads SDF files record by record: structures as SMILES, and data items as the fields of a table."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice, product
from pathlib import Path

from rdkit import Chem, rdBase

from pairflow.data.tabular import Record
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.fields import QUERY, UNKNOWN, Row, name_column, why_no_molecule
from pairflow.kinds.molecules.structures.standardise import (
    MOST_ATOMS,
    TOO_MANY_ATOMS,
    has_mixed_stereo,
    say_problem,
)

# Of labels of atoms, and of properties that queries, polymers and the like may have.
_LINE = re.compile(r"\n(?:[AGV]  |M  (?!CHG|ISO|RAD|END|V30))")
_WORD = re.compile("=(?<!CHG=)(?<!MASS=)(?<!RAD=)(?<!CFG=)(?<!VAL=)")  # the same in V3000
_ABBREVIATION = re.compile(r"\nG  [ \d]{6}\n(.*)")  # which RDKit skips
_WEDGE = re.compile(r"\n[ \d]{9}  [16](?!\S)")
_WEDGES = {*product(["_MolFileBondStereo"], (1, 6)), *product(["_MolFileBondCfg"], (1, 3))}
_SIGN = re.compile(r"\*|\[([A-Z][a-z]?|[a-z])\]")
_LONGEST_RECORD = 100_000  # lines
_STEREO, _AS_DRAWN = Chem.CXSmilesFields.CX_ENHANCEDSTEREO, Chem.SmilesWriteParams()
_AS_DRAWN.canonical = False  # which could turn a racemic centre into its mirror image
_FIRST = 1_000  # records, of which the data items are the columns of the table


def read_sdf(lines: Iterable[str], path: Path, column: str) -> Iterator[Row]:
    """Yield the rows of an SDF file. The name of a row is the data item `column` or, if that is empty, the
    title of the record. If `column` is "smiles", which is no data item, the name is the title or, if that is
    empty, the data item that `name_column` finds. Raises InputError if no record has the data item
    `column`."""
    named = column == "smiles"
    for number, (block, rest, single) in enumerate(_records(lines, path), 1):
        title = name = block[0].strip() if block else ""
        if column != "smiles" or not title:
            items = _items(rest)
            named |= column in items
            key = column if column != "smiles" else _name_of(tuple(items))
            name = " ".join(items.get(key, "").split()) or title
        text = _with_radicals("".join(block).replace("\r\n", "\n").replace("\r", "\n"))
        with rdBase.BlockLogs():
            molecule = Chem.MolFromMolBlock(text)
        if molecule is not None:
            _free_amines(molecule)
        if not single:
            yield Row(number, name, reason="several lines M  END in a record: is a line $$$$ missing?")
        elif molecule is None:
            yield Row(number, name, reason="broken record" + _say_problem(text))
        elif molecule.GetNumAtoms() > MOST_ATOMS:
            yield Row(number, name, reason=TOO_MANY_ATOMS)
        elif reason := _why_no_molecule(molecule, smiles := Chem.MolToSmiles(molecule), text):
            yield Row(number, name, reason=reason)
        elif "MDLV30/STE" in text and has_mixed_stereo(molecule):
            yield Row(number, Chem.MolToCXSmiles(molecule, _AS_DRAWN, _STEREO), name)
        else:
            yield Row(number, smiles, name, lost=_loses_wedge(molecule, text))
    if not named:
        raise InputError(f"{path}: no data item {column!r}")


def as_table(lines: Iterable[str], path: Path) -> tuple[list[str], Iterator[Record]]:
    """Read the data items of an SDF file as a table. Returns the names of the columns, which are the data
    items of the first records, and an iterator over all records, each a number and a field for every
    column."""
    records = ((block, _items(rest), single) for block, rest, single in _records(lines, path))
    first = [*islice(records, _FIRST)]
    header = [*dict.fromkeys(name for _, items, _ in first for name in items)]
    numbered = enumerate(chain(first, records), 1)
    return header, ((number, [items.get(name, "") for name in header]) for number, (_, items, _) in numbered)


def _why_no_molecule(molecule: Chem.Mol, smiles: str, block: str) -> str:
    """Return the reason to reject a record whose structure is a query, a polymer, an abbreviation or the
    like; empty if there is none. `smiles` is `molecule` as SMILES, and `block` the text of the structure.
    All atoms are looked at only where a line such as `M ALS`, a `*` or an atom without its hydrogens
    (`[C]`) gives a sign, because that takes time."""
    if "~" in smiles:
        return QUERY
    if not (_LINE.search(block) or _WORD.search(block) or "LINKNODE" in block or _SIGN.search(smiles)):
        return ""
    if abbreviation := _ABBREVIATION.search(block):
        return f"an abbreviation ({abbreviation[1].strip()}) drawn as an atom"
    return why_no_molecule(molecule)


def _free_amines(molecule: Chem.Mol) -> None:
    """Remove from `molecule`, in place, the stereocentres that RDKit finds by 3D coordinates at amines with a
    hydrogen. These invert freely, so that the poses of a ligand would become different molecules."""
    if molecule.GetNumConformers() and molecule.GetConformer().Is3D():
        for atom in molecule.GetAtoms():
            if atom.GetAtomicNum() == 7 and atom.GetTotalNumHs():
                atom.SetChiralTag(UNKNOWN)


def _loses_wedge(molecule: Chem.Mol, block: str) -> bool:
    """Return whether a bond is drawn as a wedge but makes no stereocentre, for example at an axis of
    chirality. `block` is the text of the structure."""
    if not (_WEDGE.search(block) or " CFG=" in block):
        return False
    wedges = (bond for bond in molecule.GetBonds() if _WEDGES & {*bond.GetPropsAsDict(True).items()})
    return any(bond.GetBeginAtom().GetChiralTag() == UNKNOWN for bond in wedges)


def _say_problem(block: str) -> str:
    with rdBase.BlockLogs():
        return say_problem(Chem.MolFromMolBlock(block, sanitize=False))


def _with_radicals(block: str) -> str:
    """Return a mol block in which the radicals of its atom lines (charge 4), which RDKit ignores, are
    properties. A block that has properties of charges or radicals is returned unchanged, because these
    replace the charges of the atom lines."""
    if "  4  0  0  0" not in block or "V3000" in block or "\nM  CHG" in block or "\nM  RAD" in block:
        return block
    lines = block.split("\n")
    numbers = [number for number, line in enumerate(lines[4:], 1) if line[36:39] == "  4"]
    return block.replace("\nM  END", "".join(f"\nM  RAD  1{n:4}   2" for n in numbers) + "\nM  END")


@lru_cache
def _name_of(items: tuple[str, ...]) -> str:
    return name_column(items, "") or ""


def _records(lines: Iterable[str], path: Path) -> Iterator[tuple[list[str], list[str], bool]]:
    """Yield for each record the lines up to `M  END`, the lines below, and whether it has at most one line `M
    END`. Raises InputError if a record does not end within _LONGEST_RECORD lines."""
    block: list[str] = []
    rest: list[str] = []
    part, last, single = block, _LONGEST_RECORD, True
    for number, line in enumerate(lines, 1):
        mark = line[0]
        if mark == "$" and line.startswith("$$$$"):
            yield block, rest, single
            block, rest = [], []
            part, last, single = block, number + _LONGEST_RECORD, True
            continue
        part.append(line)
        if mark == "M" and line.startswith("M  END"):
            single, part = part is block, rest
        if number > last:
            raise InputError(f"{path}: no end of a record ($$$$) up to line {number}: not an SDF file")
    if any(map(str.strip, block)):
        yield block, rest, single


def _items(lines: list[str]) -> dict[str, str]:
    """Return the data items in the lines below a structure, by name. An item has a line such as `> 1 <name>
    (2)`, then the lines of its value up to an empty line."""
    items: dict[str, list[str]] = {}
    value: list[str] | None = None
    for line in lines:
        if value is None and line.startswith(">"):
            name = line[line.find("<") + 1 : line.rfind(">")].strip()
            value = items.setdefault(name, [])
        elif not line.strip():
            value = None
        elif value is not None:
            value.append(line)
    return {name: "".join(value).strip() for name, value in items.items()}
