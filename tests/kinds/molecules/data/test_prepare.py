"""Molecules: tokens, vocabulary, and the way from raw rows to token rows."""

import json
from itertools import count

import numpy as np
import pytest

from pairflow.data.split import split_rows
from pairflow.errors import InputError
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.data.prepare import SPECIALS, Vocabulary, prepare
from pairflow.kinds.molecules.data.representations import tokenize
from pairflow.kinds.molecules.on_demand.selection import KnownByRules
from pairflow.kinds.molecules.settings import Molecules, Standardisation


@pytest.fixture
def vocabulary():
    return Vocabulary().extended(tokenize("CCO") + tokenize("N"))


def test_tokens():
    smiles = "C[C@@H](Br)c1ccc(Cl)cc1/C=C/%12"
    assert tokenize(smiles) == [
        *("C", "[C@@H]", "(", "Br", ")", "c", "1", "c", "c", "c", "(", "Cl", ")", "c", "c", "1"),
        *("/", "C", "=", "C", "/", "%12"),
    ]


@pytest.mark.parametrize("text", ["C C", "C[NH", "CxC", "C<mask>", "C%1"])
def test_a_string_that_is_not_smiles_is_refused(text):
    with pytest.raises(InputError, match=r"not a SMILES string: .* belong to no token"):
        tokenize(text)


def test_ids(vocabulary):
    assert vocabulary.tokens == (*SPECIALS, "C", "N", "O")
    assert SPECIALS[:5] == ("<bos>", "<eos>", "<mask>", "<pad>", "<unk>")
    assert vocabulary.size == 13
    assert vocabulary.encode("CCO", 7) == [0, 10, 10, 12, 1, 3, 3]
    assert vocabulary.decode(vocabulary.encode("CCO", 9)) == "CCO"
    assert vocabulary.decode(np.array([0, 3, 10, 0, 12, 1, 11], np.uint8)) == "CO"
    assert vocabulary.decode([10, 2, 10, 4, 9]) == "C<mask>C<unk><reserved9>"
    assert vocabulary.decode([1, 10]) == ""
    with pytest.raises(InputError, match=r"^too long \(3 tokens, limit 2\)$"):
        vocabulary.encode("CCO", 4)
    with pytest.raises(InputError, match=r"^unknown token F$"):
        vocabulary.encode("CF", 8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "not a vocabulary: no JSON object"),
        ('{"kind": "image", "tokens": []}', "kind: input should be 'smiles', 'selfies' or 'groups', found"),
        ('{"kind": "smiles", "tokens": ["C"]}', "a vocabulary begins with <bos>, <eos>"),
        (json.dumps({"kind": "smiles", "tokens": [*SPECIALS, "=cmd|'/C calc'!A10"]}), 'found "=cmd'),
        (json.dumps({"kind": "smiles", "tokens": [*SPECIALS, "[C\nN]"]}), r"found '\[C\\nN\]'"),
    ],
)
def test_broken_vocabulary_file(tmp_path, content, message):
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(InputError, match=rf"v\.json: .*{message}"):
        Vocabulary.load(tmp_path / "v.json")


ROWS = ["OCC\n", "", "CCO", "C1CC", "c1ccccc1", " C ", "CCCCCCCC", "CN"]
SETTINGS = {"length": 9, "validation_fraction": 0.2, "max_too_long_share": 0.5}


def small(rows=ROWS, **changes):
    published = changes.pop("validation_rows", None)
    settings = Molecules(source="x.smi", **SETTINGS | changes)
    return prepare(map(library.Row, count(1), rows), settings, published)


@pytest.mark.parametrize("identity", ["smiles", "inchikey", "tautomer"])
def test_tautomers_are_duplicates_and_known_if_asked_for(identity):
    texts = ["Oc1ccccn1", "O=c1cccc[nH]1", "CCO", "*CC"]
    prepared = small(texts, identity=identity, length=20, drop_duplicates=True)
    same = identity != "smiles"
    assert prepared.smiles["smiles"].tolist() == [texts[0], *texts[1 + same : 3], "*CC"]
    known = prepared.smiles["key" if same else "smiles"]
    rules = Standardisation(identity=identity)
    data = KnownByRules(KnownMolecules.from_smiles(known), rules)
    assert [text in data for text in (*texts, "CCN")] == [True] * 4 + [False]
    tautomers = KnownByRules(KnownMolecules.from_smiles(known[:1]), rules)
    assert (texts[1] in tautomers) == same


def test_prepare(capfd):
    prepared = small()
    assert capfd.readouterr() == ("", "")  # RDKit prints nothing
    assert list(prepared.smiles["row"]) == [0, 2, 5, 7]
    assert list(prepared.smiles["smiles"]) == ["CCO", "CCO", "C", "CN"]
    assert sorted(prepared.smiles["split"]) == ["train", "train", "train", "validation"]
    assert prepared.vocabulary.tokens[10:] == ("C", "N", "O")
    assert prepared.train.shape == (3, 9)
    assert prepared.train.dtype == np.uint8
    for split in ("train", "validation"):
        decoded = [prepared.vocabulary.decode(ids) for ids in getattr(prepared, split)]
        assert decoded == list(prepared.smiles["smiles"][prepared.smiles["split"] == split])
    assert prepared.rejected.to_dict("list") == {
        "row": [1, 3, 4, 6],
        "text": ["", "C1CC", "c1ccccc1", "CCCCCCCC"],
        "reason": ["empty", "unparsable", "too long (8 tokens, limit 7)", "too long (8 tokens, limit 7)"],
        "line": [2, 4, 5, 7],
    }


def test_duplicates_and_large_molecules_are_left_out_on_request():
    reasons = small(drop_duplicates=True).rejected.set_index("row")["reason"]
    assert reasons[2] == "duplicate of row 0"
    prepared = small(max_heavy_atoms=2, max_too_long_share=0)  # before their tokens are counted
    reasons = prepared.rejected.set_index("row")["reason"]
    assert reasons[4] == "over 2 heavy atoms (left out by the experiment)"
    assert list(prepared.smiles["smiles"]) == ["C", "CN"]


def test_a_smaller_training_set_keeps_its_reference():
    whole, part = small(), small(training_rows=1)
    assert sorted(part.smiles["split"]) == ["reference", "reference", "train", "validation"]
    assert (part.smiles["split"] == "validation").equals(whole.smiles["split"] == "validation")
    assert part.train.shape == (1, 9)
    assert part.vocabulary == whole.vocabulary


def test_the_split_is_a_function_of_its_seed_or_published():
    rows = ["C" * (1 + k % 7) for k in range(200)]
    splits = [list(small(rows, split_seed=s, validation_fraction=0.05).smiles["split"]) for s in (1, 1, 2)]
    assert splits[0] == splits[1] != splits[2]
    assert splits[0].count("validation") == 10
    assert list(small(validation_rows=[2, 7]).smiles["split"]) == ["train", "validation"] * 2


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        (ROWS, {"max_too_long_share": 0.1}, r"length: 2 of 6 molecules \(33.33%\) do not fit N = 9; the"),
        (ROWS, {"training_rows": 4}, r"training_rows: expected 1 to 3 \(the training split\), found 4"),
        (ROWS, {"validation_rows": [3]}, r"no row of 4 is held out for validation; expected at least 1"),
        (["", "x", "y"], {}, r"no molecule is left of 3 rows: 2 unparsable \(the first: row 1, 'x'\)"),
    ],
)
def test_refusals(rows, changes, message):
    with pytest.raises(InputError, match=message):
        small(rows, **changes)


@pytest.mark.data
def test_all_of_qm9(qm9):
    assert qm9.vocabulary.size == 40
    assert qm9.train.shape == (127_190, 32)
    assert qm9.validation.shape == (6_695, 32)
    assert (qm9.train != 3).sum(1).max() == 24
    assert not len(qm9.rejected)
    for split in ("train", "validation"):
        decoded = [qm9.vocabulary.decode(row) for row in getattr(qm9, split).tolist()]
        assert decoded == list(qm9.smiles["smiles"][qm9.smiles["split"] == split])


@pytest.mark.data
def test_all_of_zinc(data_dir):
    """As published, which is nearly as RDKit spells it today: parsing all of it again would take a minute."""
    smiles = [row.text.strip() for row in library.read_rows(MOLECULES["zinc250k"].fetch())]
    assert len(smiles) == MOLECULES["zinc250k"].size.total
    vocabulary = Vocabulary().extended(token for text in smiles for token in tokenize(text))
    assert vocabulary.size == 72
    table = np.array([vocabulary.encode(text, 74) for text in smiles])
    assert (table != 3).sum(1).max() == 74
    assert [vocabulary.decode(row) for row in table.tolist()] == smiles
    assert vocabulary.encode("Cn1ncc2c(N)nc(C)nc21", 74)[:5] == [0, 25, 69, 15, 69]
    split = split_rows(range(len(smiles)), 0.05, 42, None, MOLECULES["zinc250k"].validation_rows())
    assert [(split == part).sum() for part in ("train", "validation")] == [224_568, 24_887]
