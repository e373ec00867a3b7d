"""The data sets of molecules that pairflow knows by name."""

from typing import NamedTuple


class PublishedTable(NamedTuple):
    """A file: the names that a local copy may have, and the address and the git blob id of a published one.
    A file without an address is a part of the package."""

    names: tuple[str, ...]
    url: str | None = None
    git_blob: str | None = None


class KnownMoleculeSet(NamedTuple):
    """A data set of molecules.

    Attributes:
        file: the table of molecules.
        rows, held_out, symbols: the numbers of training and held-out molecules, and of symbols (K).
        split: the row numbers of the published held-out molecules (JSON), if there are some.
        complete: whether it has every molecule that follows its rules.
        in_paper: whether it is in the paper's tables.
    """

    file: PublishedTable
    rows: int
    held_out: int
    symbols: int
    split: PublishedTable | None = None
    complete: bool = False
    in_paper: bool = True


_GITHUB = "https://raw.githubusercontent.com"
_ZINC = "250k_rndm_zinc_drugs_clean_3.csv"
DATA_SETS = {
    # All small molecules of C, N, O and F, made by benchmarks/enumerate_molecules.py.
    "small_molecules": KnownMoleculeSet(
        PublishedTable(("small_molecules.csv.gz",)), 7_561, 398, 24, complete=True, in_paper=False
    ),
    # QM9, molecules of up to 9 heavy atoms, as DeepChem publishes it.
    "qm9": KnownMoleculeSet(
        PublishedTable(
            ("qm9.csv.gz", "qm9.csv"),
            "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.csv",
        ),
        *(127_190, 6_695, 40),
    ),
    # ZINC-250k, drug-like molecules, with the validation split that GDSS publishes.
    "zinc250k": KnownMoleculeSet(
        PublishedTable(
            ("zinc250k.csv.gz", "zinc250k.csv", _ZINC),
            f"{_GITHUB}/aspuru-guzik-group/chemical_vae/HEAD/models/zinc_properties/{_ZINC}",
            "d31726bf929d35cb52fa109db90411c90a000dfe",
        ),
        *(224_568, 24_887, 72),
        PublishedTable(
            ("valid_idx_zinc250k.json",),
            f"{_GITHUB}/harryjo97/GDSS/HEAD/data/valid_idx_zinc250k.json",
            "b4b45d15971cb9115efeb8044195bf3440eb02f8",
        ),
    ),
}
