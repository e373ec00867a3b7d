"""Reads files whose texts are records: FASTA, and a column of a table."""

import re
from pathlib import Path
from typing import NamedTuple

from pairflow.data.tabular import open_table
from pairflow.errors import InputError
from pairflow.files import split_lines, suffix_of, unify_line_ends
from pairflow.kinds.text.settings import FASTA_SUFFIXES

_HEADER, _COMMENT = ">", ";"
_DIGIT, _NUMBERED = re.compile("[0-9]"), "digits inside the sequence, which are no residues"
_PIR = re.compile(r">(P1|F1|D[LC]|R[LC]|N[13]|XX);")
_SEQUENCE = re.compile(r"[A-Za-z*-]+")
_SAMPLED = 100_000  # characters


class Record(NamedTuple):
    """A text in a file, its name, if it has one, the number of its first line or row, and the reason if it is
    rejected."""

    number: int
    name: str
    text: str
    reason: str = ""


def is_fasta(path: Path, text: str) -> bool:
    """Return whether a file with the content `text` is FASTA: by its suffix, or because it begins with a
    header, and all other lines at its beginning are headers or sequences of letters."""
    lines = [line for line in map(str.strip, split_lines(text[:_SAMPLED])) if line]
    others = [line for line in lines if not line.startswith(_HEADER)]
    looks_so = lines[:1] != others[:1] and bool(others) and all(map(_SEQUENCE.fullmatch, others))
    return suffix_of(path) in FASTA_SUFFIXES or looks_so


def read_fasta(path: Path, text: str) -> list[Record]:
    """Return the records of a FASTA file: the name of each is its header without `>`, and the text its
    sequence without white space.

    A sequence with digits has a reason to be rejected: these are positions, as GenBank writes them, and no
    residues. Raises InputError for PIR, whose headers have a second line, and for other text before the first
    header.
    """
    records = list[tuple[int, str, list[str]]]()
    for number, line in enumerate(map(str.strip, split_lines(text)), 1):
        if _PIR.match(line):
            raise InputError(f"{path}: expected FASTA, found {line[:40]!r} of PIR in line {number}")
        if line.startswith(_HEADER):
            records.append((number, line[1:].strip(), []))
        elif line and not line.startswith(_COMMENT):
            if not records:
                expected = "expected FASTA, in which each record begins with >"
                raise InputError(f"{path}: {expected}; found {line[:40]!r} in line {number}")
            records[-1][2].extend(line.split())
    sequences = ((number, name, "".join(parts)) for number, name, parts in records)
    return [Record(*record, _NUMBERED * bool(_DIGIT.search(record[2]))) for record in sequences]


def read_column(path: Path, column: str, sheet: str | None = None) -> list[Record]:
    """Return a record for each row of a table, with the text in `column`; of an Excel file, `sheet` chooses
    the sheet. Raises InputError for an unknown column."""
    with open_table(path, column, sheet) as table:
        return [
            Record(number, "", unify_line_ends(text), table.faults.get(number, ""))
            for number, [text] in table.read(column, strict=False)
        ]
