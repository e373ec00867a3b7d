"""Samples as lines, and lines as rows that can be scored, for kinds of data that say no more than how."""

import numpy as np
import pytest

from pairflow.data.delivery import Lines, ScoredLines
from pairflow.errors import InputError


class EvenNumbers(Lines):
    noun = "numbers"

    def decode(self, tokens):
        return "".join(map(str, tokens))

    def accepts(self, text):
        return int(text) % 2 == 0


@pytest.mark.parametrize(("unique", "expected"), [(False, ["2", "4", "2"]), (True, ["2", "4"])])
def test_lines_are_kept_in_their_order(unique, expected):
    lines = EvenNumbers(unique)
    kept = [lines.keep(lines.decode([token])) for token in (1, 2, 4, 2)]
    assert [text for text in kept if text] == expected
    assert lines.summarise([{}] * len(expected), 0.0) == "numbers from 4 samples"
    lines.begin()
    assert lines.keep("2") == "2"


def test_lines_leave_as_text_or_a_table(tmp_path):
    lines = EvenNumbers(False)
    describe = lines.describer(True, None)
    for name, content in {"a.txt": "2\n4\n", "a.csv": "name,text\nx,2\ny,4\n"}.items():
        rows = [{"name": key, **describe(text)} for key, text in (("x", "2"), ("y", "4"))]
        lines.writer(tmp_path / name)(tmp_path / name, rows)
        assert (tmp_path / name).read_text() == content
    with pytest.raises(InputError, match=r"a\.sdf: unknown suffix '\.sdf'; expected \.txt or \.csv for num"):
        lines.writer(tmp_path / "a.sdf")


def encode(text):
    if not text.isdigit():
        raise InputError(f"expected digits, found {text!r}")
    return np.array([int(digit) for digit in text])


def test_lines_that_cannot_be_scored_keep_their_place(tmp_path):
    (tmp_path / "a.txt").write_text("12\n1\nx\u2028\n")
    rows = [*ScoredLines("number", encode, 2).read(tmp_path / "a.txt", "")]
    assert rows[0].tokens.tolist() == [1, 2]
    reasons = ["", "expected 2 tokens, found 1", r"expected digits, found 'x\u2028'"]
    assert [row.reason for row in rows] == reasons
    with pytest.raises(InputError, match=r"expected \.txt with numbers"):
        [*ScoredLines("number", encode, 2).read(tmp_path / "a.csv", "")]
