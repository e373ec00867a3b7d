"""Sources of molecules. A new data set is an entry of `DATA_SETS` in the settings."""

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import StrictInt, TypeAdapter, ValidationError

from pairflow.artifacts import digest
from pairflow.data.download import RawFile
from pairflow.data.prepared import parent_digest, write_prepared
from pairflow.data.source import DatasetSize, DataSource, PublishedFile, RowFile
from pairflow.data.split import held_out_rows
from pairflow.errors import InputError
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.fields import HELD_OUT, Row
from pairflow.kinds.molecules.data.known import KNOWN, KnownMolecules
from pairflow.kinds.molecules.settings import Molecules
from pairflow.kinds.molecules.settings.data_sets import DATA_SETS as KNOWN_SETS
from pairflow.kinds.molecules.settings.data_sets import KnownMoleculeSet
from pairflow.runtime.threads import granted_threads

if TYPE_CHECKING:
    from pairflow.kinds.molecules.data.prepare import PreparedMolecules, Vocabulary
    from pairflow.kinds.molecules.data.reading import SavedChunks
    from pairflow.runtime.resume import LongWork


class MoleculeSource(DataSource):
    """A file in which each row is one molecule.

    Attributes:
        named: whether the prepared SMILES get a column `name`, with the names of the rows.
        held_out: a second file with the user's own held-out molecules, or None.
    """

    named = False
    held_out: Path | None = None

    @abstractmethod
    def fetch(self) -> Path:
        """Return the local path of the raw file, which is downloaded if needed. Raises InputError if the
        download fails or has another checksum."""

    def validation_rows(self) -> list[int] | None:
        """Return the row numbers, from 0, of the published validation split; None if there is none."""
        return None

    def rows(self, column: str, progress: bool = False, sheet: str | None = None) -> Iterator[Row]:
        """Yield the rows of the raw file. Of a table, `column` has the SMILES; of an Excel file, `sheet` is
        read."""
        return library.read_rows(self.fetch(), column, progress, sheet)

    def read(
        self,
        settings: Molecules,
        progress: bool = False,
        parent: "Vocabulary | None" = None,
        processes: int | None = None,
        saved: "SavedChunks | None" = None,
    ) -> "PreparedMolecules":
        """Fetch the raw file, and turn it into token rows in `processes` processes (None: one per thread).

        The vocabulary begins with the symbols of `parent`, the vocabulary of the model to start from, if
        there is one. `saved` has what an interrupted run has read. Raises InputError as `fetch` and `prepare`
        do, and if the number of rows is not the published one.
        """
        from pairflow.kinds.molecules.data.prepare import prepare

        rows = self.rows(settings.column, progress, settings.sheet)
        named = rows if self.named else (row._replace(name="") for row in rows)
        processes = processes or granted_threads()
        prepared = prepare(named, settings, self.validation_rows(), parent, processes, saved)
        number = len(prepared.smiles) + len(prepared.rejected)
        if self.size and number != self.size.total:
            raise InputError(f"data source {self.name!r}: expected {self.size.total} rows, found {number}")
        return prepared


@dataclass(frozen=True, eq=False)
class MoleculeTable(PublishedFile, MoleculeSource):
    """A published table of molecules, perhaps with a validation split, or the table in the package."""

    size: DatasetSize | None = None
    validation: RawFile | None = None

    def validation_rows(self) -> list[int] | None:
        if self.validation is None:
            return None
        path = self.validation.fetch()
        try:
            return TypeAdapter(list[StrictInt]).validate_json(path.read_bytes())
        except ValidationError:
            raise InputError(f"{path}: expected a JSON list of row numbers") from None

    def published_files(self) -> list[RawFile]:
        return [file for file in (self.file, self.validation) if file]


@dataclass(frozen=True)
class MoleculeFile(RowFile, MoleculeSource):
    """A user's file of molecules, and the user's own split of it, if there is one: by the column
    `split_column`, or by a second file `held_out`. The second file's row numbers follow the first file's."""

    held_out: Path | None = None
    split_column: str | None = None
    named = True

    def rows(self, column: str, progress: bool = False, sheet: str | None = None) -> Iterator[Row]:
        number, held_out = 0, set[int]()
        if self.split_column:
            fields = library.read_fields(self.path, self.split_column, sheet, strict=True)
            labels = (label for _, label, _ in fields)
            held_out = {*held_out_rows(labels, f"{self.path}: column {self.split_column!r}")}
        for index, row in enumerate(library.read_rows(self.path, column, progress, sheet)):
            number = row.number
            yield row._replace(part=HELD_OUT) if index in held_out else row
        for row in library.read_rows(self.held_out, column, progress, sheet) if self.held_out else ():
            yield row._replace(number=number + row.number, part=HELD_OUT)


def _known_source(name: str, known: KnownMoleculeSet) -> MoleculeTable:
    embedded = None if known.file.url else Path(__file__).with_name(known.file.names[0])
    size = DatasetSize(known.rows, known.held_out, known.symbols)
    split = RawFile(*known.split) if known.split else None
    return MoleculeTable(name, RawFile(*known.file, embedded=embedded), size, split)


DATA_SETS = {name: _known_source(name, known) for name, known in KNOWN_SETS.items()}


def store(
    source: MoleculeSource,
    settings: Molecules,
    files: Mapping[str, Path],
    parent: Path | None,
    progress: bool,
    work: "LongWork | None" = None,
) -> None:
    """Prepare the data set of `source`, and write token rows, canonical SMILES with their hashes, and
    rejected rows into `files` (paths by name without suffix). `parent` is the vocabulary.json of the model
    to start from. `work` is the number of processes and the place of saved state: with it an interrupted
    run resumes."""
    from pairflow.kinds.molecules.data.prepare import MASK, PAD, Vocabulary, label_molecules
    from pairflow.kinds.molecules.data.reading import SavedChunks

    parameters = settings.model_dump(mode="json")
    symbols = Vocabulary.load(parent) if parent else None
    saved = None
    raw = source.fetch()
    if work and raw.is_file() and os.access(raw, os.R_OK):  # else `read` says what is wrong
        identity = {"parameters": parameters, "inputs": _digests(source, parent)}
        saved = SavedChunks(work, files["train"], identity)
    processes = work.processes if work else None
    prepared = source.read(settings, progress, symbols, processes, saved)
    parts = {"train": prepared.train, "validation": prepared.validation}
    identities = prepared.smiles["key" if "key" in prepared.smiles else "smiles"]
    row_format: dict[str, Any] = {"padding": PAD, "mask": MASK}
    labels = None
    if settings.conditioned:
        condition, every = label_molecules(
            settings.conditioned, prepared.smiles, source.fetch(), prepared.repeats, settings.sheet
        )
        labels = {split: every[prepared.smiles["split"] == split] for split in parts}
        row_format["condition"] = condition.facts
    write_prepared(
        files,
        parts,
        prepared.vocabulary.to_json(),
        prepared.symbols,
        parameters,
        _digests(source, parent),
        labels=labels,
        tables={
            "known": (KnownMolecules.from_smiles(identities).table, KNOWN),
            "smiles": (prepared.smiles, "smiles"),
            "rejected": (prepared.rejected, "rejected rows"),
        },
        **row_format,
    )
    if saved:
        saved.remove()


def _digests(source: MoleculeSource, parent: Path | None) -> dict[str, str]:
    held_out = {"held_out": digest(source.held_out)} if source.held_out else {}
    return {"source": digest(source.fetch()), **held_out, **parent_digest(parent)}
