"""Published texts from small archives of their form, and what is said of archives that are not."""

import io
import tarfile
import zipfile

import pytest

from pairflow.data.status import Condition
from pairflow.errors import InputError
from pairflow.kinds.text.data_sets import DATA_SETS as TEXTS
from pairflow.kinds.text.data_sets import HELD_OUT, TRAINING, detokenise
from pairflow.kinds.text.settings import Text


def settings(source, **others) -> Text:
    return Text(**{"source": source, "tokeniser": "characters", "length": 8, **others})


@pytest.fixture
def lm1b(copies):
    """The archive of LM1B with a sentence in each file, in the folder of local copies."""
    path = copies / TEXTS["lm1b"].file.names[0]
    with tarfile.open(path, "w:gz") as archive:
        for folder, names, sentence in (
            ("training-monolingual.tokenized.shuffled", TRAINING, "a b , a b .\n"),
            ("heldout-monolingual.tokenized.shuffled", HELD_OUT, "c a .\nc ?\n"),
        ):
            for name in names:
                text = "c c c .\n" if name in TRAINING[-2:] else sentence
                member = tarfile.TarInfo(f"benchmark/{folder}/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


def test_text8_is_cut_in_three(copies):
    with zipfile.ZipFile(copies / "text8.zip", "w") as archive:
        archive.writestr("text8", " anarchism originated as a term of abuse " * 10)
    prepared = TEXTS["text8"].read(settings("text8"))
    assert prepared.tokeniser.decode(prepared.train[0]) == " anarchi"
    assert [len(rows) for rows in (prepared.train, prepared.validation, prepared.judge)] == [46, 2, 2]
    assert TEXTS["text8"].status(offline=True).condition is Condition.OK


def test_lm1b_is_cut_as_the_protocol_says(lm1b, pieces):
    """Sentences end in [SEP], pieces of N - 2 stand between [CLS] and [SEP], the remainder is dropped."""
    chosen = settings("lm1b", tokeniser="bert", judge_fraction=0.02, training_rows=20)
    prepared = TEXTS["lm1b"].read(chosen)
    decoded = [prepared.tokeniser.decode(row) for row in prepared.train]
    assert len(decoded) == 20  # of 97 sentences of 7 symbols in pieces of 6: 113
    pieces = {"[CLS] a b, a b. [SEP]", "[CLS] [SEP] a b, a b [SEP]", "[CLS]. [SEP] a b, a [SEP]"}
    assert pieces & set(decoded)
    assert {prepared.tokeniser.decode(row) for row in prepared.judge} == {"[CLS] c c c. [SEP] c [SEP]"}
    whole = TEXTS["lm1b"].read(settings("lm1b", tokeniser="bert", judge_fraction=0.02))
    assert len(whole.train) == 97 * 7 // 6
    order = [row.tolist() for row in whole.train]
    places = [order.index(row.tolist()) for row in prepared.train]
    assert len(places) == 20
    assert not prepared.rejected.empty  # a question mark is no piece here
    assert set(prepared.rejected.reason) == {"unknown symbol"}


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ('He said , " It \'s late ! " ( at 5 : 30 ) .', 'He said, "It\'s late!" (at 5: 30) .'),
        ("It costs $ 5 or £ 4 ; see http : / / x.org / y", "It costs $5 or £4; see http://x.org/y"),
        ("Who ? They did n't say .", "Who? They did n't say."),
    ],
)
def test_sentences_are_detokenised(sentence, text):
    assert detokenise(sentence) == text


@pytest.mark.parametrize("name", ["text8", "lm1b"])
def test_what_is_no_archive_is_refused(copies, name):
    source = TEXTS[name]
    (copies / source.file.names[0]).write_bytes(b"no archive")
    with pytest.raises(InputError, match=rf"{source.file.names[0]}: not the archive of (text8|LM1B): "):
        source.read(settings(name))


@pytest.mark.parametrize("name", ["text8", "lm1b"])
def test_the_size_is_known_without_the_data(cache, name):
    source = TEXTS[name]
    assert source.status(offline=True).condition is Condition.OPTIONAL
    size = source.measure(settings(name, tokeniser="bert", length=16, training_rows=3_500_000))
    assert (size.rows, size.length, size.vocabulary_size) == (3_500_000, 16, 30_522)
    assert size.validation_rows > 100_000
