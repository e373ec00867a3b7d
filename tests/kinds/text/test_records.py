"""FASTA, what it is known by, and its records; columns of tables."""

from pathlib import Path

import pytest

from pairflow.errors import InputError
from pairflow.kinds.text.on_demand import ScoredText
from pairflow.kinds.text.records import Record, is_fasta, read_column, read_fasta


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.faa", "MKT\n", True),
        ("a.txt", ">sp|P1\nMKT\n\n>P2\nmk-t*\n", True),
        ("a.txt", "> quoted by mail\nYes, I agree.\n", False),
        ("a.txt", "MKT\n>P2\nMKT\n", False),
        ("a.txt", ">\n>\n", False),
    ],
)
def test_what_is_fasta(name, text, expected):
    assert is_fasta(Path(name), text) is expected


def test_records():
    text = "; comment\n> P1 a name \r\nMK\r\nT V\r\n\r\n>P2\n>\nacg*\n"
    records = [Record(2, "P1 a name", "MKTV"), Record(6, "P2", ""), Record(7, "", "acg*")]
    assert read_fasta(Path("a.fa"), text) == records
    [numbered] = read_fasta(Path("a.fa"), ">P3\n  1 mktv acde\n 21 ghik\n")
    assert (numbered.text, numbered.reason[:6]) == ("1mktvacde21ghik", "digits")
    assert read_fasta(Path("a.fa"), ">P1\nMK\n >P2\nTV\n") == [Record(1, "P1", "MK"), Record(3, "P2", "TV")]
    with pytest.raises(InputError, match=r"^a\.fa: expected FASTA, found '>P1;X' of PIR in line 1$"):
        read_fasta(Path("a.fa"), ">P1;X\na protein\nMK*\n")
    with pytest.raises(InputError, match=r"^a\.fa: expected FASTA, .* found 'MKT' in line 2$"):
        read_fasta(Path("a.fa"), "\nMKT\n>P1\n")


def test_the_texts_of_a_column(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'label,text\r\n1,"a\r\nb, c"\r\n2,\r\n3,d\xe2\x80\xa8e\r\n')
    texts = [Record(2, "", "a\nb, c"), Record(4, "", ""), Record(5, "", "d\u2028e")]
    assert read_column(tmp_path / "a.csv", "text") == texts
    with pytest.raises(InputError, match=r"a\.csv: no column 'Text' .*; found 'label', 'text'$"):
        read_column(tmp_path / "a.csv", "Text")


def test_a_table_with_rejected_rows_is_not_scored(tmp_path):
    (tmp_path / "a.csv").write_text("label,text\n1,a\n2,b,c\n")
    with pytest.raises(InputError, match=r"a\.csv: row 3 has 3 fields, the header 2; quote fields that"):
        list(object.__new__(ScoredText).read(tmp_path / "a.csv", "text"))
