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
        assert not any(
            atom.GetFormalCharge() or atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()
        )
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


MEMBERS = """
    methane C, ammonia N, water O, hydrogen cyanide C#N, formaldehyde C=O, ethanol CCO, dimethyl ether COC,
    acetic acid CC(=O)O, acetamide CC(N)=O, acetone CC(C)=O, acetonitrile CC#N, urea NC(N)=O,
    glycine NCC(=O)O,
    alanine CC(N)C(=O)O, oxirane C1CO1, aziridine C1CN1, oxetane C1COC1, tetrahydrofuran C1CCOC1,
    morpholine C1COCCN1, piperazine C1CNCCN1, cyclohexane C1CCCCC1, benzene c1ccccc1, toluene Cc1ccccc1,
    phenol Oc1ccccc1, aniline Nc1ccccc1, fluorobenzene Fc1ccccc1, pyridine c1ccncc1, pyrimidine c1cncnc1,
    pyrrole c1cc[nH]c1, furan c1ccoc1, imidazole c1c[nH]cn1, isoxazole c1cnoc1, tetrazole c1nnn[nH]1,
    2-pyridone O=c1cccc[nH]1, propyne C#CC, butadiene C=CC=C, acrylonitrile C=CC#N, norbornane C1CC2CCC1C2,
    fluoroform FC(F)F, glycerol OCC(O)CO, ethyl acetate CCOC(C)=O, dimethyl carbonate COC(=O)OC,
    gamma-butyrolactone O=C1CCCO1, maleimide O=C1C=CC(=O)N1, dimethylformamide CN(C)C=O
"""
EXCLUDED = """
    hydrogen fluoride F, hydrogen peroxide OO, dimethyl peroxide COOC, hydrazine NN, hydroxylamine NO,
    azomethane CN=NC,
    fluoroamine NF, allene C=C=C, ketene C=C=O, carbon dioxide O=C=O, methyl isocyanate CN=C=O,
    cyclopropene C1=CC1, cyclopropanone O=C1CC1, cyclobutadiene C1=CC=C1, cyclobutene C1=CCC1,
    bicyclobutane C1C2CC12,
    spiropentane C1CC12CC2, cyclohexyne C1#CCCCC1, bridgehead alkene C1=C2CCC1C2, vinyl alcohol C=CO,
    vinylamine C=CN, methanediol OCO, hemiaminal NCO, dimethoxymethane COCOC, carbonic acid O=C(O)O,
    carbamic acid NC(=O)O, acetyl fluoride CC(=O)F, acetimine CC=N, acetic anhydride CC(=O)OC(C)=O,
    aminoacetone CC(=O)CN, hydroxyacetylene C#CO, cyanic acid N#CO, cyclopentadienone O=C1C=CC=C1,
    2-hydroxyfuran Oc1ccco1, 1,2,3-oxadiazole c1conn1, 1,2,3-triazine c1cnnnc1, dioxirane C1OO1
"""


def named(text):
    return [entry.strip().rsplit(" ", 1) for entry in text.replace("\n", " ").split(", ")]


def test_included_and_excluded_molecules(molecules):
    assert [name for name, text in named(MEMBERS) if Chem.CanonSmiles(text) not in molecules] == []
    assert [name for name, text in named(EXCLUDED) if Chem.CanonSmiles(text) in molecules] == []
