"""A row of a user's file of molecules, whatever its format, and the column with the names of molecules."""

import re
from collections.abc import Iterable
from typing import NamedTuple

# Columns with names of molecules, if no column is called `name`: "Compound ID", "IDNUMBER", "MolName" ...
_NAME_COLUMN = re.compile(r"(?i:(^|[ _.-])(name|title|id|id[ _]?number|identifier|code))$|[a-z](Name|ID|Id)$")
HELD_OUT = "held out"


class Row(NamedTuple):
    """A row of a file of molecules: its number, its SMILES, and its name, which may be empty. If the reader
    cannot use the row, `reason` says why, and `text` is something to recognise the row by. `part` is
    HELD_OUT if the user's own split holds the row out."""

    number: int
    text: str
    name: str = ""
    reason: str = ""
    part: str = ""


def name_column(header: Iterable[str], column: str) -> str | None:
    """Find the column with the names of molecules, other than `column`; None if there is none."""
    named = [name for name in header if name != column and _NAME_COLUMN.search(name)]
    return min(named, key=lambda name: name.lower() != "name", default=None)
