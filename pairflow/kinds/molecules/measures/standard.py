"""Measures molecules as publications on graphs of ZINC-250k and QM9 do.

Every row of a file counts as one attempt. A molecule is valid if RDKit reads it as it is. It is identified by
its canonical SMILES without stereochemistry, which graphs do not have, and distances use the same SMILES.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rdkit import Chem, rdBase

from pairflow.data.draft import table_lines
from pairflow.data.split import split_rows
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.data_sets import DATA_SETS
from pairflow.kinds.molecules.data.fields import Row
from pairflow.kinds.molecules.data.reading import read_molecule
from pairflow.kinds.molecules.data.survey import read_found
from pairflow.kinds.molecules.measures.training_molecules import CHEMNET_ROWS, chemnet_features, some
from pairflow.kinds.molecules.settings import Molecules
from pairflow.metrics.frechet import Moments, frechet_distance
from pairflow.runtime.processes import map_chunks

_CHUNK = 2_000  # rows that are sent to a process at a time


class FieldValues(NamedTuple):
    """The values of a file of molecules: the numbers of attempts (rows), of valid ones, of distinct valid
    ones (VU), and of those that are not training molecules (VUN); and the Fréchet ChemNet Distance of the
    valid ones to test and to training molecules."""

    attempts: int
    valid: int
    unique: int
    novel: int
    fcd_test: float
    fcd_train: float


_LABELS = ("attempts", "valid", "valid and unique (VU)", "valid, unique and novel (VUN)")


@dataclass(frozen=True)
class Standard:
    """A published data set as publications compare with it: the SMILES of its training molecules, and the
    moments (count, mean, scatter) of ChemNet's features of two sets, the test molecules and 10,000
    training molecules."""

    name: str
    train: frozenset[str]
    moments: tuple[Moments, Moments]

    @classmethod
    def read(cls, name: str, threads: int = 1, progress: bool = False) -> "Standard":
        """Read the data set `name`. Raises InputError if the package `fcd` is not installed, or if a download
        fails."""
        train, test = read_published(name, threads, progress)
        chosen = [train[row] for row in some(len(train), CHEMNET_ROWS)]
        moments = _moments(test, progress), _moments(chosen, progress)
        return cls(name, frozenset(train), moments)

    def measure(self, samples: Sequence[str | None], progress: bool = False) -> FieldValues:
        """Measure attempts at molecules. `samples` are canonical SMILES without stereochemistry, as `spell`
        returns them, or None if invalid.

        Raises InputError if fewer than two are valid, because they have no Fréchet ChemNet Distance.
        """
        valid = [sample for sample in samples if sample]
        if len(valid) < 2:
            raise InputError(
                f"expected at least 2 valid molecules, found {len(valid)} in {len(samples)} rows"
            )
        unique = {*valid}
        moments = _moments(valid, progress)
        distances = (frechet_distance(moments, reference) for reference in self.moments)
        return FieldValues(len(samples), len(valid), len(unique), len(unique - self.train), *distances)

    def report(self, path: Path, threads: int, progress: bool) -> str:
        """Measure the molecules in the file `path`, and return their counts and distances as a text of
        several lines."""
        values = self.measure(spell(read_found(path, progress=progress), threads), progress)
        counts = zip(_LABELS, values[:4], strict=True)
        lines = [(label, number, f"{number / values.attempts:.1%}") for label, number in counts]
        test, train = (f"{reference.count:,}" for reference in self.moments)
        return (
            f"{table_lines(f'{path} by the standard of {self.name}', lines)}\n"
            f"  {f'FCD to {test} test molecules':<34}{values.fcd_test:>12.3f}\n"
            f"  {f'FCD to {train} training molecules':<34}{values.fcd_train:>12.3f}"
        )


def read_published(name: str, threads: int = 1, progress: bool = False) -> tuple[list[str], list[str]]:
    """Return the training and the test molecules of the data set `name`, as canonical SMILES without
    stereochemistry. The test molecules are the published validation split or, without one, the default
    split of experiments."""
    source = DATA_SETS[name]
    settings = Molecules(source=name, length=64)  # of these only the column and the split matter
    spelled = spell(source.rows(settings.column, progress), threads)
    split = settings.validation_fraction, settings.split_seed, None, source.validation_rows()
    sides = split_rows(range(len(spelled)), *split)
    parts: dict[str, list[str]] = {"train": [], "validation": []}
    for molecule, side in zip(spelled, sides, strict=True):
        if molecule:
            parts[side].append(molecule)
    return parts["train"], parts["validation"]


def spell(rows: Iterable[Row], threads: int = 1) -> list[str | None]:
    """Return the canonical SMILES of each row, without stereochemistry; None for a row that is no
    molecule."""
    every = [*rows]
    chunks = [every[first : first + _CHUNK] for first in range(0, len(every), _CHUNK)]
    return [*chain.from_iterable(map_chunks(_spell, chunks, threads if len(chunks) > 1 else 1))]


def _spell(rows: Sequence[Row]) -> list[str | None]:
    spelled: list[str | None] = [None] * len(rows)
    with rdBase.BlockLogs():
        for number, row in enumerate(rows):
            with suppress(InputError):
                spelled[number] = Chem.MolToSmiles(read_molecule(row), isomericSmiles=False)
    return spelled


def _moments(molecules: Sequence[str], progress: bool) -> Moments:
    return Moments.from_features(chemnet_features(molecules, progress=progress))
