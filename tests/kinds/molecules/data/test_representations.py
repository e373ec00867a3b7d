"""Notations: tokens of SELFIES, what cannot be written, rows of tokens, and a start that sampling keeps."""

from itertools import count, islice

import numpy as np
import pytest
from rdkit import Chem

from pairflow.config import DemandSettings
from pairflow.errors import InputError
from pairflow.flow.samplers import FREE
from pairflow.kinds.molecules.data import library, representations
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.groups import MIXTURE
from pairflow.kinds.molecules.data.prepare import BOS, EOS, PAD, SPECIALS, Vocabulary, prepare
from pairflow.kinds.molecules.data.representations import REPRESENTATIONS, join_selfies, tokenize_selfies
from pairflow.kinds.molecules.on_demand.delivery import given_molecule
from pairflow.kinds.molecules.settings import Molecules

SMALL = [row.text for row in islice(library.read_rows(MOLECULES["small_molecules"].fetch()), 0, None, 40)]


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


@pytest.mark.parametrize("kind", ["selfies", "groups"])
def test_every_molecule_comes_back_whatever_its_spelling(kind):
    notation = REPRESENTATIONS[kind]
    for text in SMALL:
        canonical = Chem.CanonSmiles(text)
        other = Chem.MolToSmiles(Chem.MolFromSmiles(text), canonical=False)
        assert {notation.join(notation.tokenize(each)) for each in (text, canonical, other)} == {canonical}


def test_nearly_every_row_of_selfies_is_a_molecule():
    """Also of random symbols: SMILES of a hundred random tokens are none."""
    symbols = sorted({symbol for text in SMALL for symbol in tokenize_selfies(text)})
    rows = np.random.default_rng(0).choice(symbols, (200, 20))
    assert all(Chem.MolFromSmiles(join_selfies([*row])) for row in rows)


def prepared(kind, texts):
    settings = Molecules(source="x.smi", length=8, representation=kind, validation_fraction=0.4)
    return prepare(map(library.Row, count(1), texts), settings)


@pytest.mark.parametrize(
    ("kind", "texts", "tokens", "row", "reasons"),
    [
        (
            "selfies",
            ["CCO", "C=O", "*CC", "C1CC", "[13CH4]", "CI(=O)=O", "N"],
            ("[13CH4]", "[=O]", "[C]", "[N]", "[O]"),
            [BOS, 12, 12, 14, EOS],
            {2: "SELFIES cannot write it", 3: "unparsable", 5: "SELFIES cannot write it"},
        ),
        (
            "groups",
            ["CCO", "C=O", "*CC", "C.N", "CC", "CO"],
            ("*C", "*C*", "*O", "C*", "C=O"),
            [BOS, 13, 11, 12, EOS],
            {2: "groups cannot write it", 3: MIXTURE},
        ),
    ],
)
def test_rows_and_reasons(kind, texts, tokens, row, reasons):
    found = prepared(kind, texts)
    words, written = found.vocabulary, [text for place, text in enumerate(texts) if place not in reasons]
    assert (words.kind, words.tokens[len(SPECIALS) :]) == (kind, tokens)
    assert dict(zip(found.rejected["row"], found.rejected["reason"], strict=True)) == reasons
    assert list(found.smiles["smiles"]) == written
    assert {words.decode(ids) for ids in np.concatenate([found.train, found.validation])} == {*written}
    assert words.encode("CCO", 8) == [*row, PAD, PAD, PAD]
    assert words.decode([*row, 12, PAD, PAD]) == "CCO"
    with pytest.raises(InputError, match=r"^unknown token (\[F\]|\*F)$"):
        words.encode("CF", 8)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(representations, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"SELFIES need the package selfies: pip install selfies"):
        prepared("selfies", ["CCO"])


def test_a_prefix_is_a_whole_molecule():
    words = Vocabulary(kind="selfies").extended(tokenize_selfies("c1ccc2[nH]ccc2c1"))
    given = given_molecule(DemandSettings(count=1, nfe=1, prefix="c1ccc2[nH]ccc2c1"), words, 32)
    places = int((given != FREE).sum())
    assert given[0] == BOS
    assert words.decode([*given[:places].tolist(), EOS]) == "c1ccc2[nH]ccc2c1"


@pytest.mark.parametrize(
    ("kind", "option", "text", "message"),
    [
        ("selfies", "prefix", "C(", "a model of SELFIES needs a whole molecule: SELFIES cannot write it"),
        ("selfies", "prefix", "CF", r"a model of SELFIES needs a whole molecule: unknown token \[F\]"),
        ("selfies", "template", "C*C", "a model of SELFIES cannot fill gaps; use prefix"),
        ("groups", "prefix", "CC", "a model of groups takes none; use scaffold$"),  # whose group would grow
        ("groups", "template", "CC", "a model of groups takes none; use scaffold$"),
    ],
)
def test_what_a_notation_cannot_begin_with_is_refused(kind, option, text, message):
    words = Vocabulary(kind=kind).extended(REPRESENTATIONS[kind].tokenize("CCO"))
    with pytest.raises(InputError, match=f"^{option}: {message}"):
        given_molecule(DemandSettings(count=1, nfe=1, **{option: text}), words, 32)


def test_what_follows_a_prefix_leaves_it_a_substructure():
    """Any symbols after the indole, of those that molecules have: bonded to its last atom, or ignored."""
    start, indole = tokenize_selfies("c1ccc2[nH]ccc2c1"), Chem.MolFromSmiles("c1ccc2[nH]ccc2c1")
    symbols = ["[C]", "[=C]", "[N]", "[O]", "[F]", "[Branch1]", "[=O]"]
    for row in np.random.default_rng(0).choice(symbols, (100, 8)):
        molecule = Chem.MolFromSmiles(join_selfies([*start, *row]))
        assert molecule.HasSubstructMatch(indole), row
