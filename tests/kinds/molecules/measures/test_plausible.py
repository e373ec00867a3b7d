"""Plausible molecules: their measures by hand, the norms of a library, and the controls."""

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from pairflow.artifacts import Metadata, write_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.measures import plausible
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.measures.measure import read_norms
from pairflow.kinds.molecules.measures.plausible import count_left, find_norms, is_plausible, survive
from pairflow.kinds.molecules.measures.training_molecules import DatasetMolecules
from pairflow.kinds.molecules.structures.descriptors import (
    CHEMBL,
    EXCLUDED,
    alerts,
    ring_systems,
    severity,
    surroundings,
)

TRAINED = [f"{'C' * n}c1ccccc1" for n in range(1, 8)] + [f"{'C' * n}O" for n in range(1, 8)]


@pytest.fixture
def known(tmp_path):
    rows = [(text, "train") for text in TRAINED] + [("CCCc1ccccc1", "validation"), ("CCCl", "validation")]
    path = tmp_path / "smiles.parquet"
    write_table(path, pd.DataFrame(rows, columns=["smiles", "split"]), Metadata(kind="smiles"))
    return DatasetMolecules.read(path)


@pytest.fixture
def norms(known, tmp_path):
    """As the step writes them and readers find them."""
    write_table(tmp_path / "norms.parquet", find_norms(known.described).table(), known.describes("norms"))
    return read_norms(tmp_path / "norms.parquet", known)


@pytest.mark.parametrize(
    ("smiles", "systems"),
    [
        ("CCO", []),
        ("c1ccc(cc1)-c1ccncc1", ["c1ccccc1", "c1ccncc1"]),  # a single bond does not join
        ("c1ccc2ccccc2c1", ["c1ccc2ccccc2c1"]),
        ("C1CCC2(CC1)CCCC2", ["C1CCC2(CC1)CCCC2"]),  # spiro: one atom in common
        ("C[C@H]1CCC(=O)N1", ["O=C1CCCN1"]),  # with the oxygen, without stereochemistry
        ("C1CC2CCC1C2", ["C1CC2CCC1C2"]),
    ],
)
def test_ring_systems_by_hand(smiles, systems):
    assert sorted(ring_systems(Chem.MolFromSmiles(smiles))) == sorted(systems)


def test_each_atom_has_a_number_that_only_its_neighbours_decide():
    molecules = map(Chem.MolFromSmiles, ("CCCCCC", "c1ccccc1", "[Na+].[Cl-]"))
    hexane, benzene, salt = map(surroundings, molecules)
    ends, inner = {hexane[0], hexane[5]}, set(hexane[1:5])
    assert (len(hexane), len(ends), len(inner), len(ends | inner)) == (6, 1, 2, 3)
    assert len(set(benzene)) == 1
    assert len(set(salt)) == 2
    assert hexane[1] in surroundings(Chem.MolFromSmiles("CCCCCCCC"))


def test_alerts_have_names_and_a_severity():
    aldehyde, propane = (Chem.MolFromSmiles(text) for text in ("CCC=O", "CCC"))
    assert alerts(aldehyde) == ["Brenk: aldehyde", "NIH: aldehyde", "pairflow: aliphatic aldehyde"]
    assert alerts(propane) == alerts(propane, CHEMBL) == []
    assert "ChEMBL23_Dundee: aldehyde" in alerts(aldehyde, CHEMBL)
    assert severity(propane) == 0
    assert severity(Chem.MolFromSmiles("CC(=O)OC(=O)C")) == EXCLUDED  # an anhydride


def test_norms_count_molecules_and_limits_leave_the_molecule_itself_out(norms):
    assert norms.rings == {"c1ccccc1": 7}
    rows = norms.table().to_pylist()
    assert rows == sorted(
        rows, key=lambda row: (row["what"], row["name"])
    )  # Python orders no set twice alike
    end = surroundings(Chem.MolFromSmiles("CCCCCCO"))[0]
    assert norms.atoms[end] == 12  # six of either series
    methanol = surroundings(Chem.MolFromSmiles("CO"))
    assert [norms.atoms[atom] for atom in methanol] == [1, 1]
    assert not plausible.usual_atoms().intersection(methanol)
    assert norms.limits["new_atoms"] == 2
    assert [norms.limits[name] for name in ("new_rings", "largest_ring", "few_heteroatoms")] == [0, 6, 0]
    assert norms.limits["smallness"] == -2  # of 14 molecules at most 5 % may be smaller than the second one


def measured(name, norms, texts):
    """A measure of each molecule."""
    return {text: plausible.measure(name, Chem.MolFromSmiles(text), norms) for text in texts}


def test_atoms_of_drug_like_molecules_are_usual_in_any_library(norms):
    """Benzamide's amide is in no training molecule; an aminal or a trioxide is in hardly any of ZINC-250k."""
    new = {"NC(=O)c1ccccc1": 0, "CCCCOOOCCCC": 3, "NCNS(=O)(=O)CC1CCCCC1": 1}
    assert measured("new_atoms", norms, new) == new
    assert len(plausible.usual_atoms()) == 4321


def test_an_alert_counts_by_the_share_of_the_library_that_has_it():
    """With 5 % of the library beyond the limit, which is its 95 % quantile: 8 other aldehydes of 100."""
    library = ["CCO"] * 90 + ["CCC=O"] * 9 + ["OCCNCNC"]
    norms = find_norms(library)
    assert norms.limits["rarity"] == -0.08
    assert norms.alerts["pairflow: N-C-N"] == 0.01
    usual = plausible.usual_alerts()
    rarity = {"CCO": -1, "CCCC=O": -0.09, "CNCNC": -0.01, "CNC=O": -usual["pairflow: formamide"]}
    assert measured("rarity", norms, rarity) == rarity
    assert usual["pairflow: formamide"] < 0.001 < usual["pairflow: hydrazide"]
    few = {"CCC": 0, "CCO": -1, "OCCO": -2, "OCC(O)CO": -2}
    assert (norms.limits["few_heteroatoms"], measured("few_heteroatoms", norms, few)) == (-1, few)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("CCC=O", ["aliphatic aldehyde"]),
        ("O=Cc1ccccc1", ["benzaldehyde"]),
        ("O=Cc1ccco1", ["heteroaromatic aldehyde"]),
        ("O=CNC", ["formamide"]),
        ("O=COC", ["formate"]),
        ("CCS", ["S-H"]),
        ("CNOC", ["N-O"]),
        ("CN(C)N(C)C", ["hydrazine"]),
        ("CC(=O)NNC", ["hydrazide"]),
        ("CC(=O)NCNC", ["N-C-N"]),
        ("CNC1CCCN1", ["N-C-N, partly in a ring"]),
        ("COCNC", ["N-C-O"]),
        ("CSCNC", ["N-C-S"]),
        ("COCSC", ["carbon between O or S"]),
        ("OC1CCCCO1", ["hemiacetal"]),
        ("CC[O-]", ["alkoxide"]),
        ("CC(O)=C", ["enol"]),
        ("C[NH2+]c1ccccc1", ["aryl ammonium"]),
        ("CC(=O)[NH2+]C", ["acyl ammonium"]),
        ("C[NH2+]OC", ["N-O", "N-ammonium"]),
        # Nitro, urea, amidine, acid, sulfonamide, ether of oxime, dioxole.
        *((text, []) for text in ("C[N+](=O)[O-]", "CNC(N)=O", "CC(N)=[NH2+]", "CC(=O)[O-]", "CNS(C)(=O)=O")),
        *((text, []) for text in ("CON=CC", "c1ccc2c(c1)OCO2")),
    ],
)
def test_odd_bonds_by_hand(text, names):
    own = [alert for alert in alerts(Chem.MolFromSmiles(text)) if alert.startswith("pairflow")]
    assert own == [f"pairflow: {name}" for name in names]


def test_stages_in_their_order(norms):
    """One molecule fails at each: too small, a new ring, new atoms, alerts; and one passes all."""
    names = ["C", "CCCC1CCCC1", "CCCCOOOCCCC", "CCCCCCc1ccccc1"]
    described = plausible.tabulate(plausible.DESCRIBED, names).set_axis(names)
    lenient = norms._replace(limits=norms.limits | {"sa": 10.0})
    left = survive(described, lenient)
    assert left["usual_size"].tolist() == [False, True, True, True]
    assert left["usual_rings"].tolist() == [False, False, True, True]
    assert left["usual_atoms"].tolist() == [False, False, False, True]
    assert left["plausible"].tolist() == [False, False, False, True]
    passing = [is_plausible(Chem.MolFromSmiles(name), lenient) for name in names]
    assert passing == [False, False, False, True]
    strict = norms._replace(limits=lenient.limits | {"rarity": -2.0})
    assert not survive(described, strict)["few_alerts"].any()


def test_texts_are_counted_stage_by_stage(norms):
    texts = ["CCCCCCCCO", "CCCCCCCCO", "CO", "C(", "C1CCCC1"]  # twice, known, invalid, a new ring
    left = count_left(texts, {"CO"}, norms._replace(limits=norms.limits | {"sa": 10.0}))
    assert (left["valid"], left["unique_strict"], left["novel_strict"]) == (4, 3, 2)
    assert left["usual_rings"] == left["plausible"] == 1


def test_one_carbon_more_is_a_valid_new_molecule():
    generator = np.random.default_rng(0)
    longer = [*plausible.add_carbon(TRAINED, frozenset(TRAINED), generator)]
    for before, after in zip(TRAINED, longer, strict=True):
        atoms = [Chem.MolFromSmiles(text).GetNumHeavyAtoms() for text in (before, after)]
        assert atoms[1] == atoms[0] + 1
        assert (canonical(after), after in TRAINED) == (after, False)


def test_independent_symbols_keep_the_frequencies_of_each_position():
    rows = np.array([[0, 5, 1], [0, 6, 1], [0, 6, 2], [0, 6, 2]])
    drawn = plausible.draw_independent(rows, 4000, np.random.default_rng(0))
    assert set(drawn[:, 0]) == {0}
    assert (drawn[:, 1] == 5).mean() == pytest.approx(0.25, abs=0.03)
    assert ((drawn[:, 1] == 5) & (drawn[:, 2] == 2)).mean() == pytest.approx(0.125, abs=0.03)  # never in rows


def test_norms_of_other_molecules_are_refused(norms, known, tmp_path):
    other = tmp_path / "other.parquet"
    write_table(other, norms.table(), Metadata(kind="norms", inputs={"smiles": "another"}))
    with pytest.raises(InputError, match=r"other.parquet: was made from a file other than .*smiles.parquet"):
        read_norms(other, known)
    with pytest.raises(InputError, match=r"--norms: needed for plausible molecules \(see `pairflow norms`\)"):
        read_norms(None, known)


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.assign(value=frame.value.where(frame.what != "atom", -1.0)),
        lambda frame: pd.concat([frame, frame[frame.what == "atom"].head(1)]),
        lambda frame: frame.assign(name=frame.name.replace("rarity", "alerts")),  # of an older version
    ],
)
def test_norms_with_counts_that_no_library_gives_are_refused(known, tmp_path, change):
    frame = find_norms(known.described).table().to_pandas()
    write_table(tmp_path / "norms.parquet", change(frame), known.describes("norms"))
    with pytest.raises(InputError, match=r"norms\.parquet: not the norms of molecules; make them again with"):
        read_norms(tmp_path / "norms.parquet", known)
