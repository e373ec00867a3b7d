"""FASTA: what it is known by, and its records."""

from pathlib import Path

import pytest

from pairflow.errors import InputError
from pairflow.kinds.text.fasta import is_fasta, read_fasta


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
    assert read_fasta(Path("a.fa"), text) == [("P1 a name", "MKTV"), ("P2", ""), ("", "acg*")]
    with pytest.raises(InputError, match=r"^a\.fa: expected FASTA, .* found 'MKT' in line 2$"):
        read_fasta(Path("a.fa"), "\nMKT\n>P1\n")
