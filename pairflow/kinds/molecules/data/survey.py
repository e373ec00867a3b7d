"""Reads a user's file of molecules for `pairflow new`: counts its content, and finds its SMILES column."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, islice
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rdkit import Chem
from scipy.optimize import brentq

from pairflow.arguments import nearest
from pairflow.data.draft import Entry
from pairflow.data.source import DatasetSize
from pairflow.data.tabular import columns, describe_sheets
from pairflow.errors import InputError
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.fields import (
    FOREIGN,
    LOST,
    MAPPED,
    UNKNOWN,
    Row,
    count_atoms,
    is_molecule,
    why_foreign,
)
from pairflow.kinds.molecules.data.groups import MIXTURE
from pairflow.kinds.molecules.data.library import read_rows, usual_place
from pairflow.kinds.molecules.data.prepare import SPECIALS
from pairflow.kinds.molecules.data.reading import ReadMolecules
from pairflow.kinds.molecules.settings import Molecules
from pairflow.kinds.molecules.structures.standardise import (
    DUMMY,
    METAL,
    atoms_of,
    has_dummy,
    has_metal,
    has_mixed_stereo,
)

_ANY = 2**62  # tokens per row, so that no molecule is too long
_ION = "became an ion"
SAMPLED_ROWS = 200

MIXED = "with racemic or relative centres"
RADICALS = "with radicals (a lost hydrogen?)"
TINY = 4  # heavy atoms; smaller molecules are mostly solvents, gases and ions
REMEDIES = {  # reason to reject a row -> what to do
    FOREIGN["SELFIES"]: "decode them first: selfies.decoder(text)",
    FOREIGN["InChI"]: "convert them first: Chem.MolToSmiles(Chem.MolFromInchi(text)) of RDKit",
    FOREIGN["InChIKey"]: "look them up in a database: they hold no structure",
    FOREIGN["reaction"]: "keep the products: text.rpartition('>')[2] of Python",
    FOREIGN["HTML"]: "unescape them first, such as &gt;: html.unescape(text) of Python",
    DUMMY: "keep them with --dummies keep",
    METAL: "keep them with --metals keep",
    MIXTURE: "keep the largest part with --fragments largest",
    **dict.fromkeys(("SELFIES cannot write it", "groups cannot write it"), "try --representation smiles"),
}
FEATURES = {  # feature whose molecules are counted -> the rule that applies to it, or what is done
    "of several fragments": "fragments",
    "with charges, except nitro groups": "charges",
    RADICALS: "they stay",
    "with isotope labels": "isotopes",
    "with atom maps": "the maps are dropped",
    "with stereocentres": "stereo",
    "with double bond geometry": "stereo",
    "with stereo marks that RDKit drops": "such as the axis of an allene; both forms are one molecule",
    MIXED: "one form is kept, as drawn",
    "with R groups or dummy atoms": "dummies",
    "with metals": "metals",
    f"of under {TINY} heavy atoms": "min_heavy_atoms",
}


class Survey(ReadMolecules):
    """Reads all molecules of a file, standardised as in the experiment, and counts what is in it.

    Attributes:
        features: how many molecules have each of FEATURES (such as charges) before standardisation;
            duplicates and molecules that a rule rejects count, too.
        ions: the number of molecules that are charged because a counter-ion was removed.
        lengths: the numbers of tokens (D,) of the D distinct molecules, with `<bos>` and `<eos>`.
        groups: the number (D,) of each molecule's scaffold; equal numbers are equal scaffolds.
        held_out: whether the user's own split holds a molecule out (D,).
        lines: the number (D,) of each molecule's first row in the file.
        unit: what the number of a row counts (line, record or row).
        rejects: a table of the rejected rows, without duplicates: number, text, reason.
        repeats: for each duplicate the number of its row in the file, and the number of the first row with
            its molecule.
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
        """Read all `rows`, which are the rows of a file or, if `of` is given, a random part of its `of`
        rows. `unit` is what row numbers count. Raises InputError if no molecule can be used."""
        self.unit = unit
        distinct = settings.model_copy(update={"drop_duplicates": True})
        super().__init__(rows, distinct, _ANY, processes, _features)
        self.features, self.ions = {name: self.counts[name] for name in FEATURES}, self.counts[_ION]
        rejects = [(number, text, reason.partition(":")[0]) for _, text, reason, number in self.rejected]
        self.rejects = pd.DataFrame(rejects, columns=["number", "text", "reason"])
        if not len(self):
            raise InputError(f"no usable molecule in {self.total:,} rows: {self.say_rejected()}")
        molecules = self.molecules
        self.lengths = molecules["size"].to_numpy() + 2
        self.groups, self.lines, self.held_out = (
            molecules[name].to_numpy() for name in ("scaffold", "number", "held_out")
        )
        line_of = dict(zip(molecules["row"].to_pylist(), self.lines.tolist(), strict=True))
        self.repeats = [(line, line_of[first]) for line, first in self.repeats]
        self.of = of or self.total
        self.share = len(self) / self._count_distinct()

    def say_rejected(self) -> str:
        """Say how many rows are rejected for each reason, where the first is, and what to do about the
        reason."""
        return "; ".join(
            f"{reason} ({count:,} row{'s' * (count > 1)}, the first in {self.unit} {number}: {text[:60]!r}"
            + (f"; {REMEDIES[reason]})" if reason in REMEDIES else ")")
            for reason, count, number, text in first_rejected(self.rejects)
        )

    def _count_distinct(self) -> float:
        """Estimate the number of distinct molecules in the file: V / m, if each occurs m times in V valid
        rows. A random share s of the rows then has V / m (1 - (1 - s)^m) distinct molecules, and m is the
        number for which these are the D that were found."""
        share = self.total / self.of
        valid = (len(self) + self.duplicates) / share
        if share == 1 or not self.duplicates:
            return len(self) / share
        return valid / brentq(lambda m: valid / m * (1 - (1 - share) ** m) - len(self), 1, valid)

    def length(self, max_too_long_share: float, multiple: int = 8) -> int:
        """Return N, the tokens per row: the smallest multiple of `multiple` that at most the given share of
        the molecules exceeds."""
        ordered = np.sort(self.lengths)
        needed = int(ordered[len(ordered) - 1 - int(max_too_long_share * len(ordered))])
        return -(-needed // multiple) * multiple

    def vocabulary_size(self, length: int, known: Sequence[str] = SPECIALS) -> int:
        """Return K: the number of `known` symbols, and of further symbols in the molecules that fit
        `length`."""
        return len(self.tokens_within(length - 2).union(known))


def draw_rows(rows: Iterable[Row], most: int) -> tuple[list[Row], int]:
    """Return `most` of the rows (or all, if they are fewer), drawn at random but in order, and the number
    of all rows (algorithm R of Vitter 1985). Every call draws the same."""
    generator, chosen, total = random.Random(0), list[Row](), 0
    for total, row in enumerate(rows, 1):
        if total <= most:
            chosen.append(row)
        elif (place := int(generator.random() * total)) < most:
            chosen[place] = row
    return sorted(chosen, key=lambda row: row.number), total


def first_rejected(rejected: pd.DataFrame) -> Iterator[tuple[str, int, int, str]]:
    """Yield, for each reason in the table `rejected`, the most frequent first: the reason, its number of
    rows, and the number and the text of its first row."""
    firsts = rejected.drop_duplicates("reason").set_index("reason")
    for reason, count in Counter(rejected["reason"]).most_common():
        yield reason, count, *firsts.loc[reason, ["number", "text"]]


def list_counts(
    counts: Survey, data: Entry, size: DatasetSize, left_out: int, rejects: Path
) -> list[tuple[str, int, str]]:
    """Return the lines that describe the file of `counts`, each a label, a number and a remark. `data` and
    `size` are the section `data` and the size of the suggested experiment, `left_out` is the number of
    molecules that it does not train on, and `rejects` is the path of the table of rejected rows."""
    too_long = int(np.count_nonzero(counts.lengths > size.length))
    quantiles = np.quantile(counts.lengths, [0.05, 0.5, 0.95, 1], method="lower")
    spread = "5 % have up to {}, half up to {}, 95 % up to {}, the longest {}".format(*quantiles)
    reference = ("  only for reference", left_out, "known, but not trained on")
    key = next(key for key in ("split_column", "held_out", "split") if key in data)
    split, own = f"{key}: {data[key]}", key != "split"
    return [
        *_list_rows(counts, data, rejects),
        ("N, tokens per row", size.length, spread),
        ("distinct molecules", len(counts.lengths), ""),
        ("  longer than N, left out", too_long, f"max_too_long_share: {data['max_too_long_share']:g}"),
        ("  for training", size.rows, split),
        ("  for validation", size.validation_rows, f"{counts.in_both:,} more are in both parts" * own),
        *([reference] if left_out else []),
        ("K, symbols", size.vocabulary_size, ""),
    ]


def _list_rows(counts: Survey, data: Entry, rejects: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the lines of `list_counts` on rows, rejected rows, duplicates and FEATURES: a label, a number
    and a remark. `data` is the section of the experiment, and `rejects` the path of the table of rejected
    rows."""
    sampled = "drawn at random; all numbers below are of these rows"
    part = counts.total < counts.of
    listed = f"{'' if part else 'all '}are listed in {'' if rejects.parent.name else './'}{rejects}"
    yield "rows", counts.of, ""
    if part:
        yield "  looked at", counts.total, sampled
    yield "rejected", len(counts.rejects), listed * bool(len(counts.rejects))
    for reason, number, location, text in islice(first_rejected(counts.rejects), 8):
        yield f"  {reason}", number, f"the first: {counts.unit} {location}, {text[:40]!r}"
    rule = f", identity: {data['identity']}" * (data["identity"] != "smiles")
    yield "duplicates", counts.duplicates, "drop_duplicates: true" + rule
    for name, key in FEATURES.items():
        yield name, counts.features[name], f"{key}: {data[key]}" if key in data else key


class SmilesColumn(NamedTuple):
    """The column of a table that has SMILES: its name, its sheet (None for the first or only sheet), the
    first fields of all columns of that sheet, and the names of its other columns that also hold SMILES."""

    name: str
    sheet: str | None
    fields: dict[str, list[str]]
    others: list[str]


def find_column(path: Path, column: str | None = None, sheet: str | None = None) -> SmilesColumn:
    """Find the column of a table that has SMILES: `column`, or one of which most first fields are molecules.
    All sheets of an Excel file are searched, or only `sheet`.

    Of several such columns, one with a usual name is chosen. Raises InputError if there is none, if the
    choice is not clear, or if the name of the column is a molecule: the header line is missing.
    """
    seen = dict[str | None, dict[str, list[str]]]()
    for title, fields in columns(path, SAMPLED_ROWS, sheet):
        usable = [name for name in fields if name == column] if column else find_smiles(fields)
        if usable:
            name = column or _choose(path, usable)
            others = [other for other in usable if other != name and max(map(len, fields[other])) > 2]
            return SmilesColumn(name, title if sheet or seen else None, fields, others)
        seen[title] = fields
    for name, reason in () if column else chain.from_iterable(map(find_foreign, seen.values())):
        raise InputError(f"{path}: column {name!r} holds {reason}; {REMEDIES[reason]}")
    every = [name for fields in seen.values() for name in fields]
    problem = (
        f"no column {column!r}{nearest(column, every)}" if column else "no column holds SMILES in most rows"
    )
    raise InputError(f"{path}: {problem}; found {describe_sheets(seen)}")


def find_smiles(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of the columns of which most fields are molecules. `columns` maps names to fields."""
    return [name for name, fields in columns.items() if are_molecules(fields)]


def find_foreign(columns: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the name of each column of which most fields are molecules in another notation, with the reason
    to reject them."""
    for name, fields in columns.items():
        reasons = Counter(map(why_foreign, map(str.strip, fields)))
        yield from ((name, reason) for reason in FOREIGN.values() if reasons[reason] > len(fields) / 2)


def _choose(path: Path, usable: list[str]) -> str:
    """Choose one of several columns with SMILES by its name. Raises InputError if no choice is clear, and if
    the name is a molecule."""
    usual = [name for name in usable if usual_place(name) < inf]
    if not usual and len(usable) > 1:
        names = ", ".join(map(repr, usable))
        raise InputError(f"{path}: several columns hold SMILES, {names}: name one with --column")
    column = min(usual, key=usual_place, default=usable[0])
    if is_molecule(column):
        raise InputError(f"{path}: no header line: its first line holds the molecule {column!r}")
    return column


def read_found(path: Path, column: str | None = None, progress: bool = False) -> Iterator[Row]:
    """Yield the rows of a file as `read_rows` does. The SMILES of a table are in `column`; if it is not
    given, the column is found by `find_column`."""
    if library.is_table(path):
        found = find_column(path, column)
        return read_rows(path, found.name, progress, found.sheet)
    return read_rows(path, column or "smiles", progress)


def are_molecules(texts: Iterable[str]) -> bool:
    """Return whether most of the different texts are molecules, and at least half of these molecules have
    several atoms: a single atom may also be a letter of a text, such as a chord."""
    different = {*texts}
    sizes = [size for text in different if (size := count_atoms(text))]
    return len(sizes) > len(different) / 2 and 2 * sum(size > 1 for size in sizes) >= len(sizes)


def _is_charged(atom: Chem.Atom) -> bool:
    """Return whether an atom has a charge that no neighbour balances. In a nitro group, neighbours balance
    the charges."""
    charge = atom.GetFormalCharge()
    return charge != 0 and all(charge * other.GetFormalCharge() >= 0 for other in atom.GetNeighbors())


def _features(molecule: Chem.Mol, standardised: Chem.Mol | None) -> Iterator[str]:
    """Yield the names in FEATURES that apply to a molecule, and _ION if standardisation has made it an ion.
    `standardised` is None if a rule rejects the molecule."""
    atoms = atoms_of(molecule)
    bonds = map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    present = (
        len(Chem.GetMolFrags(molecule)) > 1,
        any(map(_is_charged, atoms)),
        any(atom.GetNumRadicalElectrons() for atom in atoms),
        any(atom.GetIsotope() for atom in atoms),
        molecule.HasProp(MAPPED) == 1,
        any(atom.GetChiralTag() != UNKNOWN for atom in atoms),
        any(bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in bonds),
        molecule.HasProp(LOST) == 1,
        has_mixed_stereo(molecule),
        has_dummy(molecule),
        has_metal(molecule),
        molecule.GetNumHeavyAtoms() < TINY,
    )
    yield from compress(FEATURES, present)
    if standardised and Chem.GetFormalCharge(standardised) != Chem.GetFormalCharge(molecule) == 0:
        yield _ION
