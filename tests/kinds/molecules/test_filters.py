"""Filters on molecules whose properties are known."""

import pytest
from rdkit import Chem

from pairflow.config import DemandSettings, check, parse_range
from pairflow.errors import InputError
from pairflow.kinds.molecules.selection import filters_from

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


@pytest.mark.parametrize("pattern", ["C(", "", "C1"])
@pytest.mark.parametrize("setting", ["smarts", "not_smarts"])
def test_a_pattern_that_cannot_be_read(setting, pattern):
    with pytest.raises(InputError) as refusal:
        filters_from(DemandSettings(count=1, **{setting: [pattern]}))
    assert str(refusal.value) == f"{setting}: RDKit cannot read the SMARTS pattern {pattern!r}"


def test_ranges():
    infinity = float("inf")
    texts = {"1:3": (1, 3), "-1.5:": (-1.5, infinity), ":450": (-infinity, 450), "2:2": (2, 2)}
    assert {text: parse_range(text) for text in texts} == texts


@pytest.mark.parametrize("text", ["", ":", "3", "a:b", "1:2:3", "nan:1"])
def test_a_text_that_is_no_range(text):
    message = f"x: logp: expected a range such as 1:3, 1: or :3, found {text!r}"
    with pytest.raises(InputError) as refusal:
        check(DemandSettings, {"count": 1, "logp": text}, "x")
    assert str(refusal.value) == message


def test_a_range_whose_ends_are_exchanged():
    with pytest.raises(InputError) as refusal:
        check(DemandSettings, {"count": 1, "logp": "3:1"}, "x")
    assert str(refusal.value) == "x: logp: expected the smaller number first, found '3:1'"
