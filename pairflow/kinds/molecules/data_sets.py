"""The data sets of molecules. A new one is an entry here, and its name in `settings.MOLECULE_SOURCES`."""

from pathlib import Path

from pairflow.data.download import RawFile
from pairflow.data.source import DatasetSize
from pairflow.kinds.molecules.settings import Molecules
from pairflow.kinds.molecules.sources import MoleculeFile, MoleculeSource, MoleculeTable

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
    """The source that the settings name; a relative path of an own file is one below `folder`."""
    return DATA_SETS.get(settings.source) or MoleculeFile(folder / settings.source)
