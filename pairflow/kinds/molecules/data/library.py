"""Reads files of molecules row by row, so that memory does not grow with the file.

In a SMILES file the SMILES are the first field of each line, or another field if most first fields are no
SMILES. A file with the suffix of a SMILES file is a table if its header names a column of SMILES and further
columns.

Each format has a reader; `data.tabular` reads tables. Header lines and blank lines are not rows. The number
of a row, from 1, helps users to find it: it is the number of its first line, of its record in an SDF file, or
of its row in an Excel or Parquet file.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, dropwhile, islice
from math import inf
from pathlib import Path
from typing import BinaryIO

from pairflow.data import tabular
from pairflow.errors import InputError
from pairflow.files import PACKED, lines_of, opened, suffix_of
from pairflow.kinds.molecules.data.fields import Row, name_column
from pairflow.runtime.progress import bar

_FORMATS = {
    **dict.fromkeys((".smi", ".smiles", ".cxsmiles", ".ism", ".txt"), "SMILES"),
    **tabular.FORMATS,
    **dict.fromkeys((".sdf", ".sd"), "SDF"),
}
_CONTENT = {"SMILES": "a SMILES at the start of each line", "SDF": "records that end in $$$$"}
# Usual names of columns with SMILES, in lower case and without blanks and the like, the most likely first.
_SMILES_COLUMNS = (
    *("smiles", "isomericsmiles", "canonicalsmiles", "smilescanonical", "connectivitysmiles"),
    *("structure", "structures", "molecule", "mol", "compound"),
)
_BLANKS = re.compile(r"[ \t]+")  # other white space is no part of the format
_EXTENSION = re.compile(r"(\|[^|]*\|?)\s*")  # of CXSMILES, between a SMILES and a name
_FIELDS = [(separator, place) for separator in (None, ",", ";", "\t") for place in range(3)]
_HEAD = 100  # lines from which the field with SMILES is found
_LONGEST_LINE = 1_000_000  # characters; a longer line is a sign that it is not a text file


def format_of(path: str | Path) -> str:
    """Return "SMILES", "SDF" or the format of a table, by the suffix of a file or, for an unknown suffix, by
    its content. Raises InputError if it is unknown."""
    if (suffix := suffix_of(Path(path))) not in _FORMATS and not holds_smiles(Path(path)):
        tabular.refuse_spreadsheet(Path(path))
        packed = ", ".join(PACKED)
        raise InputError(
            f"{path}: unknown kind of file; expected a name that ends in {', '.join(_FORMATS)}, optionally "
            f"followed by {packed}"
        )
    name = _FORMATS.get(suffix, "SMILES")
    return "CSV" if name == "SMILES" and _names_smiles(Path(path)) else name


def _names_smiles(path: Path) -> bool:
    """Return whether a text file is a table whose header names a column of SMILES."""
    with suppress(InputError):
        layout = tabular.layout_of(path) if path.is_file() else None
        return layout is not None and any(usual_place(name) < inf for name in layout.header)
    return False


def holds_smiles(path: Path) -> bool:
    """Return whether a text file of any name holds SMILES in most lines, or is a table with a column of
    SMILES."""
    with suppress(InputError):
        return path.is_file() and (_names_smiles(path) or find_field(path) is not None)
    return False


def usual_place(name: str) -> float:
    """Return the place of a name in the list of usual names of columns with SMILES, the best first; infinite
    if the name is not in the list."""
    plain = re.sub("[ _.-]", "", name.lower())
    return _SMILES_COLUMNS.index(plain) if plain in _SMILES_COLUMNS else inf


def is_known(path: Path) -> bool:
    """Return whether a file has a suffix of files of molecules, or of tables."""
    return suffix_of(path) in _FORMATS


def is_table(path: str | Path) -> bool:
    """Return whether a file is a table, which has columns."""
    return format_of(path) not in _READERS


def unit_of(path: str | Path) -> str:
    """Return what row numbers count in this file: "line", "record" (SDF) or "row" (Excel, Parquet)."""
    return "record" if format_of(path) == "SDF" else tabular.unit_of(Path(path))


def read_rows(
    path: str | Path, column: str = "smiles", progress: bool = False, sheet: str | None = None
) -> Iterator[Row]:
    """Yield the rows of a file, with their SMILES unchanged (from an SDF file as RDKit writes them).

    - SMILES files: a field of each line is the SMILES (see `find_field`), with a CX extension after it, and
      the rest is the name. A first line with a usual name of a column in this field is a header; comments
      (`#`) may stand above.
    - Tables: SMILES are in `column`, names in the column that `name_column` finds. Of an Excel file the
      `sheet` is read, or else the first that is not empty.
    - SDF files: the name is the data item `column`, if that is not "smiles"; or else the title, the first
      line of a record; or else the data item that `name_column` finds.

    The progress bar counts bytes. Raises InputError for a file that is missing, empty, truncated, not in
    UTF-8 or not in the format of its suffix, and for an unknown column.
    """
    path = Path(path)
    number, size = 0, path.stat().st_size if path.is_file() else 0
    with (
        _opened_rows(path, column, sheet) as (rows, raw, expected),
        bar(total=size, desc="read", unit="B", unit_scale=True, quiet=not progress) as read,
    ):
        for number, row in enumerate(rows, 1):
            if number % 256 == 0:
                read.update(raw.tell() - read.n)
            yield row
        read.update(size - read.n)
    if not number:
        raise InputError(f"{path}: empty; expected {expected}")


@contextmanager
def _opened_rows(path: Path, column: str, sheet: str | None) -> Iterator[tuple[Iterator[Row], BinaryIO, str]]:
    """Open a file of molecules. Gives its rows; the file in bytes, whose position shows the progress; and
    what such a file should hold, in words."""
    if is_table(path):
        with tabular.open_table(path, sheet=sheet) as table:
            if column not in table.header and not tabular.is_table(path):  # a SMILES file by its name
                column = min(table.header, key=usual_place)
            yield _cells(table, column), table.raw, tabular.EXPECTED
    else:
        kind = format_of(path)
        if sheet:
            raise InputError(f"{path}: no sheet {sheet!r}: only Excel files have sheets")
        with opened(path, kind) as (content, raw):
            yield _READERS[kind](lines_of(content, path, _LONGEST_LINE), path, column), raw, _CONTENT[kind]


def read_fields(
    path: str | Path, column: str, sheet: str | None = None, strict: bool = False
) -> Iterator[tuple[int, str, str]]:
    """Yield (number, field, fault) for each row of a table, or record of an SDF file. The field is in
    `column`, or in the data item with that name. A row with a fault has an empty field. Raises InputError for
    an unknown column, for a format without columns, and if `strict` for a row with a fault."""
    if format_of(path) == "SDF":
        with _opened_items(Path(path)) as (header, records):
            index = tabular.index_of(header, column, path)
            yield from ((number, fields[index], "") for number, fields in records)
        return
    if not is_table(path):
        raise InputError(f"{path}: a {format_of(path)} file has no columns, so there is no column {column!r}")
    with tabular.open_table(Path(path), sheet=sheet) as table:
        for number, [field] in table.read(column, strict=strict):
            fault = table.faults.get(number, "")
            yield number, "" if fault else field, fault


def repeated_names(path: Path, sheet: str | None = None) -> set[str]:
    """Return the names that more than one column of a table has."""
    with tabular.open_table(path, sheet=sheet) as table:
        return {name for name in table.header if table.header.count(name) > 1}


def first_fields(path: Path, number: int, sheet: str | None = None) -> dict[str, list[str]]:
    """Map each column of a table, or data item of an SDF file, to its fields in the first `number` rows."""
    if format_of(path) == "SDF":
        return data_items(path, number)
    return next(tabular.columns(path, number, sheet))[1]


def data_items(path: Path, number: int) -> dict[str, list[str]]:
    """Map each data item of an SDF file to its fields in the first `number` records."""
    with _opened_items(path) as (header, records):
        first = [fields for _, fields in islice(records, number)]
    return {name: [fields[index] for fields in first] for index, name in enumerate(header)}


@contextmanager
def _opened_items(path: Path) -> Iterator[tuple[list[str], Iterator[tabular.Record]]]:
    """Open an SDF file as a table of its data items. Gives the names of the columns, and the records."""
    from pairflow.kinds.molecules.data.sdf import as_table  # which imports RDKit

    with opened(path, "SDF") as (content, _):
        yield as_table(lines_of(content, path, _LONGEST_LINE), path)


def find_field(path: Path) -> tuple[str | None, int] | None:
    """Find where the lines of a text file have SMILES: return the separator of fields (None: white space) and
    the number of the field, from 0. Returns None if no field is SMILES in most of the first lines."""
    with opened(path, "SMILES") as (content, _):
        lines = lines_of(content, path, _LONGEST_LINE)
        return _find_field([*islice(lines, _HEAD)])


def _find_field(lines: list[str]) -> tuple[str | None, int] | None:
    from pairflow.kinds.molecules.data.fields import is_molecule  # which imports RDKit

    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    for separator, place in _FIELDS:
        fields = (_field(line.split(separator), place) for line in lines)
        whole = (field for field in fields if len(field) > 2 and len(field.split()) == 1)
        if sum(map(is_molecule, whole)) > len(lines) / 2:
            return separator, place
    return None


def _field(fields: list[str], place: int) -> str:
    return fields[place].strip(' \t\r\n"') if place < len(fields) else ""


def _smiles(lines: Iterator[str], path: Path, column: str) -> Iterator[Row]:
    head = [*islice(lines, _HEAD)]
    separator, place = _find_field(head) or (None, 0)
    above = dropwhile(lambda each: not each[1].strip() or each[1].startswith("#"), enumerate(head, 1))
    numbered = chain(above, enumerate(lines, len(head) + 1))
    if (separator, place) == (None, 0):
        rows = _first_fields(numbered)
    else:
        filled = ((number, line) for number, line in numbered if not line.isspace())
        rows = (_other_row(number, line.split(separator), place) for number, line in filled)
    first = next(rows, None)
    return rows if first is None or usual_place(first.text) < inf else chain([first], rows)


def _first_fields(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yield the rows of numbered lines that begin with SMILES, perhaps with a CX extension (`CCO |r|
    ethanol`). Quotes around the SMILES are left out."""
    for number, line in lines:
        text, _, name = line.strip().partition(" ")
        if "\t" in text or text[:1] == '"' or (name and name[0] in " \t|"):
            text, name = (*_BLANKS.split(line.strip(), 1), "")[:2]
            if text[:1] == text[-1:] == '"':
                text = text[1:-1]
            if extension := _EXTENSION.match(name):
                text, name = f"{text} {extension[1].rstrip()}", name[extension.end() :]
            yield Row(number, text, name)
        elif text:
            yield Row(number, text, name)


def _other_row(number: int, fields: list[str], place: int) -> Row:
    """Return the row of a line whose SMILES are `fields[place]`, perhaps with a CX extension (`|r|`) in
    the next field. The name is the first other field that is not empty."""
    others = [_field(fields, index) for index in range(len(fields)) if index != place]
    extension = "".join(f" {field}" for field in others[place : place + 1] if field.startswith("|"))
    return Row(
        number,
        _field(fields, place) + extension,
        next((name for name in others if name and name[0] != "|"), ""),
    )


def _cells(table: tabular.OpenTable, column: str) -> Iterator[Row]:
    named = name_column(table.header, column)
    for number, [text, *names] in table.read(column, *filter(None, [named]), strict=False):
        yield Row(number, text, names[0].strip() if names else "", table.faults.get(number, ""))


def _sdf(lines: Iterable[str], path: Path, column: str) -> Iterator[Row]:
    from pairflow.kinds.molecules.data.sdf import read_sdf  # which imports RDKit

    return read_sdf(lines, path, column)


_READERS = {"SMILES": _smiles, "SDF": _sdf}
