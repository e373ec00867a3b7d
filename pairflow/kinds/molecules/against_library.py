"""Measures the molecules of any program as if they were samples, compared with a user's library."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rdkit import Chem

from pairflow.artifacts import Metadata, atomic
from pairflow.data.draft import table_lines
from pairflow.errors import InputError
from pairflow.kinds.molecules import chemistry, files, plausible
from pairflow.kinds.molecules.counts import canonical, count, count_reasons
from pairflow.kinds.molecules.descriptors import PROPERTIES, describe, tabulate
from pairflow.kinds.molecules.kind import METRICS
from pairflow.kinds.molecules.library import Row, read_rows
from pairflow.kinds.molecules.plausible import Norms
from pairflow.kinds.molecules.similarity import Neighbours
from pairflow.kinds.molecules.survey import column_of
from pairflow.kinds.molecules.training_molecules import PROPERTY_ROWS, TrainingNeighbours, some


@dataclass(frozen=True)
class Measured:
    """The molecules of a file, compared with a user's library of molecules.

    Attributes:
        summary: the metrics, as text.
        rows: the rows of the file.
        library: the molecules of the library, to find the nearest one to each row.
        norms: what is usual in the library, by which rows are plausible or not.
    """

    summary: str
    rows: list[Row]
    library: TrainingNeighbours
    norms: Norms

    def write(self, out: Path) -> None:
        """Write a table with a line for each row. Raises InputError for a format that cannot hold it."""
        write = files.writer(out, parsed=False, properties=True, count=len(self.rows))
        table = pd.DataFrame([self._describe(row) for row in self.rows], dtype=object)  # numbers stay whole
        with atomic(out) as [temporary]:
            write(temporary, table, Metadata(kind="molecules"))

    def _describe(self, row: Row) -> dict[str, Any]:
        smiles = canonical(row.text.strip()) if not row.reason else None
        line = {"name": row.name, "smiles": smiles or row.text, "valid": "yes" if smiles else "no"}
        if not smiles or (molecule := Chem.MolFromSmiles(smiles)) is None:
            return line
        known = {"known": "yes" if smiles in self.library else "no"}
        oddities = plausible.describe_oddities(molecule, self.norms)
        return line | known | oddities | describe(molecule) | self.library.describe(smiles)


def measure(molecules: Path, reference: Path, threads: int, progress: bool) -> Measured:
    """Compare a file of molecules with a library. Raises InputError if the library has no molecule."""
    rows, library_rows = ([*read_rows(path, column_of(path), progress)] for path in (molecules, reference))
    names: dict[str, str] = {}
    for row in library_rows:
        if not row.reason and (smiles := canonical(row.text.strip())):
            names.setdefault(smiles, row.name)
    trained = [*names]
    if not trained:
        raise InputError(f"{reference}: holds no molecule that RDKit reads")
    texts, known = [row.text.strip() for row in rows], frozenset(trained)
    norms = plausible.find_norms(trained, threads, progress)
    chosen = [trained[row] for row in some(len(trained), PROPERTY_ROWS)]
    structures = tabulate(("fingerprint", "scaffold"), trained, threads, progress)
    properties = tabulate(PROPERTIES, chosen, threads, progress).dropna().to_numpy()
    neighbours = Neighbours(structures["fingerprint"])
    library = chemistry.TrainingMolecules(neighbours, Counter(structures["scaffold"]), properties)
    described = chemistry.describe_samples(texts, library, plausible.DESCRIBED, threads, progress)
    useful = chemistry.are_useful(described, library, known)
    left = plausible.survive(described[~described.index.isin(known)], norms, threads, progress).sum()
    counts = count(texts, known)
    counts = {name: counts[name] for name in ("valid", "unique_strict", "novel_strict")}
    counts |= {stage: int(left[stage]) for stage in plausible.STAGES}
    counts |= {"useful_strict": int(useful["useful_strict"].sum())}
    counts |= count_reasons(text for text in texts if canonical(text) is None)
    likeness = chemistry.compare(described, library)
    title = f"{molecules} compared with {reference} ({len(trained):,} molecules)"
    nearest = TrainingNeighbours(trained, [*names.values()], neighbours)
    return Measured(_summarise(title, len(texts), counts, likeness), rows, nearest, norms)


def _summarise(title: str, rows: int, counts: dict[str, int], likeness: dict[str, float]) -> str:
    """Return a text with a line for each metric, which has its label in the report."""
    lines = [("rows", rows, "")]
    lines += [
        (METRICS[name].label, number, f"{number / rows:.1%}") for name, number in counts.items() if number
    ]
    labels = {
        name: f"{METRICS[name].label}, distance" if name.endswith("_wasserstein") else METRICS[name].label
        for name in likeness
    }
    digits = {name: 0 if METRICS[name].counted else 3 for name in likeness}
    values = "\n".join(f"  {labels[name]:<46}{value:>8,.{digits[name]}f}" for name, value in likeness.items())
    return f"{table_lines(title, lines)}\n{values}"
