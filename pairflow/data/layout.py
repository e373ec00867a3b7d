"""Finds how a table is written from its first lines: its separator, and its header below comments."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import NamedTuple

from pairflow.files import split_lines

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # Excel's own
_SEPARATORS = ",;\t|"
_NO_SEPARATOR = "\x1f"  # for a CSV file of one column, whose fields may have commas
_AGREEING = 0.8  # least share of lines with equally many fields, so that a separator is one
_USUAL_NAME = re.compile(r".*smiles|id|name|text|sequence|structure|molecule|compound", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[+-]?[\d.,]+(e[+-]?\d+)?\s*", re.IGNORECASE)


class Header(NamedTuple):
    """The header of a table.

    Attributes:
        row: its index among the first rows of the file.
        names: the names of the columns.
        width: how many fields most rows have.
        share: the share of the rows below the header that have `width` fields.
        whole: the same share of all rows except comments.
    """

    row: int
    names: list[str]
    width: int
    share: float
    whole: float

    @property
    def agrees(self) -> bool:
        """Whether there are several names, and most of the rows below have as many fields (or one more)."""
        return len(self.names) > 1 and self.width - len(self.names) in (0, 1) and self.share >= _AGREEING


class Layout(NamedTuple):
    """How a CSV file is written. The `header` ends after `lines` lines; the longest rows have `width`
    fields; and if it `agrees`, rows have as many fields as the header."""

    separator: str
    header: list[str]
    lines: int
    width: int
    agrees: bool


def find_layout(lines: list[str], suffix: str) -> Layout | None:
    """Find how a CSV file is written from its first lines; None if it is empty. `suffix` is that of the file,
    such as `.csv`."""
    skipped = next((number for number, line in enumerate(lines) if not line.isspace()), len(lines))
    separators = _SEPARATORS
    if lines[skipped:] and (stated := _SEPARATOR_LINE.fullmatch(lines[skipped])):
        separators, skipped = stated[1], skipped + 1
    elif suffix in (".tsv", ".tab") and any("\t" in line for line in lines):
        separators = "\t"
    tried = {}
    for separator in (*separators, _NO_SEPARATOR):
        records = [*_split(lines[skipped:], separator)]
        if not records:
            return None
        tried[separator] = records, find_header([fields for _, fields in records])
    separator = _choose({separator: header for separator, (_, header) in tried.items()})
    if _is_prose(tried[separator]):
        separator = _NO_SEPARATOR
    records, header = tried[separator]
    rows = [fields for _, fields in records[header.row + 1 :]]
    named, written = name_columns(header, rows), len(header.names)
    # Below a header of one name, further fields are columns without a name; below others they are a fault.
    width = written if written > 1 and named[-1] == f"column {len(named)}" else len(named)
    return Layout(separator, named, skipped + records[header.row][0], width, header.agrees)


def _is_prose(table: tuple[list[tuple[int, list[str]]], Header]) -> bool:
    """Return whether a table (its records and its header), whose header is one name, has further columns only
    because of commas and blanks in texts."""
    records, header = table
    rows = [fields for _, fields in records[header.row + 1 :] if len(fields) > 1]
    spaced = sum(" " in fields[0] and fields[1].startswith(" ") for fields in rows)
    return len(header.names) == 1 and 2 * spaced > len(rows)


def _split(lines: list[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its last line, its fields) for each record that is not empty. Ends before a field that
    is too long, as after an open quote."""
    reader = csv.reader(lines, delimiter=separator)
    with suppress(csv.Error):  # for an open quote
        for fields in reader:
            if any(map(str.strip, fields)):
                yield reader.line_num, fields


def holds_rows(record: list[str], layout: Layout) -> bool:
    """Return whether a quoted field of `record` with several lines really holds rows of the table, because a
    quote in it is stray.

    That is so if most of the lines have as many fields as a row; a comma and a space, as in a sentence, do
    not separate fields.
    """
    separator, most = layout.separator, layout.width - 1
    lines = [line for line in split_lines(separator.join(record)) if line]
    rows = [line for line in lines if line.count(separator) == most and f"{separator} " not in line]
    if most == 1:  # so that a line of verse is none
        rows = [line for line in rows if line[-1] != separator]
    return most > 0 and len(lines) > 1 and len(rows) >= _AGREEING * len(lines)


def _choose(headers: dict[str, Header]) -> str:
    """Choose a separator among the keys of `headers`, by the header that is found with each.

    It is one with which the rows have as many fields as the header; or else one that is in the header; or
    else, for a header of one name, one with which the rows have equally many fields; or else none, the last
    key.
    """
    *separators, _ = headers
    best = max(separators, key=lambda key: (headers[key].agrees, headers[key].whole, headers[key].width))
    if headers[best].agrees:
        return best
    longest = max(separators, key=lambda key: len(headers[key].names))
    if len(headers[longest].names) > 1:
        return longest
    even = [key for key in separators if headers[key].width > 1 and headers[key].share >= _AGREEING]
    return next((key for key in even if key != "|"), _NO_SEPARATOR)  # a SMILES may end in `|...|`


def find_header(rows: list[list[str]]) -> Header:
    """Find the header among the first rows of a table; comments and titles may stand above it. A comment
    right above the first row is the header if it has as many fields as the rows and this row holds no
    names."""
    plain = [row for row in rows if not _is_comment(row)] or rows
    width = Counter(map(len, plain)).most_common(1)[0][0]
    several = sum(_count_filled(row) > 1 for row in plain) > len(plain) / 2
    passed = (_is_comment(row) or (several and _is_title(row, width)) for row in rows)
    index = next((index for index, above in enumerate(passed) if not above), 0)
    if index and _is_comment(rows[index - 1]) and len(rows[index - 1]) == width > 1:
        index -= not _has_names(rows[index], rows[index + 1 :])
    below = rows[index + 1 :]
    share = sum(len(row) == width for row in below) / len(below) if below else 1.0
    return Header(index, rows[index], width, share, sum(len(row) == width for row in plain) / len(plain))


def _has_names(row: list[str], below: list[list[str]]) -> bool:
    """Return whether a row has the usual name of a column, such as `SMILES` or `id`, or has no number where
    all rows below have one."""
    columns = zip_longest(*below, fillvalue="")
    numeric = [all(map(_NUMBER.fullmatch, column)) for column in columns] if len(below) > 1 else []
    return any(
        _USUAL_NAME.fullmatch(name.strip()) or (numbers and not _NUMBER.fullmatch(name))
        for name, numbers in zip_longest(row, numeric, fillvalue="")
    )


def _count_filled(row: list[str]) -> int:
    return sum(map(bool, map(str.strip, row)))


def _is_comment(row: list[str]) -> bool:
    return row[0].lstrip().startswith("#")


def _is_title(row: list[str], width: int) -> bool:
    """Return whether a row is a title above a table of `width` columns: few fields, and words."""
    few = _count_filled(row) == 1 or len(row) < width - 1
    return few and any(" " in field.strip() for field in row)


def name_columns(header: Header, rows: list[list[str]]) -> list[str]:
    """Return the names of all columns. `rows` are the rows below the header. R leaves out the name of the
    first column if it has the numbers of the rows, so a header with one name too few gets a name for such a
    column."""
    names = [re.sub(r"\s*[\r\n]\s*", " ", name.strip()) for name in header.names]
    names[0] = re.sub(r"^#+\s+", "", names[0])
    counted = [str(number) for number in range(1, len(rows) + 1)]
    if rows and len(names) == header.width - 1 and [row[0] for row in rows] == counted:
        names.insert(0, "")
    names += [""] * (header.width - len(names))
    return [name or f"column {place}" for place, name in enumerate(names, 1)]
