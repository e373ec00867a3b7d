"""Reads FASTA files: records of a header line, which begins with `>`, and the lines of a sequence."""

import re
from pathlib import Path

from pairflow.errors import InputError
from pairflow.files import split_lines

SUFFIXES = (".fasta", ".fa", ".faa")
_HEADER, _COMMENT = ">", ";"
_SEQUENCE = re.compile(r"[A-Za-z*-]+")
_SAMPLED = 100_000  # characters


def is_fasta(path: Path, text: str) -> bool:
    """Whether a file is FASTA: by its suffix, or because it begins with a header, and all other lines are
    headers or sequences of letters."""
    lines = [line for line in map(str.strip, split_lines(text[:_SAMPLED])) if line]
    others = [line for line in lines if not line.startswith(_HEADER)]
    looks_so = lines[:1] != others[:1] and bool(others) and all(map(_SEQUENCE.fullmatch, others))
    return path.suffix.lower() in SUFFIXES or looks_so


def read_fasta(path: Path, text: str) -> list[tuple[str, str]]:
    """Return the name (the header without `>`) and the sequence of each record. A sequence is joined from its
    lines, without white space. Raises InputError for other text before the first header."""
    records = list[tuple[str, list[str]]]()
    for number, line in enumerate(split_lines(text), 1):
        if line.startswith(_HEADER):
            records.append((line[1:].strip(), []))
        elif line.strip() and not line.startswith(_COMMENT):
            if not records:
                expected = "expected FASTA, in which each record begins with >"
                raise InputError(f"{path}: {expected}; found {line[:40]!r} in line {number}")
            records[-1][1].extend(line.split())
    return [(name, "".join(parts)) for name, parts in records]
