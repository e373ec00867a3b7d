"""Data sets of molecules. A new one is an entry of `_TABLES`, and a name in MOLECULE_SOURCES."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import StrictInt, TypeAdapter, ValidationError

from pairflow.data.download import PublishedFile, RawFile
from pairflow.data.source import DatasetSize, DataSource, RowFile
from pairflow.errors import InputError
from pairflow.kinds.molecules import library
from pairflow.kinds.molecules.settings import Molecules
from pairflow.runtime.threads import granted_threads

if TYPE_CHECKING:
    from pairflow.kinds.molecules.prepare import PreparedMolecules, Vocabulary
    from pairflow.kinds.molecules.reading import SavedChunks


class MoleculeSource(DataSource):
    """A file in which each row is one molecule. If `named`, the prepared SMILES have a column `name`, with
    the names of the rows."""

    named = False

    @abstractmethod
    def fetch(self) -> Path:
        """The local path of the raw file. Raises InputError if its download fails or has another checksum."""

    def validation_rows(self) -> list[int] | None:
        """Row numbers, from 0, of the published validation split; None if there is none."""
        return None

    def read(
        self,
        settings: Molecules,
        progress: bool = False,
        parent: "Vocabulary | None" = None,
        processes: int | None = None,
        saved: "SavedChunks | None" = None,
    ) -> "PreparedMolecules":
        """Fetch the raw file, and turn it into token rows in several processes (None: one per thread).

        `saved` has what an interrupted run has read. Raises InputError as `fetch` and `prepare` do, and if
        the number of rows is not the published one.
        """
        from pairflow.kinds.molecules.prepare import prepare

        rows = library.read_rows(self.fetch(), settings.column, progress, settings.sheet)
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
    """A user's file of molecules."""

    named = True


_GITHUB = "https://raw.githubusercontent.com"
_QM9 = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.csv"
_ZINC = "250k_rndm_zinc_drugs_clean_3.csv"
_EMBEDDED = Path(__file__).with_name("small_molecules.csv.gz")

_TABLES = (
    # All small molecules of C, N, O and F, made by tools/enumerate_molecules.py.
    MoleculeTable(
        "small_molecules", RawFile((_EMBEDDED.name,), embedded=_EMBEDDED), DatasetSize(7_561, 398, 24)
    ),
    # QM9, molecules of up to 9 heavy atoms, as DeepChem publishes it.
    MoleculeTable("qm9", RawFile(("qm9.csv.gz", "qm9.csv"), _QM9), DatasetSize(127_190, 6_695, 40)),
    # ZINC-250k, drug-like molecules, with the validation split that GDSS publishes.
    MoleculeTable(
        "zinc250k",
        RawFile(
            ("zinc250k.csv.gz", "zinc250k.csv", _ZINC),
            f"{_GITHUB}/aspuru-guzik-group/chemical_vae/HEAD/models/zinc_properties/{_ZINC}",
            "d31726bf929d35cb52fa109db90411c90a000dfe",
        ),
        DatasetSize(224_568, 24_887, 72),
        validation=RawFile(
            ("valid_idx_zinc250k.json",),
            f"{_GITHUB}/harryjo97/GDSS/HEAD/data/valid_idx_zinc250k.json",
            "b4b45d15971cb9115efeb8044195bf3440eb02f8",
        ),
    ),
)
DATA_SETS: dict[str, MoleculeTable] = {table.name: table for table in _TABLES}


def source_of(settings: Molecules, folder: Path = Path()) -> MoleculeSource:
    """The source that the settings name; a user's relative path starts at `folder`."""
    return DATA_SETS.get(settings.source) or MoleculeFile(folder / settings.source)
