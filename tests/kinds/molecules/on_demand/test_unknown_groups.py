"""What a model has in place of a group that it does not know, by known answers."""

from types import SimpleNamespace

import numpy as np
import pytest
from rdkit import Chem

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.groups import join_groups, tokenize_groups
from pairflow.kinds.molecules.data.prepare import SPECIALS, Vocabulary
from pairflow.kinds.molecules.on_demand.delivery import ScoredMolecules, read_seeds
from pairflow.kinds.molecules.on_demand.scaffolds import Growth, read_scaffolds
from pairflow.kinds.molecules.on_demand.unknown_groups import KnownGroups

KNOWN = ["C*", "*C", "*C*", "*C1CC[NH2+]CC1", "*c1ccc(*)cc1", "*N*", "*O", "*C(=O)*", "*[O-]", "*S(=O)(=O)*"]
KNOWN += ["*[NH+]1CCC(*)CC1", "*N1CCOCC1", "*C1CC1"]


@pytest.mark.parametrize(
    ("smiles", "other", "advice"),
    [
        ("CC1CCNCC1", "CC1CC[NH2+]CC1", "the model has it charged, *C1CC[NH2+]CC1"),
        ("Cc1ccc(C2CCNCC2)cc1", "Cc1ccc(C2CC[NH2+]CC2)cc1", "the model has it charged, *C1CC[NH2+]CC1"),
        ("CN1CCC(O)CC1", "C[NH+]1CCC(O)CC1", "the model has it charged, *[NH+]1CCC(*)CC1"),
        ("C[NH+]1CCOCC1", "CN1CCOCC1", "the model has it neutral, *N1CCOCC1"),
        ("C[NH2+]C", "CNC", "the model has it neutral, *N*"),
        ("CC1CCC1", None, "the nearest group that the model has is *C1CC1"),
        ("CCl", None, "the nearest group that the model has is *C"),
    ],
)
def test_another_charge_or_the_nearest_group(smiles, other, advice):
    groups, tokens = KnownGroups([*SPECIALS, *KNOWN]), tokenize_groups(Chem.CanonSmiles(smiles))
    found = groups.recharge(tokens)
    assert (found and join_groups(found)) == (other and Chem.CanonSmiles(other))
    assert not other or set(found) <= set(KNOWN)
    assert groups.explain(tokens) == advice


@pytest.fixture
def model(tmp_path):
    """What `read_seeds` asks a model for."""
    (tmp_path / "vocabulary.json").write_text(Vocabulary(kind="groups", tokens=(*SPECIALS, *KNOWN)).to_json())
    return SimpleNamespace(vocabulary_file=lambda: tmp_path / "vocabulary.json", length=8, known=None)


def test_seeds_that_are_left_out_or_have_other_charges_are_named(model, tmp_path):
    path = tmp_path / "seeds.smi"
    path.write_text("CC a\nCC1CCNCC1 b\nxx c\nCCl d\nCNCNCNCNC e\nCCBr f\n")
    seeds, note = read_seeds(path, model)
    assert [seed.text for seed in seeds] == ["CC", "CC1CC[NH2+]CC1"]
    first, second = note.splitlines()
    assert first.startswith(
        f"{path}: 4 of 6 molecules cannot be varied (line 3 (c): unparsable; line 4 (d): "
    )
    assert first.endswith("group that the model has is *C; line 5 (e): too long (9 tokens, limit 6); ...)")
    assert second == f"{path}: 1 of 6 molecules are varied with other charges (line 2 (b): CC1CC[NH2+]CC1)"
    assert all(seed.tokens.shape == (8,) for seed in seeds)
    path.write_text("CC\n")
    assert read_seeds(path, model)[1] == ""
    path.write_text("CCl\n")
    with pytest.raises(InputError, match=r"no molecule that the model can vary: unknown token \*Cl; the"):
        read_seeds(path, model)


def test_scores_and_scaffolds_say_it_and_change_nothing(model, tmp_path):
    path = tmp_path / "rows.smi"
    path.write_text("CC1CCNCC1\n")
    [row] = ScoredMolecules(model).read(path)
    text = r"unknown token *C1CCNCC1; the model has it charged, *C1CC[NH2+]CC1"
    assert (row.text, row.tokens, row.reason) == ("CC1CCNCC1", None, text)
    scaffolds, _ = read_scaffolds("C1CCNCC1*")
    with pytest.raises(InputError, match="it is not in the model's vocabulary; the nearest group that the"):
        Growth(scaffolds, Vocabulary.load(model.vocabulary_file()), 8, list, np.random.default_rng(0))
