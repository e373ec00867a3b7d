"""Writes tables of molecules, in a format chosen by the suffix: SMILES, CSV, Excel, SDF, Parquet or HTML.

The HTML file is a page to look through the molecules. A table has the columns `name` and `smiles`, a column
for each property, and for an SDF file with 3D coordinates `conformer` (RDKit molecules). Numbers in text
files are rounded to `DIGITS`; Excel and Parquet files have all digits.
"""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from rdkit import Chem
from rdkit.Chem import rdDepictor

from pairflow.artifacts import Metadata, as_cell, write_table
from pairflow.data.tabular import require_openpyxl
from pairflow.errors import InputError
from pairflow.files import split_lines
from pairflow.kinds.molecules.structures.descriptors import DIGITS

PAGE = ".html"
_MOST = 10_000  # most molecules of a page, which takes 3 kB for each


def writer(
    path: Path, parsed: bool, properties: bool, in_space: bool = False, count: int = 0
) -> Callable[[Path, pd.DataFrame, Metadata], None]:
    """Return the function that writes a table as a file with the suffix of `path`.

    `parsed` says that every string of the table is a valid molecule, `properties` that the table has columns
    of properties, and `in_space` that it has conformers; `count` is the number of its rows. Raises InputError
    for an unknown suffix, and for a table that the format cannot hold.
    """
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise InputError(f"{path}: unknown suffix {suffix!r}; expected {', '.join(_WRITERS)}")
    if suffix == ".sdf" and not parsed:
        unfit = (suffix, ".smi") if properties else (suffix,)
        raise InputError(f"{path}: SDF files can only hold valid molecules; expected {_others(*unfit)}")
    if suffix == ".smi" and properties:
        unfit = (suffix,) if parsed else (suffix, ".sdf")
        raise InputError(f"{path}: SMILES files cannot hold properties; expected {_others(*unfit)}")
    if suffix != ".sdf" and in_space:
        raise InputError(f"{path}: only SDF files (.sdf) hold coordinates; leave out --3d")
    if suffix == PAGE and count > _MOST:
        raise InputError(f"{path}: a page holds at most {_MOST:,} molecules; expected .csv or .parquet")
    if suffix == ".xlsx":
        require_openpyxl(path)
    return _WRITERS[suffix]


def _others(*suffixes: str) -> str:
    """Return the suffixes other than these, in words."""
    *most, last = (suffix for suffix in _WRITERS if suffix not in suffixes)
    return f"{', '.join(most)} or {last}"


def _one_line(text: object) -> str:
    """Return a text with spaces for its line breaks, for formats in which each line has a meaning."""
    return " ".join(split_lines(str(text)))


def _rounded(name: str, value: Any) -> Any:
    """Return a value of the column `name` as text files show it: with the column's DIGITS, or as an empty
    string if it is missing."""
    if pd.isna(value):
        return ""
    return f"{value:.{DIGITS[name]}f}" if name in DIGITS else value


def _smi(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    """Write `SMILES name` on each line, without a header."""
    lines = (
        f"{_one_line(f'{smiles} {name}')}\n"
        for name, smiles in zip(table["name"], table["smiles"], strict=True)
    )
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as CSV files show it: numbers are rounded, and no text can be run as a formula."""
    return pd.DataFrame({name: [as_cell(_rounded(name, value)) for value in table[name]] for name in table})


def _csv(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    as_text(table).to_csv(path, index=False, lineterminator="\n")


def _xlsx(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    """Write a workbook with one sheet and a header line. No text becomes a formula."""
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = Workbook()
    sheet = book.active
    sheet.freeze_panes = "A2"
    sheet.append(list(table))
    for row in table.itertuples(index=False):
        sheet.append(
            [ILLEGAL_CHARACTERS_RE.sub("", value) if isinstance(value, str) else value for value in row]
        )
    for name, cells in zip(table, sheet.iter_cols(min_row=2), strict=True):
        for cell in cells:
            if name in DIGITS:
                cell.number_format = f"0.{'0' * DIGITS[name]}"
            elif cell.data_type == "f":
                cell.data_type = "s"
    content = BytesIO()  # a ZIP file that cannot be completed would complain once more when it is deleted
    book.save(content)
    path.write_bytes(content.getvalue())


def _sdf(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    """Write molecules with their conformers or, if there are none, drawn in 2D. All other columns but `name`
    become data items."""
    with path.open("w", encoding="utf-8", newline="\n") as file:  # SDWriter does not report a full disk
        for number, row in enumerate(table.to_dict("records")):
            molecule = row.pop("conformer", None)
            if molecule is None:
                molecule = Chem.MolFromSmiles(row["smiles"])
                rdDepictor.Compute2DCoords(molecule)
            molecule.SetProp("_Name", _one_line(row.pop("name")))
            for key, value in row.items():
                molecule.SetProp(str(key), _one_line(_rounded(str(key), value)))
            file.write(Chem.SDWriter.GetText(molecule, molid=number))


def _page(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    from pairflow.kinds.molecules.page.browse import write_page

    write_page(path, table, metadata, as_text(table))


_WRITERS = {
    **{".smi": _smi, ".csv": _csv, ".xlsx": _xlsx, ".sdf": _sdf, ".parquet": write_table, PAGE: _page},
}
