"""Text to tokens and back: exact where it can be, and what is refused."""

import hashlib
import json
import sys

import numpy as np
import pytest

from pairflow.errors import InputError
from pairflow.kinds import source_of
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.tokenisers import Characters, WordPieces, load_tokeniser

MIXED = "Ünïcode — 中文, العربية, हिन्दी:\n👩‍👩‍👧 and e\u0301!\r\n\tTwo  spaces\u00a0and \x00 a zero.\n"


@pytest.fixture(scope="module")
def shakespeare():
    settings = Text(source="shakespeare", tokeniser="characters", length=32)
    parts = source_of(settings).parts(settings, [])
    return "".join(text for texts in parts.values() for text in texts)


@pytest.mark.parametrize("text", ["shakespeare", "mixed"])
def test_decoding_is_exact_on_all_of_a_text(text, request):
    text = request.getfixturevalue(text) if text == "shakespeare" else MIXED
    tokeniser = Characters.from_texts([text])
    assert tokeniser.size == len(set(text))
    assert tokeniser.decode(tokeniser.encode(text)) == text


def test_the_embedded_text_is_the_one_that_it_claims_to_be(shakespeare, data_dir):
    assert shakespeare.startswith("First Citizen:\nBefore we proceed")
    assert shakespeare.encode() == (data_dir / "tinyshakespeare.txt").read_bytes()


def test_characters_are_ordered_and_a_strange_one_is_named():
    tokeniser = Characters.from_texts(["b a", "c"])
    assert tokeniser.tokens == (" ", "a", "b", "c")
    assert tokeniser.encode("cab").tolist() == [3, 1, 2]
    with pytest.raises(InputError, match=r"^unknown symbol 'é'$"):
        tokeniser.encode("cabé")


def test_word_pieces_are_berts(pieces, monkeypatch):
    tokeniser = WordPieces.read(pieces)
    tokens = tokeniser.encode("The CAT unsat, don't sats.")
    expected = "the cat un ##sat , don ' t sat ##s ."
    assert [tokeniser.tokens[token] for token in tokens] == expected.split()
    assert tokeniser.decode([2, *tokens, 3, 0, 0]) == "[CLS] the cat unsat, don't sats. [SEP]"
    assert (tokeniser.padding, tokeniser.unknown, tokeniser.end, tokeniser.mask) == (0, 1, None, 4)
    assert tokeniser.encode_all(["the cat", "dog"]).tolist() == [5, 6, 3, 1, 3]
    assert tokeniser.frame(np.array([[5, 6]])).tolist() == [[2, 5, 6, 3]]
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match=r"needs tokenizers: pip install \"pairflow\[text\]\"$"):
        WordPieces.read(pieces).encode("the cat")


def test_a_line_ends_and_is_padded():
    tokeniser = Characters.from_texts(["abc"], lines=True)
    assert tokeniser.tokens == ("a", "b", "c", "<end>", "<pad>")
    row = tokeniser.line(tokeniser.encode("cab"), 6)
    assert row.tolist() == [2, 0, 1, 3, 4, 4]
    assert tokeniser.decode(row) == "cab"
    assert tokeniser.decode([2, 4, 0, 3, 1]) == "ca"  # what stands behind the end is no text
    with pytest.raises(InputError, match=r"^too long \(3 tokens, limit 2\)$"):
        tokeniser.line(tokeniser.encode("cab"), 3)


def test_a_saved_tokeniser_is_the_same(tmp_path, pieces):
    path = tmp_path / "vocabulary.json"
    for tokeniser in (Characters.from_texts([MIXED], True), WordPieces.read(pieces)):
        path.write_text(tokeniser.to_json() + "\n")
        assert load_tokeniser(path) == tokeniser
        assert hashlib.sha256(path.read_bytes()[:-1]).hexdigest() == tokeniser.hash


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"no such file; expected a vocabulary$"),
        ([], r"expected a vocabulary of text \(characters, bert\)$"),
        ({"kind": "characters", "tokens": 1}, r"expected a vocabulary of text \(characters, bert\)$"),
        ({"kind": "bert", "tokens": ["[UNK]", "[CLS]", "[PAD]", "[MASK]"]}, r"bert has the symbol \[SEP\]"),
    ],
)
def test_what_is_no_tokeniser_is_refused(tmp_path, content, message):
    path = tmp_path / "vocabulary.json"
    if content is not None:
        path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        load_tokeniser(path)
