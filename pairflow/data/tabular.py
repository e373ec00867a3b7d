"""Reads tables that people have, row by row: CSV, JSON lines, Parquet and Excel, also compressed.

All fields are text. Rows are numbered from 1, as an editor numbers the lines of a text file (the first line
of a record counts), or a spreadsheet its rows; the rows of a Parquet file are counted.

Above the header of a CSV file or of an Excel sheet, a line `sep=;`, comments (`#`) and titles are passed
over. The separator of a CSV file is found from its first lines.
"""

import csv
import json
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from io import BufferedReader, BytesIO
from itertools import chain, count, islice, repeat, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pairflow.arguments import nearest
from pairflow.artifacts import from_cell
from pairflow.data.layout import Layout, find_header, find_layout, holds_rows, name_columns
from pairflow.errors import InputError
from pairflow.files import PACKED, Json, lines_of, opened, require_plausible, suffix_of

EXPECTED = "a header line, and rows below it"
FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON lines"),
    ".parquet": "Parquet",
    ".xlsx": "Excel",
}
_LONGEST_LINE = 2**24  # characters; a longer line is a sign that it is not a text file
_HEAD = 100  # lines or rows from which header and separator are found
_BATCH = 1024  # rows of a Parquet file that are read at a time
_MOST_UNPACKED = 2**30  # bytes of an unpacked Excel file, because openpyxl reads all texts into memory
# Control characters in cells, as of line breaks of Windows. Other codes stay: openpyxl reads `_x0041_` and
# its escaped form alike.
_CONTROL = re.compile("_x(00[01][0-9A-Fa-f])_")
_MOST_ROWS, _MOST_CELLS = 2**20, 2**25  # of a sheet; Excel allows 2^20 rows
Record = tuple[int, list[str]]  # the number of a row, and its fields
csv.field_size_limit(_LONGEST_LINE)


class OpenTable(NamedTuple):
    """A table that is read.

    Attributes:
        path: its file.
        header: the names of its columns; `column 3` for the third column if it has no name.
        records: takes indices of columns, yields (row number, fields in them); it can be called once.
        raw: the open file, whose position says how much is read.
        sheet: the name of the sheet of an Excel file.
        faults: what is wrong with rows that were read, by their numbers.
    """

    path: Path
    header: list[str]
    records: Callable[[Sequence[int]], Iterator[Record]]
    raw: BinaryIO
    sheet: str | None = None
    faults: Mapping[int, str] = {}

    def read(self, *columns: str, strict: bool = True) -> Iterator[Record]:
        """Yield each row's number and its fields in these columns. Raises InputError for an unknown column
        and, if `strict`, for a row with a fault."""
        where = f"{self.path}, sheet {self.sheet!r}" if self.sheet else str(self.path)
        for number, fields in self.records([index_of(self.header, column, where) for column in columns]):
            if strict and number in self.faults:
                raise InputError(f"{where}: line {number} has {self.faults[number]}")
            yield number, fields


def index_of(header: Sequence[str], column: str, where: object) -> int:
    """Return the index of a column in a header. Raises InputError, which begins with `where`, unless exactly
    one column has its name."""
    if column not in header:
        found = ", ".join(map(repr, header[:20]))
        raise InputError(f"{where}: no column {column!r}{nearest(column, header)}; found {found}")
    if header.count(column) > 1:
        raise InputError(f"{where}: {header.count(column)} columns are named {column!r}; rename all but one")
    return header.index(column)


def unit_of(path: Path) -> str:
    """Return what row numbers count in this file: "line" in a text file, else "row"."""
    return "row" if FORMATS.get(suffix_of(path)) in ("Excel", "Parquet") else "line"


def require_openpyxl(path: Path) -> None:
    """Raise InputError unless the package that reads and writes Excel files is installed."""
    if find_spec("openpyxl") is None:
        raise InputError(f'{path}: Excel files need the package openpyxl: pip install "pairflow[excel]"')


def is_table(path: Path) -> bool:
    """Return whether the suffix of a file is that of a table."""
    return suffix_of(path) in FORMATS


def refuse_spreadsheet(path: Path) -> None:
    """Raise InputError for a spreadsheet in a format that is not read."""
    if (suffix := suffix_of(path)) in (".xls", ".xlsb", ".ods"):
        raise InputError(f"{path}: {suffix} files are not read; save it as .xlsx in a spreadsheet program")


@contextmanager
def open_table(path: Path, column: str | None = None, sheet: str | None = None) -> Iterator[OpenTable]:
    """Open a table by its suffix; a file with any other suffix as CSV.

    Of an Excel file, this is the sheet named `sheet`, or else the first with a column named `column`, or else
    the first that is not empty; a hidden one only by its name. Raises InputError for other and empty files.
    """
    with _tables(path, sheet) as tables:
        if not (first := next(tables, None)):
            raise InputError(f"{path}: empty; expected {EXPECTED}")
        yield next((table for table in chain([first], tables) if column in (None, *table.header)), first)


def columns(
    path: Path, number: int, sheet: str | None = None
) -> Iterator[tuple[str | None, dict[str, list[str]]]]:
    """Yield the columns of a table, or of each visible sheet of an Excel file, or of one `sheet`.

    A result is the name of the sheet, and a dict from column names to the fields in the first `number` rows,
    without columns that have neither a name nor a field, and without rows with a fault, unless all have one.
    Raises InputError if the file is empty.
    """
    table = None
    with _tables(path, sheet) as tables:
        for table in tables:
            names = [*dict.fromkeys(table.header)]  # of columns with the same name, the first
            rows = [*islice(table.records([*map(table.header.index, names)]), number)]
            sound = [fields for place, fields in rows if place not in table.faults]
            first = sound or [fields for _, fields in rows]
            found = {name: [fields[place] for fields in first] for place, name in enumerate(names)}
            unnamed = {f"column {place}" for place in range(1, len(names) + 1)}
            named = {name: fields for name, fields in found.items() if any(fields) or name not in unnamed}
            yield table.sheet, named
    if table is None:
        raise InputError(f"{path}: empty; expected {EXPECTED}")


def describe_sheets(sheets: Mapping[str | None, Mapping[str, Sequence[str]]]) -> str:
    """Name the columns in `sheets`, {sheet: {column: its first fields}}, and say which hold formulas."""
    parts = []
    for sheet, fields in sheets.items():
        names = ", ".join(map(repr, [*fields][:20]))
        parts.append(f"on sheet {sheet!r} {names}" if len(sheets) > 1 else names)
        formulas = [name for name in fields if any(field.startswith("=") for field in fields[name])]
        if sheet and formulas:
            parts[-1] += (
                f" ({', '.join(map(repr, formulas))}: formulas without stored values; open and save the file "
                "in a spreadsheet program)"
            )
    return "; ".join(parts)


def layout_of(path: Path) -> Layout | None:
    """Return how a text file is written, if its first lines are a table of several columns, or None."""
    with opened(path, "text") as (content, _):
        lines = [*islice(lines_of(content, path, 2**20), _HEAD)]
    layout = find_layout(lines, suffix_of(path))
    return layout if layout and layout.agrees else None


def describe_sheet(path: Path, column: str | None = None, sheet: str | None = None) -> str:
    """Name the sheet of an Excel file that `open_table` reads, and the others with rows, hidden ones too.
    Empty if there is only one sheet, and for another file."""
    if FORMATS.get(suffix_of(path)) != "Excel":
        return ""
    with open_table(path, column, sheet) as table:
        read = table.sheet
    with _tables(path, hidden=True) as tables:
        others = [repr(table.sheet) for table in tables if table.sheet != read]
    more = f" (--sheet chooses another: {', '.join(others)})" * bool(others)
    return f", sheet {read!r}{more}" if sheet or others else ""


@contextmanager
def _tables(path: Path, sheet: str | None = None, hidden: bool = False) -> Iterator[Iterator[OpenTable]]:
    """Open a file during the block, and yield an iterator over its tables that are not empty: of an Excel
    file those on its visible sheets (with `hidden` on all sheets, or only on one `sheet`), else one table."""
    refuse_spreadsheet(path)
    kind = FORMATS.get(suffix_of(path), "CSV")
    with opened(path, kind) as (content, raw):
        if kind == "Excel":
            yield _sheets(content, path, raw, sheet, hidden)
        else:
            if sheet:
                raise InputError(f"{path}: no sheet {sheet!r}: only Excel files have sheets")
            yield iter(filter(None, [_READERS[kind](content, path, raw)]))


def _csv(content: BufferedReader, path: Path, raw: BinaryIO) -> OpenTable | None:
    lines = lines_of(content, path, _LONGEST_LINE)
    head = [*islice(lines, _HEAD)]
    layout = find_layout(head, suffix_of(path))
    if not layout:
        return None
    start, faults = layout.lines + 1, dict[int, str]()

    def records(indices: Sequence[int]) -> Iterator[Record]:
        reader = csv.reader(chain(head[layout.lines :], lines), delimiter=layout.separator, strict=True)
        number = start
        try:
            for record in reader:
                after = start + reader.line_num
                if record:
                    size = len(record)
                    if after > number + 1 and holds_rows(record, layout):
                        faults[number] = (
                            f'a quote (") that closes in line {after - 1}, with rows in between; remove both'
                        )
                    elif size > layout.width and any(record[layout.width :]):
                        faults[number] = (
                            f"{size} fields, the header {layout.width}; quote fields that hold "
                            f"{layout.separator!r}"
                        )
                    yield number, [from_cell(record[index]) if index < size else "" for index in indices]
                number = after
        except csv.Error as error:
            where = f"{path}: the record in line {number}"
            raise InputError(f'{where} has a stray quote ("): {error}') from None

    return OpenTable(path, layout.header, records, raw, faults=faults)


def _json_lines(content: BufferedReader, path: Path, raw: BinaryIO) -> OpenTable | None:
    lines = enumerate(lines_of(content, path, _LONGEST_LINE), 1)
    rows = ((number, _object(line, number, path)) for number, line in lines if not line.isspace())
    head = [*islice(rows, _HEAD)]
    header = [*dict.fromkeys(key for _, row in head for key in row)]

    def records(indices: Sequence[int]) -> Iterator[Record]:
        for number, row in chain(head, rows):
            yield number, [_text(row.get(header[index])) for index in indices]

    return OpenTable(path, header, records, raw) if head else None


def _object(line: str, number: int, path: Path) -> Json:
    """Return the JSON object in a line, or raise InputError with the file and the line's `number`."""
    try:
        if isinstance(row := _JSON.decode(line), dict):
            return row
    except InputError as error:
        raise InputError(f"{path}: line {number}: {error}") from None
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{path}: line {number}: expected a JSON object, found {line.strip()[:40]!r}")


def _unique(pairs: list[tuple[str, object]]) -> Json:
    """Return a JSON object of names and values. Raises InputError if it has a name twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        [(name, times)] = Counter(name for name, _ in pairs).most_common(1)
        raise InputError(f"expected each name once in a JSON object, found {name!r} {times} times")
    return row


_JSON = json.JSONDecoder(strict=False, object_pairs_hook=_unique)


def _text(value: object) -> str:
    """Return a value of a table as text; empty if it is missing."""
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    # Half of a surrogate pair, which JSON can hold, is no text: it becomes U+FFFD.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _parquet(content: BufferedReader, path: Path, raw: BinaryIO) -> OpenTable | None:
    try:
        file = pq.ParquetFile(_seekable(content, path))
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from None

    def records(indices: Sequence[int]) -> Iterator[Record]:
        numbers, wanted = count(1), [names[index] for index in indices]
        try:
            for batch in file.iter_batches(_BATCH, columns=wanted):
                fields = (map(_text, batch.column(name).to_pylist()) for name in wanted)
                for record in zip(*fields, strict=True):
                    yield next(numbers), [*record]
        except (pa.ArrowException, OSError, KeyError) as error:
            raise InputError(f"{path}: not a readable Parquet file: {error}") from None

    return OpenTable(path, names, records, raw) if file.metadata.num_rows else None


def _seekable(content: BufferedReader, path: Path) -> BufferedReader | BytesIO:
    """Return the content of a file in which readers jump: in memory if it was compressed."""
    return BytesIO(content.read()) if path.suffix.lower() in PACKED else content


def _sheets(
    content: BufferedReader, path: Path, raw: BinaryIO, sheet: str | None, hidden: bool
) -> Iterator[OpenTable]:
    """Yield the tables on the sheets of an Excel file that are not empty: on all visible sheets, with
    `hidden` on all, or on one `sheet`. `content` is the decompressed file, and `raw` the file on disk."""
    require_openpyxl(path)
    from openpyxl import load_workbook

    with _named_as_excel(path):
        binary = _seekable(content, path)
        with zipfile.ZipFile(binary) as archive:  # zipfile never reads more of a part than `file_size`
            unpacked = sum(part.file_size for part in archive.infolist())
            require_plausible(path, unpacked)
            if unpacked > _MOST_UNPACKED:
                raise InputError(
                    f"{path}: expected at most {_MOST_UNPACKED / 2**20:,.0f} MiB once it is unpacked, found "
                    f"{unpacked / 2**20:,.0f}; save it as CSV"
                )
            formulas = _has_formulas(archive)
        with warnings.catch_warnings(action="ignore"):  # about features that openpyxl does not support
            book = load_workbook(binary, read_only=True, data_only=True)
            written = load_workbook(binary, read_only=True) if formulas else None
    names = [page.title for page in book.worksheets]
    if sheet and sheet not in names:
        found = ", ".join(map(repr, names))
        raise InputError(f"{path}: no sheet {sheet!r}{nearest(sheet, names)}; found {found}")
    visible = [page.title for page in book.worksheets if hidden or page.sheet_state == "visible"]
    for name in [sheet] if sheet else visible:
        rows = _rows(path, book[name], written[name] if written else None)
        head = [*islice(rows, _HEAD)]
        if head:
            header = find_header([fields for _, fields in head])
            named = name_columns(header, [fields for _, fields in head[header.row + 1 :]])
            below = chain(head[header.row + 1 :], rows)
            yield OpenTable(path, named, partial(_pick, below), raw, name)


def _pick(rows: Iterable[Record], indices: Sequence[int]) -> Iterator[Record]:
    """Yield the rows with only the fields at `indices`; a field is empty where a row is too short."""
    for number, row in rows:
        yield number, [row[index] if index < len(row) else "" for index in indices]


def _rows(path: Path, sheet: Any, written: Any) -> Iterator[Record]:
    """Yield the rows of a sheet that are not empty. `written` is the same sheet with formulas, which stand
    for cells without a stored value; None if there are none."""
    cells = 0
    with _named_as_excel(path):
        for each in filter(None, (sheet, written)):
            each.reset_dimensions()  # the size that the sheet states may be wrong
        values = sheet.iter_rows(values_only=True)
        formulas = written.iter_rows(values_only=True) if written else repeat(())
        for number, (row, others) in enumerate(zip(values, formulas, strict=False), 1):
            cells += len(row)
            if number > _MOST_ROWS or cells > _MOST_CELLS:
                raise InputError(
                    f"{path}: expected at most {_MOST_ROWS:,} rows and {_MOST_CELLS:,} cells in a sheet, "
                    "found more; save it as CSV"
                )
            pairs = zip_longest(row, others)
            stored = (getattr(other, "text", other) if value is None else value for value, other in pairs)
            fields = [_CONTROL.sub(lambda code: chr(int(code[1], 16)), _text(value)) for value in stored]
            if any(map(str.strip, fields)):
                yield number, fields


def _has_formulas(archive: zipfile.ZipFile) -> bool:
    """Return whether a sheet of an Excel file has formulas."""
    for part in archive.namelist():
        if part.startswith("xl/worksheets/") and part.endswith(".xml"):
            with archive.open(part) as file:
                if any(b"<f>" in block or b"<f " in block for block in iter(partial(file.read, 2**20), b"")):
                    return True
    return False


@contextmanager
def _named_as_excel(path: Path) -> Iterator[None]:
    """Turn the exceptions of a block that reads an Excel file, which are of many types if it is damaged, into
    an InputError with the file."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path}: not a readable Excel file: {error}") from None


_READERS = {"CSV": _csv, "JSON lines": _json_lines, "Parquet": _parquet}
