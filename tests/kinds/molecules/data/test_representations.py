"""SELFIES: tokens, what cannot be written, rows of them, and a start that sampling keeps."""

from itertools import count, islice

import numpy as np
import pytest
from rdkit import Chem

from pairflow.config import DemandSettings
from pairflow.errors import InputError
from pairflow.flow.samplers import FREE
from pairflow.kinds.molecules.data import library, representations
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.prepare import BOS, EOS, PAD, SPECIALS, Vocabulary, prepare
from pairflow.kinds.molecules.data.representations import join_selfies, tokenize_selfies
from pairflow.kinds.molecules.on_demand.delivery import given_molecule
from pairflow.kinds.molecules.settings import Molecules

SMILES = [row.text for row in islice(library.read_rows(MOLECULES["small_molecules"].fetch()), 0, None, 40)]
ROWS = [*map(library.Row, count(1), ["CCO", "C=O", "*CC", "C1CC", "[13CH4]", "CI(=O)=O", "N"])]
SETTINGS = Molecules(source="x.smi", length=8, representation="selfies", validation_fraction=0.4)


def test_known_answers():
    """Derived by hand from the grammar: the index symbol [Ring1] stands for 1, [C] for 0."""
    assert tokenize_selfies("CCO") == ["[C]", "[C]", "[O]"]
    assert tokenize_selfies("CC(=O)N") == ["[C]", "[C]", "[=Branch1]", "[C]", "[=O]", "[N]"]
    assert tokenize_selfies("C1CC1") == ["[C]", "[C]", "[C]", "[Ring1]", "[Ring1]"]
    assert tokenize_selfies("C.N") == ["[C]", ".", "[N]"]
    assert join_selfies(["[C]", "[=O]", "[C]", "[F]"]) == "C=O"  # oxygen has no bond left
    assert join_selfies(["[C]", "<mask>"]) == "[C]<mask>"
    assert join_selfies(["[C]", "[=C]", "[C]", "[=C]", "[C]", "[=C]", "[Ring1]", "[=Branch1]"]) == "c1ccccc1"
    assert join_selfies([]) == ""


def test_every_molecule_comes_back_and_nearly_every_row_is_a_molecule():
    """Also of random symbols: SMILES of a hundred random tokens are none."""
    for text in SMILES:
        assert join_selfies(tokenize_selfies(text)) == Chem.CanonSmiles(text)
    symbols = sorted({symbol for text in SMILES for symbol in tokenize_selfies(text)})
    rows = np.random.default_rng(0).choice(symbols, (200, 20))
    assert all(Chem.MolFromSmiles(join_selfies([*row])) for row in rows)


def test_rows_and_reasons():
    prepared = prepare(ROWS, SETTINGS)
    assert prepared.vocabulary.kind == "selfies"
    assert prepared.vocabulary.tokens[len(SPECIALS) :] == ("[13CH4]", "[=O]", "[C]", "[N]", "[O]")
    assert list(prepared.smiles["smiles"]) == ["CCO", "C=O", "[13CH4]", "N"]
    assert prepared.rejected[["row", "reason"]].to_dict("list") == {
        "row": [2, 3, 5],
        "reason": ["SELFIES cannot write it", "unparsable", "SELFIES cannot write it"],
    }
    words = prepared.vocabulary
    assert words.encode("CCO", 8) == [BOS, 12, 12, 14, EOS, PAD, PAD, PAD]
    rows = np.concatenate([prepared.train, prepared.validation])
    assert {words.decode(row) for row in rows} == {"CCO", "C=O", "[13CH4]", "N"}
    assert words.decode([BOS, 12, 2, EOS]) == "[C]<mask>"


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(representations, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"SELFIES need the package selfies: pip install selfies"):
        prepare(ROWS, SETTINGS)


def test_a_prefix_is_a_whole_molecule():
    words = Vocabulary(kind="selfies").extended(tokenize_selfies("c1ccc2[nH]ccc2c1"))
    given = given_molecule(DemandSettings(count=1, nfe=1, prefix="c1ccc2[nH]ccc2c1"), words, 32)
    places = int((given != FREE).sum())
    assert given[0] == BOS
    assert words.decode([*given[:places].tolist(), EOS]) == "c1ccc2[nH]ccc2c1"
    for prefix, message in [
        ("C(", "prefix: a model of SELFIES needs a whole molecule: SELFIES cannot write it"),
        ("CF", r"prefix: a model of SELFIES needs a whole molecule: unknown token \[F\]"),
    ]:
        with pytest.raises(InputError, match=message):
            given_molecule(DemandSettings(count=1, nfe=1, prefix=prefix), words, 32)
    with pytest.raises(InputError, match="template: a model of SELFIES cannot fill gaps; use prefix"):
        given_molecule(DemandSettings(count=1, nfe=1, template="C*C"), words, 32)


def test_what_follows_a_prefix_leaves_it_a_substructure():
    """Any symbols after the indole, of those that molecules have: bonded to its last atom, or ignored."""
    start, indole = tokenize_selfies("c1ccc2[nH]ccc2c1"), Chem.MolFromSmiles("c1ccc2[nH]ccc2c1")
    symbols = ["[C]", "[=C]", "[N]", "[O]", "[F]", "[Branch1]", "[=O]"]
    for row in np.random.default_rng(0).choice(symbols, (100, 8)):
        molecule = Chem.MolFromSmiles(join_selfies([*start, *row]))
        assert molecule.HasSubstructMatch(indole), row
