"""Reads files of molecules row by row, so that memory does not grow with the file.

Each format has a reader; `data.tabular` reads tables. Header lines and blank lines are not rows. The number
of a row, from 1, helps users to find it: it is the number of its first line, of its record in an SDF file, or
of its row in an Excel or Parquet file.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pairflow.data import tabular
from pairflow.errors import InputError
from pairflow.files import PACKED, lines_of, opened, suffix_of
from pairflow.runtime.progress import bar

_FORMATS = {
    **dict.fromkeys((".smi", ".smiles", ".cxsmiles", ".ism", ".txt"), "SMILES"),
    **tabular.FORMATS,
    **dict.fromkeys((".sdf", ".sd"), "SDF"),
}
_CONTENT = {"SMILES": "a SMILES at the start of each line", "SDF": "records that end in $$$$"}
# Usual names of columns with SMILES, in lower case, the most likely first.
SMILES_COLUMNS = (
    *("smiles", "canonical_smiles", "isomeric_smiles", "smiles_canonical", "canonical smiles"),
    *("isomeric smiles", "structure", "structures", "molecule", "mol", "compound"),
)
# Columns with names of molecules, if no column is called `name`: "Compound ID", "catalog_id", "MolName" ...
_NAME_COLUMN = re.compile(r"(?i:(^|[ _.-])(name|title|id|identifier|code))$|[a-z](Name|ID|Id)$")
_LONGEST_LINE = 1_000_000  # characters; a longer line is a sign that it is not a text file
_LONGEST_RECORD = 100_000  # lines


class Row(NamedTuple):
    """A row of a file of molecules: its number, its SMILES, and its name, which may be empty. If the reader
    cannot use the row, `reason` says why, and `text` is something to recognise the row by."""

    number: int
    text: str
    name: str = ""
    reason: str = ""


def format_of(path: str | Path) -> str:
    """Return "SMILES", "SDF" or the format of a table, by the suffix of a file; else raises InputError."""
    if (suffix := suffix_of(Path(path))) not in _FORMATS:
        packed = ", ".join(PACKED)
        raise InputError(
            f"{path}: unknown kind of file; expected a name that ends in {', '.join(_FORMATS)}, optionally "
            f"followed by {packed}"
        )
    return _FORMATS[suffix]


def is_known(path: Path) -> bool:
    """Whether the suffix of a file is that of a file of molecules."""
    return suffix_of(path) in _FORMATS


def is_table(path: str | Path) -> bool:
    """Whether a file is a table, which has columns."""
    return format_of(path) not in _READERS


def unit_of(path: str | Path) -> str:
    """Return what the number of a row counts: "line", "record" (SDF) or "row" (Excel, Parquet)."""
    return "record" if format_of(path) == "SDF" else tabular.unit_of(Path(path))


def read_rows(path: str | Path, column: str = "smiles", progress: bool = False) -> Iterator[Row]:
    """Yield the rows of a file, with their SMILES unchanged (from an SDF file as RDKit writes them).

    - SMILES files: the first field of each line is the SMILES, the rest is the name. A first line that begins
      with one of `SMILES_COLUMNS` is a header.
    - Tables: SMILES are in `column`, names in the column that `name_column` finds.
    - SDF files: the name is the title, the first line of a record.

    Bytes that are not UTF-8 become U+FFFD, so that a name in another encoding does no harm. The progress bar
    counts bytes. Raises InputError for a file that is missing, empty, truncated or not in the format of its
    suffix, and for an unknown column.
    """
    path = Path(path)
    if is_table(path):
        with tabular.open_table(path, column) as table:
            yield from _counted(_cells(table, column), table.raw, path, tabular.EXPECTED, progress)
    else:
        kind = format_of(path)
        with opened(path, kind) as (content, raw):
            rows = _READERS[kind](lines_of(content, path, _LONGEST_LINE), path)
            yield from _counted(rows, raw, path, _CONTENT[kind], progress)


def _counted(rows: Iterable[Row], raw: BinaryIO, path: Path, expected: str, progress: bool) -> Iterator[Row]:
    """Yield rows with a progress bar. Raises InputError if there are none."""
    number, size = 0, path.stat().st_size
    with bar(total=size, desc="read", unit="B", unit_scale=True, quiet=not progress) as read:
        for number, row in enumerate(rows, 1):
            if number % 256 == 0:
                read.update(raw.tell() - read.n)
            yield row
        read.update(size - read.n)
    if not number:
        raise InputError(f"{path}: empty; expected {expected}")


def read_fields(path: str | Path, column: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each row of a table, and its field in a column. Raises InputError for an unknown
    column, and for a format without columns."""
    if not is_table(path):
        raise InputError(f"{path}: a {format_of(path)} file has no columns, so there is no column {column!r}")
    with tabular.open_table(Path(path), column) as table:
        for number, [field] in table.read(column):
            yield number, field


def name_column(header: Iterable[str], column: str) -> str | None:
    """Find the column with the names of molecules, other than `column`; None if there is none."""
    named = [name for name in header if name != column and _NAME_COLUMN.search(name)]
    return min(named, key=lambda name: name.lower() != "name", default=None)


def _smiles(lines: Iterable[str], path: Path) -> Iterator[Row]:
    rows = (Row(n, *line.strip().split(maxsplit=1)) for n, line in enumerate(lines, 1) if not line.isspace())
    first = next(rows, None)
    if first is not None and str(first.text).lower() not in SMILES_COLUMNS:
        yield first
    yield from rows


def _cells(table: tabular.OpenTable, column: str) -> Iterator[Row]:
    named = name_column(table.header, column)
    for number, [text, *names] in table.read(column, *filter(None, [named])):
        yield Row(number, text, names[0].strip() if names else "")


def _sdf(lines: Iterable[str], path: Path) -> Iterator[Row]:
    from rdkit import Chem, rdBase

    from pairflow.kinds.molecules.standardise import MOST_ATOMS, TOO_MANY_ATOMS

    for number, record in enumerate(_records(lines, path), 1):
        title = "".join(record[:1]).strip()
        with rdBase.BlockLogs():
            molecule = Chem.MolFromMolBlock("\n".join(record))
        if molecule is None:
            yield Row(number, title, reason="broken record")
        elif molecule.GetNumAtoms() > MOST_ATOMS:
            yield Row(number, title, reason=TOO_MANY_ATOMS)
        else:
            yield Row(number, Chem.MolToSmiles(molecule), title)


def _records(lines: Iterable[str], path: Path) -> Iterator[list[str]]:
    """Yield the lines of each record of an SDF file, up to its line `M  END`."""
    record: list[str] = []
    closed = False
    for number, line in enumerate(map(str.rstrip, lines)):
        if line == "$$$$":
            yield record
            record, closed = [], False
        elif not closed:
            record.append(line)
            closed = line == "M  END"
        if len(record) > _LONGEST_RECORD:
            raise InputError(f"{path}: no end of a record ($$$$) up to line {number + 1}: not an SDF file")
    if any(record):
        yield record


_READERS = {"SMILES": _smiles, "SDF": _sdf}
