"""The embedded set: it regenerates byte for byte, it is complete where counts are known, its rules hold."""

from collections import Counter

import pytest
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcMolFormula

from benchmarks.enumerate_molecules import enumerate_molecules, write
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.prepare import prepare
from pairflow.kinds.molecules.data.representations import tokenize
from pairflow.kinds.molecules.settings import Molecules

PACKAGED = MOLECULES["small_molecules"].fetch()


@pytest.fixture(scope="module")
def smiles():
    return [row.text for row in library.read_rows(PACKAGED)]


@pytest.fixture(scope="module")
def molecules(smiles):
    return {text: Chem.MolFromSmiles(text) for text in smiles}


def test_regenerates_byte_for_byte(tmp_path):
    write(tmp_path / "again.csv.gz", enumerate_molecules())
    assert (tmp_path / "again.csv.gz").read_bytes() == PACKAGED.read_bytes()


def test_size(smiles):
    assert len(smiles) == len(set(smiles)) == 7_959
    assert PACKAGED.stat().st_size < 100_000


def test_all_are_canonical_neutral_and_small(molecules):
    for text, molecule in molecules.items():
        assert Chem.MolToSmiles(molecule) == text
        assert molecule.GetNumAtoms() <= 7
        assert {atom.GetSymbol() for atom in molecule.GetAtoms()} <= set("CNOF")
        assert not any(atom.GetFormalCharge() for atom in molecule.GetAtoms())
        assert not any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms())
        assert all(len(ring) in (3, 4, 5, 6, 7) for ring in molecule.GetRingInfo().AtomRings())


def test_all_fit_their_token_rows(smiles):
    prepared = prepare(library.read_rows(PACKAGED), Molecules(source="small_molecules", length=16))
    assert not len(prepared.rejected)
    assert prepared.vocabulary.size == 24
    rows = [*prepared.train, *prepared.validation]
    assert {prepared.vocabulary.decode(row) for row in rows} == set(smiles)
    assert max(len(tokenize(text)) for text in smiles) == 14


# Constitutional isomers, as tables of organic chemistry count them (stereoisomers not told apart).
KNOWN_COUNTS = {
    "alkanes": ("[#6]", ["CH4", "C2H6", "C3H8", "C4H10", "C5H12", "C6H14", "C7H16"], [1, 1, 1, 2, 3, 5, 9]),
    "alkenes": ("C=C", ["C2H4", "C3H6", "C4H8", "C5H10", "C6H12", "C7H14"], [1, 1, 3, 5, 13, 27]),
    "cycloalkanes": ("C1CCCCCC1", ["C7H14"], [1]),
    "alcohols": ("[OH]", ["CH4O", "C2H6O", "C3H8O", "C4H10O", "C5H12O", "C6H14O"], [1, 1, 2, 4, 8, 17]),
    "ethers": ("COC", ["C2H6O", "C3H8O", "C4H10O", "C5H12O", "C6H14O"], [1, 1, 3, 6, 15]),
    "amines": ("N", ["CH5N", "C2H7N", "C3H9N", "C4H11N", "C5H13N", "C6H15N"], [1, 2, 4, 8, 17, 39]),
    "alkyl fluorides": ("F", ["CH3F", "C2H5F", "C3H7F", "C4H9F", "C5H11F", "C6H13F"], [1, 1, 2, 4, 8, 17]),
    "one ring": ("[R]", ["C3H6", "C4H8", "C5H10", "C6H12", "C7H14"], [1, 2, 5, 12, 29]),
}


@pytest.mark.parametrize("kind", KNOWN_COUNTS)
def test_known_counts(molecules, kind):
    pattern, formulas, expected = KNOWN_COUNTS[kind]
    query = Chem.MolFromSmarts(pattern)
    found = Counter(CalcMolFormula(m) for m in molecules.values() if m.HasSubstructMatch(query))
    assert [found[formula] for formula in formulas] == expected
