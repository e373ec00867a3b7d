"""Counts over a file of molecules, which is read once, row by row, before an experiment is made of it."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase

from pairflow.data.known import hash_text
from pairflow.errors import InputError
from pairflow.kinds.molecules.library import SMILES_COLUMNS, Row, columns
from pairflow.kinds.molecules.prepare import SPECIALS, canonicalise, read_molecule
from pairflow.kinds.molecules.representations import get_representation
from pairflow.kinds.molecules.settings import Molecules, NewLibrary
from pairflow.kinds.molecules.standardise import has_dummy, has_metal, parse, scaffold

_SAMPLED_ROWS = 200

TINY = 4  # heavy atoms; smaller molecules are mostly solvents, gases and ions
FEATURES = {  # what molecules are counted by -> the rule that treats it
    "of several fragments": "fragments",
    "with charged atoms": "charges",
    "with isotope labels": "isotopes",
    "with stereocentres": "stereo",
    "with double bond geometry": "stereo",
    "with R groups or dummy atoms": "dummies",
    "with metals": "metals",
    f"of under {TINY} heavy atoms": "min_heavy_atoms",
}


@dataclass(frozen=True)
class Survey:
    """Counts over a file, its molecules standardised as the experiment will do it.

    `rejected` lists the rejected rows: `number` in the file, `text` and `reason`; `unit` (line, record, row)
    is what the number counts. `features` counts the molecules that have each of `FEATURES` before they are
    standardised, duplicates and molecules that a rule rejects included. `ions` counts those that are charged
    because a counter-ion was removed. `lengths` (D,) are the rows' lengths, with `<bos>` and `<eos>`, of the
    D distinct molecules; `scaffolds` (D,) are numbers of their scaffolds by first appearance, None without a
    split by scaffolds. `shortest` has token -> length of the shortest row that holds it.
    """

    rows: int
    rejected: pd.DataFrame
    unit: str
    features: dict[str, int]
    ions: int
    duplicates: int
    lengths: np.ndarray
    scaffolds: np.ndarray | None
    shortest: dict[str, int]

    def length(self, max_too_long_share: float, multiple: int = 8) -> int:
        """The smallest multiple of `multiple` as N that at most this share of the molecules exceeds."""
        ordered = np.sort(self.lengths)
        needed = int(ordered[len(ordered) - 1 - int(max_too_long_share * len(ordered))])
        return -(-needed // multiple) * multiple

    def vocabulary_size(self, length: int) -> int:
        """K: the special symbols, and those of the molecules that fit `length`."""
        return len(SPECIALS) + sum(shortest <= length for shortest in self.shortest.values())


def survey(rows: Iterable[Row], settings: Molecules | NewLibrary, unit: str = "line") -> Survey:
    """Read all rows; InputError if none of them is a molecule, with `unit` before its number in the file.

    The memory per molecule is 12 bytes (a hash of its canonical SMILES, which identifies duplicates, and the
    length of its row), 8 more for the hash of its scaffold, and about 50 while they are sorted at the end.
    Rejected rows are kept.
    """
    hashes, lengths, groups = array("Q"), array("I"), array("Q")
    shortest: dict[str, int] = {}
    rejects: list[tuple[int, str, str]] = []
    features: Counter[str] = Counter()
    ions = 0
    scaffolds = settings.split == "scaffold"
    write = get_representation(settings.representation).tokenize
    with rdBase.BlockLogs():
        for number, text, _ in rows:
            try:
                raw = read_molecule(text)
                features.update(_features(raw))
                molecule, smiles = canonicalise(raw, settings)
                tokens = write(smiles)
            except InputError as error:
                rejects.append((number, str(text), str(error).partition(":")[0]))
                continue
            ions += Chem.GetFormalCharge(molecule) != Chem.GetFormalCharge(raw) == 0
            hashes.append(hash_text(smiles))
            lengths.append(len(tokens) + 2)
            if scaffolds:
                groups.append(hash_text(scaffold(molecule)))
            for token in tokens:
                shortest[token] = min(len(tokens) + 2, shortest.get(token, len(tokens) + 2))
    rejected = pd.DataFrame(rejects, columns=["number", "text", "reason"])
    if not hashes:
        examples = "; ".join(
            f"{count:,} {reason}, the first in {unit} {number}: {text[:60]!r}"
            for reason, count, number, text in first_rejected(rejected)
        )
        raise InputError(f"no molecule in {len(rejected):,} rows: {examples}")
    _, first = np.unique(np.frombuffer(hashes, np.uint64), return_index=True)
    first.sort()  # like `molecules.prepare`: the first of equal rows, in the order of the file
    return Survey(
        rows=len(hashes) + len(rejected),
        rejected=rejected,
        unit=unit,
        features={name: features[name] for name in FEATURES},
        ions=ions,
        duplicates=len(hashes) - len(first),
        lengths=np.frombuffer(lengths, np.uint32)[first].astype(np.int64),
        scaffolds=pd.factorize(np.frombuffer(groups, np.uint64)[first])[0] if scaffolds else None,
        shortest=shortest,
    )


def first_rejected(rejected: pd.DataFrame) -> Iterator[tuple[str, int, int, str]]:
    """(reason, how many rows, number of the first, its text), the most frequent reason first."""
    firsts = rejected.drop_duplicates("reason").set_index("reason")
    for reason, count in Counter(rejected["reason"]).most_common():
        yield reason, count, *firsts.loc[reason, ["number", "text"]]


def find_column(path: Path) -> str:
    """The column of a CSV file that holds SMILES, judged by its first rows: one with a usual name
    (`SMILES_COLUMNS`), or else the only one in which most fields are molecules. InputError where there is
    none or several, and where the header is a molecule itself."""
    mostly_molecules = {
        name: sum(map(is_molecule, fields)) > len(fields) / 2
        for name, fields in columns(path, _SAMPLED_ROWS).items()
    }
    usable = [name for name, holds in mostly_molecules.items() if holds]
    usual = sorted(
        (name for name in usable if name.lower() in SMILES_COLUMNS),
        key=lambda name: SMILES_COLUMNS.index(name.lower()),
    )
    names = ", ".join(map(repr, usable or list(mostly_molecules)[:20]))
    if not usable:
        raise InputError(f"{path}: no column holds SMILES in most rows; found {names}")
    if not usual and len(usable) > 1:
        raise InputError(f"{path}: several columns hold SMILES, {names}: name one with --column")
    column = (usual or usable)[0]
    if is_molecule(column):
        raise InputError(f"{path}: no header line: its first line holds the molecule {column!r}")
    return column


def is_molecule(text: str) -> bool:
    """Whether RDKit reads a text as a molecule with atoms."""
    with rdBase.BlockLogs(), suppress(InputError):
        return parse(text.strip()).GetNumAtoms() > 0
    return False


def _features(molecule: Chem.Mol) -> list[str]:
    """The names of FEATURES that a molecule has."""
    atoms, unknown = molecule.GetAtoms(), Chem.ChiralType.CHI_UNSPECIFIED
    present = (
        len(Chem.GetMolFrags(molecule)) > 1,
        any(atom.GetFormalCharge() for atom in atoms),
        any(atom.GetIsotope() for atom in atoms),
        any(atom.GetChiralTag() != unknown for atom in atoms),
        any(bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in molecule.GetBonds()),
        has_dummy(molecule),
        has_metal(molecule),
        molecule.GetNumHeavyAtoms() < TINY,
    )
    return [name for name, here in zip(FEATURES, present, strict=True) if here]
