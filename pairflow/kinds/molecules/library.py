"""Reads files of molecules row by row, so that memory does not grow with the file.

Each format has a reader. Header lines and blank lines are not rows. The number of a row, from 1, helps users
to find it: it is the number of its first line, of its record in an SDF file, or of its row in an Excel file.
"""

import csv
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pairflow.arguments import nearest
from pairflow.artifacts import from_cell
from pairflow.errors import InputError
from pairflow.files import GzipFile, require_plausible
from pairflow.runtime.progress import bar

_FORMATS = {
    **dict.fromkeys((".smi", ".smiles", ".ism", ".txt"), "SMILES"),
    **dict.fromkeys((".csv", ".tsv"), "CSV"),
    **dict.fromkeys((".sdf", ".sd"), "SDF"),
    ".xlsx": "Excel",
}
TABLES = ("CSV", "Excel")  # the formats with columns
_CONTENT = {
    "SMILES": "a SMILES at the start of each line",
    "CSV": "a header line, and rows below it",
    "SDF": "records that end in $$$$",
    "Excel": "a sheet with a header line, and rows below it",
}
# Usual names of columns with SMILES, in lower case, the most likely first.
SMILES_COLUMNS = (
    *("smiles", "canonical_smiles", "isomeric_smiles", "smiles_canonical", "canonical smiles"),
    *("isomeric smiles", "structure", "structures", "molecule", "mol", "compound"),
)
# Columns with names of molecules, if no column is called `name`: "Compound ID", "IDNUMBER", "MolName" ...
_NAME_COLUMN = re.compile(r"(?i:(^|[ _.-])(name|title|id|id[ _]?number|identifier|code))$|[a-z](Name|ID|Id)$")
_WRAP = re.compile(r"\s*[\r\n]\s*")
_LONGEST_LINE = 1_000_000  # characters; a longer line is a sign that it is not a text file
_MOST_UNPACKED = 2**30  # bytes of an unpacked Excel file, because openpyxl reads all texts into memory
_MOST_ROWS, _MOST_CELLS = 2**20, 2**25  # of a sheet; Excel allows 2^20 rows
Record = tuple[int, list[str]]  # the number of the first line or of the row, and the fields
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)


class Row(NamedTuple):
    """A row of a file of molecules: its number, its SMILES, and its name, which may be empty. If the reader
    cannot use the row, `reason` says why, and `text` is something to recognise the row by."""

    number: int
    text: str
    name: str = ""
    reason: str = ""


def format_of(path: str | Path) -> str:
    """Return "SMILES", "CSV", "SDF" or "Excel", by the suffix before `.gz`; else raises InputError."""
    if (suffix := _suffix(Path(path))) not in _FORMATS:
        raise InputError(
            f"{path}: unknown kind of file; expected a name that ends in {', '.join(_FORMATS)}, optionally "
            "followed by .gz"
        )
    return _FORMATS[suffix]


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def require_openpyxl(path: Path) -> None:
    """Raise InputError unless the package that reads and writes Excel files is installed."""
    if find_spec("openpyxl") is None:
        raise InputError(f'{path}: Excel files need the package openpyxl: pip install "pairflow[excel]"')


def unit_of(path: str | Path) -> str:
    """Return what the number of a row counts: "line", "record" (SDF) or "row" (Excel)."""
    return {"SDF": "record", "Excel": "row"}.get(format_of(path), "line")


def read_rows(path: str | Path, column: str = "smiles", progress: bool = False) -> Iterator[Row]:
    """Yield the rows of a file, with their SMILES unchanged (from an SDF file as RDKit writes them).

    - SMILES files: the first field of each line is the SMILES, the rest is the name. A first line that begins
      with one of `SMILES_COLUMNS` is a header.
    - CSV files, and the first sheet of Excel files: SMILES are in `column`, names in the column that
      `name_column` finds.
    - SDF files: the name is the title, the first line of a record, or else the data item that `name_column`
      finds; or the data item `column`, if that is not "smiles".

    Bytes that are not UTF-8 become U+FFFD, so that a name in another encoding does no harm. The progress bar
    counts bytes. Raises InputError for a file that is missing, empty, truncated or not in the format of its
    suffix, and for an unknown column.
    """
    path = Path(path)
    kind = format_of(path)
    number = 0
    with _opened(path) as (content, raw):
        size = path.stat().st_size
        with bar(total=size, desc="read", unit="B", unit_scale=True, quiet=not progress) as read:
            for number, row in enumerate(_READERS[kind](content, path, column), 1):
                if number % 256 == 0:
                    read.update(raw.tell() - read.n)
                yield row
            read.update(raw.tell() - read.n)
    if not number:
        raise InputError(f"{path}: empty; expected {_CONTENT[kind]}")


def columns(path: str | Path, number: int) -> dict[str, list[str]]:
    """Return the columns of a CSV or Excel file by name, or the data items of an SDF file, each with the
    fields of the first `number` rows."""
    path = Path(path)
    with _opened(path) as (content, _):
        header, records = _table(content, path)
        first = [record for _, record in islice(records, number)]
    return {
        name: [record[index] if index < len(record) else "" for record in first]
        for index, name in enumerate(header)
        if header.index(name) == index  # the first of two columns with the same name
    }


def read_fields(path: str | Path, column: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each row of a CSV, Excel or SDF file, and its field in a column or data item.
    Raises InputError for an unknown column, and for a format without columns."""
    path = Path(path)
    if (kind := format_of(path)) not in (*TABLES, "SDF"):
        raise InputError(f"{path}: a {kind} file has no columns, so there is no column {column!r}")
    with _opened(path) as (content, _):
        header, records = _table(content, path)
        index = _index(header, column, path)
        for number, record in records:
            yield number, record[index] if index < len(record) else ""


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Iterator[Any], BinaryIO]]:
    """Open a file: gives its lines, or the records of its sheet, and the binary file, for the progress bar.
    Raises InputError if the file cannot be read."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: expected a file of molecules, found a folder or a device")
    try:
        with path.open("rb") as raw:
            unpacked: Any = GzipFile(path, raw) if path.suffix.lower() == ".gz" else raw
            if unpacked.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise InputError(f"{path}: is UTF-16 text; save it as UTF-8")
            text = io.TextIOWrapper(unpacked, encoding="utf-8-sig", errors="replace", newline="")
            yield _sheet(unpacked, path) if format_of(path) == "Excel" else _lines(text, path), raw
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except _UNREADABLE as error:
        raise InputError(f"{path}: not a readable {format_of(path)} file: {error}") from None


def _lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    """Yield the lines of a text, which end in \\n, \\r\\n or \\r, with these ends."""
    while line := text.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise InputError(f"{path}: a line of over {_LONGEST_LINE:,} characters: not a text file")
        yield line


def name_column(header: Iterable[str], column: str) -> str | None:
    """Find the column with the names of molecules, other than `column`; None if there is none."""
    named = [name for name in header if name != column and _NAME_COLUMN.search(name)]
    return min(named, key=lambda name: name.lower() != "name", default=None)


def _sheet(binary: Any, path: Path) -> Iterator[Record]:
    """Yield the records of the first sheet of an Excel file."""
    require_openpyxl(path)
    from openpyxl import load_workbook

    cells = 0
    try:
        with zipfile.ZipFile(binary) as archive:  # zipfile never reads more of a part than `file_size`
            unpacked = sum(part.file_size for part in archive.infolist())
        require_plausible(path, unpacked)
        if unpacked > _MOST_UNPACKED:
            raise InputError(
                f"{path}: expected at most {_MOST_UNPACKED / 2**20:,.0f} MiB once it is unpacked, found "
                f"{unpacked / 2**20:,.0f}; save it as CSV"
            )
        with warnings.catch_warnings(action="ignore"):  # about features that openpyxl does not support
            sheet = load_workbook(binary, read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()  # the size that the sheet states may be wrong
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            cells += len(row)
            if number > _MOST_ROWS or cells > _MOST_CELLS:
                raise InputError(
                    f"{path}: expected at most {_MOST_ROWS:,} rows and {_MOST_CELLS:,} cells in the first "
                    "sheet, found more; save it as CSV"
                )
            fields = ["" if value is None else str(value).strip() for value in row]
            if any(fields):
                yield number, fields
    except InputError:
        raise
    except Exception as error:  # a damaged file makes openpyxl raise errors of many types
        raise InputError(f"{path}: not a readable Excel file: {error}") from None


def _smiles(lines: Iterable[str], path: Path, column: str) -> Iterator[Row]:
    rows = _named(lines)
    first = next(rows, None)
    if first is not None and first.text.lower() not in SMILES_COLUMNS:
        yield first
    yield from rows


def _named(lines: Iterable[str]) -> Iterator[Row]:
    """Yield each line as SMILES and name, split at blanks or tabs: other white space is part of a SMILES."""
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            smiles, _, name = text.partition(" ")
            if "\t" in smiles:
                smiles, _, name = text.partition("\t")
            yield Row(number, smiles, name.lstrip())


def _cells(content: Iterator[Any], path: Path, column: str) -> Iterator[Row]:
    header, records = _table(content, path)
    index, named = _index(header, column, path), name_column(header, column)
    name_index = len(header) if named is None else header.index(named)
    for number, record in records:
        text, name = (dict(enumerate(record[: len(header)])).get(k, "") for k in (index, name_index))
        yield Row(number, text, name.strip())


def _index(header: list[str], column: str, path: Path) -> int:
    """The index of a column in the header. Raises InputError if there is none of that name."""
    if column not in header:
        found = ", ".join(map(repr, header[:20]))
        raise InputError(f"{path}: no column {column!r}{nearest(column, header)}; found {found}")
    return header.index(column)


def _table(content: Iterator[Any], path: Path) -> tuple[list[str], Iterator[Record]]:
    """Return the names of the columns, and the records below them."""
    if format_of(path) == "SDF":
        from pairflow.kinds.molecules.sdf import data_items

        return data_items(content, path)
    records = content if format_of(path) == "Excel" else _csv(content, path)
    _, header = next(records, (0, None))
    if header is None:
        raise InputError(f"{path}: empty; expected {_CONTENT[format_of(path)]}")
    return [_WRAP.sub(" ", name.strip()) for name in header], records


def _csv(lines: Iterator[str], path: Path) -> Iterator[Record]:
    """Yield the records of a CSV file. Raises InputError for a stray quote."""
    start, first = next(
        ((number, line) for number, line in enumerate(lines, 1) if not line.isspace()), (0, "")
    )
    separator = "\t" if _suffix(path) == ".tsv" else max(",;\t", key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=separator, strict=True)
    number = start
    try:
        for record in reader:
            if record:
                yield number, [from_cell(field) for field in record]
            number = start + reader.line_num
    except csv.Error as error:
        raise InputError(f'{path}: the record in line {number} has a stray quote ("): {error}') from None


def _sdf(lines: Iterable[str], path: Path, column: str) -> Iterator[Row]:
    from pairflow.kinds.molecules.sdf import read_sdf  # which imports RDKit

    return read_sdf(lines, path, column)


_READERS = {"SMILES": _smiles, "CSV": _cells, "SDF": _sdf, "Excel": _cells}
