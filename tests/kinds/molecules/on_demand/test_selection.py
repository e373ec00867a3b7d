"""Which samples are kept: known answers for each filter, alone and together; coordinates in space."""

import re
from functools import partial

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdForceFieldHelpers, rdMolTransforms

from pairflow.config import DemandSettings, check
from pairflow.errors import InputError
from pairflow.kinds.molecules.on_demand.selection import Selection, embed, filters_from
from pairflow.kinds.molecules.settings.demand import parse_range

NITROGEN = partial(Chem.Mol.HasSubstructMatch, query=Chem.MolFromSmarts("[#7]"))
SAMPLES = ["CCO", "OCC", "C(", "", "C#N", "CCO", "<mask>", "CN"]


@pytest.mark.parametrize(
    ("options", "kept", "counts", "shares"),
    [
        ({"raw": True}, SAMPLES, {"kept": 5, "invalid": 3}, {"valid": 5 / 8}),
        ({}, ["CCO", "CCO", "C#N", "CCO", "CN"], {"kept": 5, "invalid": 3}, {"valid": 5 / 8}),
        (
            {"unique": True, "known": {"CN"}},
            ["CCO", "C#N"],
            {"kept": 2, "invalid": 3, "repeated": 2, "known": 1},
            {"valid": 5 / 8, "--novel": 4 / 5, "--unique": 2 / 4},
        ),
        (
            {"unique": True, "filters": {"--a": lambda m: m.GetNumAtoms() < 9, "--b": NITROGEN}},
            ["C#N", "CN"],
            {"kept": 2, "invalid": 3, "refused by --b": 3},
            {"valid": 5 / 8, "--unique": 1, "--a": 1, "--b": 2 / 5},
        ),
    ],
)
def test_each_sample_is_kept_or_counted_by_the_first_reason(options, kept, counts, shares):
    selection = Selection(**options)
    actual = [selection.keep(text) for text in SAMPLES]
    assert [text for text in actual if text is not None] == kept
    assert selection.counts == counts
    assert selection.shares() == shares


def test_neutral_molecules_keep_quaternary_nitrogen_and_are_known_with_either_charges():
    texts = ["C[NH2+]C", "CNC", "CC(=O)[O-]", "CCC(N)=[NH2+]", "C[N+](C)(C)C", "CC[N+](=O)[O-]"]
    selection = Selection(unique=True, neutral=True)
    kept = ["CNC", None, "CC(=O)O", "CCC(=N)N", "C[N+](C)(C)C", "CC[N+](=O)[O-]"]
    assert [selection.keep(text) for text in texts] == kept
    assert selection.keep("C[N+](C)(C)CC(=O)[O-]") == "C[N+](C)(C)CC(=O)[O-]"  # a salt with itself
    novel = Selection(known={"C[NH2+]C", "CC(=O)O"}, neutral=True)
    assert [novel.keep(text) for text in ("C[NH2+]C", "CC(=O)[O-]", "CNCC")] == [None, None, "CCNC"]
    varied = Selection(seeds={"C[NH2+]C"}, neutral=True)
    assert varied.keep("C[NH2+]C") is None


@pytest.mark.parametrize(("identity", "kept"), [("smiles", 5), ("inchikey", 3), ("tautomer", 4)])
def test_unique_samples_differ_by_the_rule_identity(identity, kept):
    """Of both tautomers of 2-hydroxypyridine, two spellings of DMSO, which differ by charges, and ethanol."""
    texts = ["Oc1ccccn1", "O=c1cccc[nH]1", "CS(C)=O", "C[S+](C)[O-]", "CCO", "OCC"]
    selection = Selection(unique=True, identity=identity)
    assert [selection.keep(text) for text in texts].count(None) == len(texts) - kept
    varied = Selection(seeds={texts[0]}, identity=identity)
    assert (varied.keep(texts[1]) is None) == (identity != "smiles")


def test_a_molecule_whose_canonical_smiles_rdkit_cannot_read_back_is_invalid(monkeypatch):
    written = {"a": "b", "b": None, "C": "C"}
    monkeypatch.setattr("pairflow.kinds.molecules.on_demand.selection.canonical", written.get)
    selection = Selection()
    assert [selection.keep(text) for text in ("a", "C")] == [None, "C"]
    assert selection.counts == {"invalid": 1, "kept": 1}


def test_what_came_since_the_last_that_was_kept_is_counted_apart():
    selection = Selection(unique=True)
    for text in ["C(", "CCO", "OCC", "C(", "C("]:
        selection.keep(text)
    assert selection.since == {"repeated": 1, "invalid": 2}
    selection.keep("CN")
    assert selection.since.total() == 0


# logP and weight as RDKit prints them: ethanol -0.001, 46.069; benzene 1.687, 78.114; aspirin 1.310, 180.159
MOLECULES = {"ethanol": "CCO", "benzene": "c1ccccc1", "aspirin": "CC(=O)Oc1ccccc1C(=O)O"}


@pytest.mark.parametrize(
    ("settings", "name", "kept"),
    [
        ({"weight": ":78.2"}, "--weight :78.2", ["ethanol", "benzene"]),
        ({"weight": "78.2:"}, "--weight 78.2:", ["aspirin"]),
        ({"logp": "-1:1.4"}, "--logp -1:1.4", ["ethanol", "aspirin"]),
        ({"min_qed": 0.5}, "--min-qed 0.5", ["aspirin"]),  # 0.407, 0.443, 0.550
        ({"smarts": ["C(=O)O"]}, "--smarts C(=O)O", ["aspirin"]),
        ({"not_smarts": ["[OX2H]"]}, "--not-smarts [OX2H]", ["benzene"]),
    ],
)
def test_each_filter(settings, name, kept):
    filters = filters_from(DemandSettings(count=1, **settings))
    assert list(filters) == [name]
    molecules = {key: Chem.MolFromSmiles(smiles) for key, smiles in MOLECULES.items()}
    assert [key for key, molecule in molecules.items() if filters[name](molecule)] == kept


def test_several_patterns_and_no_filter():
    settings = DemandSettings(count=1, min_qed=0.25, smarts=["C", "N"], not_smarts=["F"], weight="1:2")
    names = ["--weight 1:2", "--smarts C", "--smarts N", "--not-smarts F", "--min-qed 0.25"]
    assert list(filters_from(settings)) == names
    assert filters_from(DemandSettings(count=1, min_qed=0)).keys() == {"--min-qed 0"}
    assert filters_from(DemandSettings(count=1)) == {}


@pytest.mark.parametrize(("setting", "pattern"), [("smarts", "C("), ("not_smarts", "")])
def test_a_pattern_that_cannot_be_read(setting, pattern):
    message = re.escape(f"{setting}: RDKit cannot read the SMARTS pattern {pattern!r}")
    with pytest.raises(InputError, match=message):
        filters_from(DemandSettings(count=1, **{setting: [pattern]}))


def test_ranges():
    infinity = float("inf")
    texts = {"1:3": (1, 3), "-1.5:": (-1.5, infinity), ":450": (-infinity, 450), "2:2": (2, 2)}
    assert {text: parse_range(text) for text in texts} == texts


@pytest.mark.parametrize("text", [":", "a:b", "nan:1", "3:1"])
def test_a_text_that_is_no_range(text):
    expected = "the smaller number first" if text == "3:1" else "a range such as 1:3, 1: or :3"
    with pytest.raises(InputError, match=re.escape(f"x: logp: expected {expected}, found {text!r}")):
        check(DemandSettings, {"count": 1, "logp": text}, "x")


ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_all_atoms_have_places_in_space_that_the_force_field_leaves():
    molecule = embed(ASPIRIN, 0)
    assert Chem.MolToSmiles(Chem.RemoveHs(molecule)) == ASPIRIN
    assert molecule.GetNumAtoms() == 21
    conformer = molecule.GetConformer()
    assert conformer.Is3D()
    assert rdMolTransforms.GetBondLength(conformer, 0, 1) == pytest.approx(1.50, abs=0.03)  # CH3-C(=O)
    assert rdMolTransforms.GetBondLength(conformer, 1, 2) == pytest.approx(1.21, abs=0.03)  # C=O

    properties = rdForceFieldHelpers.MMFFGetMoleculeProperties(molecule)
    field = rdForceFieldHelpers.MMFFGetMoleculeForceField(molecule, properties)
    assert np.abs(field.CalcGrad()).max() < 0.1  # kcal/mol/angstrom


def test_coordinates_are_a_function_of_the_seed():
    places = []
    for seed in (2**32 - 1, 5, 2**32 - 1):
        embed.cache_clear()
        places.append(embed(ASPIRIN, seed).GetConformer().GetPositions())
    np.testing.assert_array_equal(places[0], places[2])
    assert not np.allclose(places[0], places[1])


@pytest.mark.parametrize("impossible", ["C1#CC1", "C1C[C@@H]2C[C@@H]1CC2"])
def test_an_impossible_molecule_has_no_place(impossible, capfd):
    assert embed(impossible, 0) is None
    assert capfd.readouterr() == ("", "")
