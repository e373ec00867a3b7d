"""Reads a user's file of molecules for `pairflow new`: counts its content, and finds its SMILES column."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from scipy.optimize import brentq

from pairflow.errors import InputError
from pairflow.kinds.molecules import library
from pairflow.kinds.molecules.fields import FOREIGN, MAPPED, read_smiles
from pairflow.kinds.molecules.library import SMILES_COLUMNS, Row
from pairflow.kinds.molecules.own_column import plain_number
from pairflow.kinds.molecules.prepare import SPECIALS
from pairflow.kinds.molecules.reading import ReadMolecules
from pairflow.kinds.molecules.settings import Molecules
from pairflow.kinds.molecules.standardise import DUMMY, METAL, atoms_of, has_dummy, has_metal

_ANY = 2**62  # tokens per row, so that no molecule is too long
_ION = "became an ion"
SAMPLED_ROWS = 200

TINY = 4  # heavy atoms; smaller molecules are mostly solvents, gases and ions
REMEDIES = {  # reason to reject a row -> what to do
    FOREIGN["SELFIES"]: "decode them first: selfies.decoder(text)",
    FOREIGN["InChI"]: "convert them first: Chem.MolToSmiles(Chem.MolFromInchi(text)) of RDKit",
    DUMMY: "keep them with --dummies keep",
    METAL: "keep them with --metals keep",
    **dict.fromkeys(("SELFIES cannot write it", "groups cannot write it"), "try --representation smiles"),
}
FEATURES = {  # feature whose molecules are counted -> the rule that applies to it, or what is done
    "of several fragments": "fragments",
    "with charges, nitro groups aside": "charges",
    "with isotope labels": "isotopes",
    "with atom maps": "the maps are dropped",
    "with stereocentres": "stereo",
    "with double bond geometry": "stereo",
    "with R groups or dummy atoms": "dummies",
    "with metals": "metals",
    f"of under {TINY} heavy atoms": "min_heavy_atoms",
}


class Survey(ReadMolecules):
    """Reads all molecules of a file, standardised as in the experiment, and counts what is in it.

    Attributes:
        features: how many molecules have each of FEATURES before standardisation; duplicates and molecules
            that a rule rejects count, too.
        ions: the number of molecules that are charged because a counter-ion was removed.
        lengths: the numbers of tokens (D,) of the D distinct molecules, with `<bos>` and `<eos>`.
        groups: the numbers (D,) of their scaffolds.
        lines: the numbers (D,) of their first rows in the file.
        unit: what the number of a row counts (line, record or row).
        rejects: a table of the rejected rows, without duplicates: number, text, reason.
        repeats: each duplicate, and the first row with its molecule, by their numbers in the file.
        of: the number of rows of the file, of which `total` were read.
        share: the D molecules as a share of the distinct molecules of the file, an estimate unless all rows
            were read.
    """

    lists_duplicates = False

    def __init__(
        self,
        rows: Sequence[Row] | Iterable[Row],
        settings: Molecules,
        unit: str = "line",
        processes: int = 1,
        of: int | None = None,
    ):
        """Read all rows, which may be some `of` the rows of a file. Raises InputError without a molecule."""
        self.unit = unit
        distinct = settings.model_copy(update={"drop_duplicates": True})
        super().__init__(rows, distinct, _ANY, processes, _features)
        self.features, self.ions = {name: self.counts[name] for name in FEATURES}, self.counts[_ION]
        rejects = [(number, text, reason.partition(":")[0]) for _, text, reason, number in self.rejected]
        self.rejects = pd.DataFrame(rejects, columns=["number", "text", "reason"])
        if not len(self):
            raise InputError(f"no molecule in {self.total:,} rows: {self.say_rejected()}")
        self.lengths, self.groups = self.column("sizes") + 2, self.column("scaffolds")
        self.lines = self.column("numbers")
        line_of = dict(zip(self.column("rows"), self.lines, strict=True))
        self.repeats = [(line, int(line_of[first])) for line, first in self.repeats]
        self.of = of or self.total
        self.share = len(self) / self._count_distinct()

    def say_rejected(self) -> str:
        """Say how many rows are rejected for each reason, and what to do about it."""
        return "; ".join(
            f"{count:,} {reason}, the first in {self.unit} {number}: {text[:60]!r}"
            + (f" ({REMEDIES[reason]})" if reason in REMEDIES else "")
            for reason, count, number, text in first_rejected(self.rejects)
        )

    def _count_distinct(self) -> float:
        """Estimate the number of distinct molecules in the file. If each occurs m times, a random part s of
        V valid rows has V / m (1 - (1 - s)^m) of them, which is D: m is the solution."""
        share = self.total / self.of
        valid = (len(self) + self.duplicates) / share
        if share == 1 or not self.duplicates:
            return len(self) / share
        return valid / brentq(lambda m: valid / m * (1 - (1 - share) ** m) - len(self), 1, valid)

    def length(self, max_too_long_share: float, multiple: int = 8) -> int:
        """N: the smallest multiple of `multiple` that at most this share of the molecules exceeds."""
        ordered = np.sort(self.lengths)
        needed = int(ordered[len(ordered) - 1 - int(max_too_long_share * len(ordered))])
        return -(-needed // multiple) * multiple

    def vocabulary_size(self, length: int, known: Sequence[str] = SPECIALS) -> int:
        """K: the number of `known` symbols, and of others in the molecules that fit `length`."""
        return len(self.tokens_within(length - 2).union(known))


def draw_rows(rows: Iterable[Row], most: int) -> tuple[list[Row], int]:
    """Return `most` of the rows, drawn at random but in order, and the number of all rows (algorithm R of
    Vitter 1985). Every call draws the same."""
    generator, chosen, total = random.Random(0), list[Row](), 0
    for total, row in enumerate(rows, 1):
        if total <= most:
            chosen.append(row)
        elif (place := int(generator.random() * total)) < most:
            chosen[place] = row
    return sorted(chosen, key=lambda row: row.number), total


def first_rejected(rejected: pd.DataFrame) -> Iterator[tuple[str, int, int, str]]:
    """Yield each reason, the most frequent first: reason, number of rows, first row's number and text."""
    firsts = rejected.drop_duplicates("reason").set_index("reason")
    for reason, count in Counter(rejected["reason"]).most_common():
        yield reason, count, *firsts.loc[reason, ["number", "text"]]


def find_column(path: Path) -> str:
    """Return the column of a CSV or Excel file that has SMILES: most of its first fields are molecules.

    Of several such columns, one with a usual name (`SMILES_COLUMNS`) is chosen. Raises InputError if there is
    none, if the choice is not clear, or if the name of the column is a molecule: the header line is missing.
    """
    columns = library.columns(path, SAMPLED_ROWS)
    mostly_molecules = {
        name: sum(map(is_molecule, fields)) > len(fields) / 2 for name, fields in columns.items()
    }
    usable = [name for name, holds in mostly_molecules.items() if holds]
    usual = sorted(
        (name for name in usable if name.lower() in SMILES_COLUMNS),
        key=lambda name: SMILES_COLUMNS.index(name.lower()),
    )
    names = ", ".join(map(repr, usable or list(mostly_molecules)[:20]))
    if not usable:
        for name, fields in columns.items():
            for reason in FOREIGN.values():
                if sum(_why_rejected(field) == reason for field in fields) > len(fields) / 2:
                    raise InputError(f"{path}: column {name!r} holds {reason}; {REMEDIES[reason]}")
        raise InputError(f"{path}: no column holds SMILES in most rows; found {names}")
    if not usual and len(usable) > 1:
        raise InputError(f"{path}: several columns hold SMILES, {names}: name one with --column")
    column = (usual or usable)[0]
    if is_molecule(column):
        raise InputError(f"{path}: no header line: its first line holds the molecule {column!r}")
    return column


def numeric_columns(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns in which most fields that are not empty are numbers, with at least three different ones."""
    numeric = []
    for name, fields in columns.items():
        filled = [field for field in fields if field.strip()]
        numbers = [number for field in filled if (number := plain_number(field)) is not None]
        if len(numbers) > len(filled) / 2 and len(set(numbers)) > 2:
            numeric.append(name)
    return numeric


def column_of(path: Path) -> str:
    """The column of a table with SMILES (see `find_column`); "smiles" for a format without columns."""
    return find_column(path) if library.format_of(path) in library.TABLES else "smiles"


def is_molecule(text: str) -> bool:
    """Whether RDKit reads a text as a molecule of at least one atom."""
    with rdBase.BlockLogs(), suppress(InputError):
        return read_smiles(text.strip()).GetNumAtoms() > 0
    return False


def _why_rejected(text: str) -> str:
    """The reason why a text is no SMILES; empty if it is."""
    with rdBase.BlockLogs():
        try:
            read_smiles(text.strip())
        except InputError as reason:
            return str(reason)
    return ""


def _is_charged(atom: Chem.Atom) -> bool:
    """Whether an atom has a charge that no neighbour balances, as in a nitro group."""
    charge = atom.GetFormalCharge()
    return charge != 0 and all(charge * other.GetFormalCharge() >= 0 for other in atom.GetNeighbors())


def _features(molecule: Chem.Mol, standardised: Chem.Mol | None) -> Iterator[str]:
    """Yield the FEATURES that a molecule has, and _ION if its standardised form has become an ion."""
    atoms, unknown = atoms_of(molecule), Chem.ChiralType.CHI_UNSPECIFIED
    bonds = map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    present = (
        len(Chem.GetMolFrags(molecule)) > 1,
        any(map(_is_charged, atoms)),
        any(atom.GetIsotope() for atom in atoms),
        molecule.HasProp(MAPPED) == 1,
        any(atom.GetChiralTag() != unknown for atom in atoms),
        any(bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in bonds),
        has_dummy(molecule),
        has_metal(molecule),
        molecule.GetNumHeavyAtoms() < TINY,
    )
    yield from compress(FEATURES, present)
    if standardised and Chem.GetFormalCharge(standardised) != Chem.GetFormalCharge(molecule) == 0:
        yield _ION
