"""The rules, on molecules whose outcome is known."""

import pytest
from rdkit import Chem

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.reading import canonicalise
from pairflow.kinds.molecules.measures.counts import canonical, reason
from pairflow.kinds.molecules.settings import Standardisation
from pairflow.kinds.molecules.structures.standardise import parse, scaffold, standardise

STRICT = {"fragments": "reject", "dummies": "reject", "metals": "reject", "min_heavy_atoms": 3}


@pytest.mark.parametrize(
    ("text", "rules", "expected"),
    [
        ("CC(=O)[O-].[Na+]", {}, "CC(=O)[O-].[Na+]"),
        ("CC(=O)[O-].[Na+]", {"fragments": "largest"}, "CC(=O)[O-]"),
        ("CCN.F[P-](F)(F)(F)(F)F", {"fragments": "largest"}, "CCN"),  # organic, though smaller
        ("CC(=O)[O-].[Na+]", {"fragments": "largest", "charges": "neutralise"}, "CC(=O)O"),
        ("C[NH3+]", {"charges": "neutralise"}, "CN"),
        ("C[N+](=O)[O-]", {"charges": "neutralise"}, "C[N+](=O)[O-]"),
        ("C[N+](C)(C)C", {"charges": "neutralise"}, "C[N+](C)(C)C"),  # no proton to give
        ("[2H]C([2H])([2H])[13CH3]", {"isotopes": "drop"}, "CC"),
        ("C[C@H](N)C(=O)O", {"stereo": "drop"}, "CC(N)C(=O)O"),
        ("F/C=C/F", {"stereo": "drop"}, "FC=CF"),
        ("C[C@H]([13CH3])O", {"isotopes": "drop"}, "CC(C)O"),  # no stereocentre without the label
        ("C[C@H](N)C(=O)O", {}, "C[C@H](N)C(=O)O"),
        ("CC(=O)[O-].[Na+]", {"metals": "reject"}, "CC(=O)[O-].[Na+]"),  # a counter-ion
        ("CC(=O)O.[Na]", {"metals": "reject", "fragments": "largest"}, "CC(=O)O"),
        ("", STRICT, "empty"),
        ("C1CC", STRICT, "unparsable"),
        ("C.N.O", STRICT, "3 fragments (the experiment allows only one)"),
        ("C[Mg]C", STRICT, "with a metal"),
        ("[Fe+2].[cH-]1cccc1.[cH-]1cccc1", STRICT, "with a metal"),
        ("[2*]CC", STRICT, "with an R group or dummy atom"),
        ("[Na]", STRICT, "with a metal"),
        ("[Br-]", STRICT, "under 3 heavy atoms"),
        # the part that is left out, and the one that is kept
        ("*Cl.Cc1ccccc1", {"fragments": "largest", "dummies": "reject"}, "with an R group or dummy atom"),
        ("[Ca+2].[Cl-].[Cl-]", {"fragments": "largest", "metals": "reject"}, "with a metal"),
        ("[Ca+2]", {"fragments": "largest", "metals": "reject"}, "with a metal"),
    ],
)
def test_rules_and_reasons(text, rules, expected):
    try:
        outcome = Chem.MolToSmiles(standardise(parse(text), Standardisation(**rules)))
    except InputError as reason:
        outcome = str(reason)
    assert outcome == expected


@pytest.mark.parametrize("text", ["[H]/N=C", "CC(C)=N/[H]", "[H]/[NH+]=C(/C)C", "[H]/N=C/C", "[2H]C"])
def test_what_is_written_is_written_again(text):
    """`[H]/N=C` is first written as `[H]N=C`, which is then written as `C=N`."""
    smiles = canonical(text)
    assert canonical(smiles) == smiles == Chem.MolToSmiles(Chem.MolFromSmiles(smiles))
    assert canonicalise(parse(text), Standardisation())[1] == smiles
    assert canonical("[H]/N=C") == "C=N"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "over 4,096 atoms") for text in ("C" * 6000, "C" * 20_000, f"C1{'[CH2]' * 5000}1")),
        ("C" + "1" * 100_000, "over 32,768 characters"),
    ],
)
def test_a_string_that_is_too_large_for_rdkit_does_not_reach_it(monkeypatch, text, why):
    monkeypatch.setattr(Chem, "MolFromSmiles", None)
    with pytest.raises(InputError, match=why):
        parse(text)
    assert canonical(text) is None
    assert reason(text) == "syntax"


def test_a_long_chain_has_no_scaffold():
    """RDKit takes minutes to find out."""
    assert scaffold(parse("C" * 4096)) == ""
