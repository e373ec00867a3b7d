"""Measures the molecules of any program as if they were samples, compared with a user's library."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase

from pairflow.artifacts import Metadata, atomic
from pairflow.data.draft import table_lines
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.library import Row
from pairflow.kinds.molecules.data.reading import canonicalise, read_molecule
from pairflow.kinds.molecules.data.survey import read_found
from pairflow.kinds.molecules.measures import chemistry, plausible
from pairflow.kinds.molecules.measures.counts import canonical, count, count_reasons
from pairflow.kinds.molecules.measures.plausible import Norms
from pairflow.kinds.molecules.measures.training_molecules import PROPERTY_ROWS, TrainingNeighbours, some
from pairflow.kinds.molecules.on_demand import files
from pairflow.kinds.molecules.settings import LibraryRules
from pairflow.kinds.molecules.settings.metrics import METRICS
from pairflow.kinds.molecules.structures.descriptors import PROPERTIES, describe, tabulate
from pairflow.kinds.molecules.structures.similarity import Neighbours
from pairflow.kinds.molecules.structures.standardise import UNPARSABLE, identify, say_rules, write_smiles
from pairflow.runtime.processes import map_chunks

_CHUNK = 512  # rows that are sent to a process at a time
_FEW = 16  # chunks for which no other process is started
_writer = partial(files.writer, parsed=False, properties=True)
_CHARGED = re.compile(r"[+-]\d*(:\d+)?\]")  # at the end of an atom in brackets


class Standardised(NamedTuple):
    """A row of a file of molecules.

    Attributes:
        name: the name of the row, which may be empty.
        text: the SMILES in the file.
        smiles: the canonical SMILES of the standardised molecule, or of the molecule as it is if `refused`;
            empty if the row is no molecule.
        key: what identifies the molecule by the rule `identity`.
        neutral: what identifies it once its charges are neutralised.
        reason: why the row is no molecule; empty if it is one.
        refused: whether a rule rejects the molecule.
    """

    name: str
    text: str
    smiles: str = ""
    key: str = ""
    neutral: str = ""
    reason: str = ""
    refused: bool = False


@dataclass(frozen=True)
class Measured:
    """The molecules of a file, compared with a user's library of molecules.

    Attributes:
        summary: the metrics, as text.
        rows: the rows of the file.
        library: the molecules of the library, to find the nearest one to each row.
        known: those canonical SMILES in the file or the library that are not novel.
        norms: what is usual in the library, to tell which rows are plausible.
    """

    summary: str
    rows: list[Standardised]
    library: TrainingNeighbours
    known: frozenset[str]
    norms: Norms

    def write(self, out: Path) -> None:
        """Write a table with a line for each row to the file `out`. Raises InputError if the format of `out`
        cannot hold the table."""
        write = _writer(out, count=len(self.rows))
        table = pd.DataFrame([self._describe(row) for row in self.rows], dtype=object)  # numbers stay whole
        with atomic(out) as [temporary]:
            write(temporary, table, Metadata(kind="molecules"))

    def _describe(self, row: Standardised) -> Mapping[str, object]:
        smiles = row.smiles
        line = {"name": row.name, "smiles": smiles or row.text, "valid": "yes" if smiles else "no"}
        if not smiles or (molecule := Chem.MolFromSmiles(smiles)) is None:
            return line
        known = {"known": "yes" if smiles in self.known else "no"}
        oddities = plausible.describe_oddities(molecule, self.norms)
        return line | known | oddities | describe(molecule) | self.library.describe(smiles)


def measure(
    molecules: Path, reference: Path, rules: LibraryRules, out: Path | None, threads: int, progress: bool
) -> Measured:
    """Compare the molecules in the file `molecules` with a library, the file `reference`, both standardised
    by `rules`.

    A molecule of the library that a rule rejects counts as known, but otherwise not as part of the library. A
    molecule is also known if the library has it with other charges, as in a salt. `out` is only checked:
    InputError is raised at once if its format cannot hold the table, and also if the library has no molecule.
    """
    if out:
        _writer(out)
    rows = _read(molecules, rules, threads, progress, out)
    library_rows = _read(reference, rules, threads, progress)
    names: dict[str, tuple[str, str]] = {}
    for row in library_rows:
        if row.smiles and not row.refused:
            names.setdefault(row.key, (row.smiles, row.name))
    trained = [smiles for smiles, _ in names.values()]
    if not trained:
        raise InputError(f"{reference}: holds no molecule that RDKit reads and the rules accept")
    neutral = {row.neutral for row in library_rows}
    known = frozenset(row.smiles for row in chain(rows, library_rows) if row.neutral in neutral)
    first: dict[str, str] = {}  # key: the first SMILES with it, which stands for all
    same = (row._replace(smiles=first.setdefault(row.key, row.smiles)) for row in rows if row.smiles)
    readable = [row.smiles if canonical(row.smiles) else row.text.strip() for row in same]
    norms = plausible.find_norms(trained, threads, progress)
    chosen = [trained[row] for row in some(len(trained), PROPERTY_ROWS)]
    structures = tabulate(("fingerprint", "scaffold"), trained, threads, progress)
    properties = tabulate(PROPERTIES, chosen, threads, progress).dropna().to_numpy()
    neighbours = Neighbours(structures["fingerprint"])
    library = chemistry.TrainingMolecules(neighbours, Counter(structures["scaffold"]), properties)
    described = chemistry.describe_samples(readable, library, plausible.DESCRIBED, threads, progress)
    left = plausible.survive(described[~described.index.isin(known)], norms, threads, progress).sum()
    counts = count(readable, known)
    counts = {name: counts[name] for name in ("valid", "unique_strict", "novel_strict")}
    counts |= {stage: int(left[stage]) for stage in plausible.STAGES}
    likeness = chemistry.compare(described, library)
    title = f"{molecules} compared with {reference} ({len(trained):,} molecules)"
    nearest = TrainingNeighbours(trained, [name for _, name in names.values()], neighbours)
    labelled = {METRICS[name].label: number for name, number in counts.items()} | _count_invalid(rows)
    return Measured(_summarise(title, len(rows), labelled, likeness, rules), rows, nearest, known, norms)


def _read(
    path: Path, rules: LibraryRules, threads: int, progress: bool, out: Path | None = None
) -> list[Standardised]:
    """Read and standardise the rows of the file `path`, in several processes if it is long. Raises InputError
    if `out` cannot hold a line for each row."""
    rows = [*read_found(path, progress=progress)]
    if out:
        _writer(out, count=len(rows))
    chunks = [rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK)]
    processes = threads if len(chunks) > _FEW else 1
    return [*chain.from_iterable(map_chunks(partial(_standardise, rules), chunks, processes))]


def _standardise(rules: LibraryRules, rows: Iterable[Row]) -> list[Standardised]:
    standardised, uncharged = [], rules.model_copy(update={"charges": "neutralise"})
    with rdBase.BlockLogs():
        for row in rows:
            try:
                molecule = read_molecule(row)
            except InputError as error:
                standardised.append(Standardised(row.name, row.text, reason=str(error)))
                continue
            refused = False
            try:
                _, smiles = canonicalise(molecule, rules)
                key = neutral = identify(smiles, rules.identity)
                if _CHARGED.search(smiles):
                    neutral = identify(canonicalise(molecule, uncharged)[1], rules.identity)
            except InputError:
                smiles = write_smiles(molecule)
                key = neutral = identify(smiles, rules.identity)
                refused = True
            standardised.append(Standardised(row.name, row.text, smiles, key, neutral, refused=refused))
    return standardised


def _count_invalid(rows: Iterable[Standardised]) -> dict[str, int]:
    """Count the rows that are no molecules by their reason, as a label such as "ring closure"."""
    reasons = Counter(row.reason for row in rows if row.reason)
    unparsable = [row.text.strip() for row in rows if _is_unparsable(row.reason)]
    labelled = {METRICS[name].label: number for name, number in count_reasons(unparsable).items()}
    return labelled | {name: number for name, number in reasons.items() if not _is_unparsable(name)}


def _is_unparsable(reason: str) -> bool:
    return reason.partition(" ")[0] in ("empty", UNPARSABLE)


def _summarise(
    title: str, rows: int, counts: dict[str, int], likeness: dict[str, float], rules: LibraryRules
) -> str:
    """Return the comparison as text: `counts`, by label, with their shares of `rows` and without zeros;
    `likeness`, by metric; and the rules by which both files are standardised."""
    lines = [("rows", rows, "")]
    lines += [(label, number, f"{number / rows:.1%}") for label, number in counts.items() if number]
    labels = {
        name: f"{METRICS[name].label}, distance" if name.endswith("_wasserstein") else METRICS[name].label
        for name in likeness
    }
    digits = {name: 0 if METRICS[name].counted else 3 for name in likeness}
    values = "\n".join(
        f"  {labels[name]:<46}"
        + ("       -  too few molecules" if np.isnan(value) else f"{value:>8,.{digits[name]}f}")
        for name, value in likeness.items()
    )
    applied = f"Both files are standardised by these rules: {say_rules(rules) or 'none'}."
    if rules.identity == "smiles":
        applied += " Tautomers count as different; --identity tautomer takes them for one."
    return f"{table_lines(title, lines)}\n{values}\n{applied}"
