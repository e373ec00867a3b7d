"""A small vocabulary of word pieces, in the place of the published one."""

import pytest

from pairflow.data.download import RawFile, git_blob_id
from pairflow.kinds.text import tokenisers

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "un", "##sat", "##s", "don"),
    *("'", "t", ".", ",", "12", "a", "b", "c"),
]


@pytest.fixture
def pieces(tmp_path, monkeypatch):
    """A vocab.txt of a few pieces, which is taken for that of bert-base-uncased."""
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n")
    published = RawFile((path.name,), "https://nowhere", git_blob_id(path))
    monkeypatch.setattr(tokenisers, "BERT", published)
    return path
