"""`pairflow metrics --standard`: molecules of any program, counted as publications do."""

import numpy as np
import pytest

from pairflow.kinds.molecules.data.data_sets import DATA_SETS
from pairflow.kinds.molecules.measures import standard

ATTEMPTS = ["CCO", "OCC", "C[C@H](O)CC", "CC(O)CC", "xx", "CCCCCCCCO"]


@pytest.fixture
def stand_in_for_chemnet(monkeypatch):
    """The number of letters and of oxygens in place of ChemNet, whose package is not installed for tests."""

    def features(smiles, device="cpu", progress=False):
        return np.array([[len(text), text.count("O")] for text in smiles], float)

    monkeypatch.setattr(standard, "chemnet_features", features)


def test_every_row_is_an_attempt(stand_in_for_chemnet, step, tmp_path):
    """Five of six are molecules. Two are ethanol, and two differ in stereochemistry only; the last is new."""
    mine = tmp_path / "mine.smi"
    mine.write_text("\n".join(ATTEMPTS) + "\n")
    done = step("metrics", mine, standard="small_molecules", quiet=True)
    title, *lines = done.stdout.splitlines()
    assert title == f"{mine} by the standard of small_molecules"
    assert [" ".join(line.split()) for line in lines[:4]] == [
        "attempts 6 100.0%",
        "valid 5 83.3%",
        "valid and unique (VU) 3 50.0%",
        "valid, unique and novel (VUN) 1 16.7%",
    ]
    said = [line.rpartition(" ")[0].strip() for line in lines[4:]]
    assert said == ["FCD to 398 test molecules", "FCD to 7,561 training molecules"]


def test_the_distance_of_test_molecules_to_themselves_is_0(stand_in_for_chemnet):
    train, test = standard.read_published("small_molecules")
    values = standard.Standard.read("small_molecules").measure(test)
    assert (values.valid, values.novel) == (398, len({*test} - {*train}))
    assert values.fcd_test == pytest.approx(0, abs=1e-6) != values.fcd_train


def test_a_published_split_decides(monkeypatch):
    monkeypatch.setattr(type(DATA_SETS["small_molecules"]), "validation_rows", lambda self: [5, 7])
    train, test = standard.read_published("small_molecules")
    assert (len(train), len(test)) == (7_957, 2)


def test_one_molecule_has_no_distance(stand_in_for_chemnet):
    samples = standard.spell(standard.read_found(DATA_SETS["small_molecules"].fetch()))[:1]
    with pytest.raises(standard.InputError, match="expected at least 2 valid molecules, found 1 in 2 rows"):
        standard.Standard.read("small_molecules").measure([*samples, None])
