"""Writes files of molecules for other programs: SMILES, CSV, SDF or Parquet, chosen by the suffix.

A table of molecules has `name`, `smiles`, and a column for each property. Text has three decimals, Parquet
all digits.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from rdkit import Chem
from rdkit.Chem import rdDepictor

from pairflow.artifacts import Metadata, write_table
from pairflow.errors import InputError


def writer(path: Path, parsed: bool, properties: bool) -> Callable[[Path, pd.DataFrame, Metadata], None]:
    """The function that writes a table as a file with the suffix of `path`.

    `parsed`: every string of the table is a molecule; `properties`: the table has columns of properties.
    Raises InputError for an unknown suffix, and for a table that such a file cannot hold.
    """
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise InputError(f"{path}: unknown suffix {suffix!r}; expected {', '.join(_WRITERS)}")
    if suffix == ".sdf" and not parsed:
        raise InputError(f"{path}: SDF files can only hold valid molecules; leave out --raw")
    if suffix == ".smi" and properties:
        raise InputError(f"{path}: SMILES files cannot hold properties; expected .csv, .sdf or .parquet")
    return _WRITERS[suffix]


def _smi(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    """One `SMILES name` per line, no header."""
    lines = (f"{smiles} {name}\n" for name, smiles in zip(table["name"], table["smiles"], strict=True))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def _csv(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table.to_csv(file, index=False, lineterminator="\n", float_format="%.3f")


def _sdf(path: Path, table: pd.DataFrame, metadata: Metadata) -> None:
    """Each molecule drawn in the plane; `smiles` and the properties are its data items."""
    with path.open("w", encoding="utf-8", newline="\n") as file:  # SDWriter does not report a full disk
        for number, row in enumerate(table.to_dict("records")):
            molecule = Chem.MolFromSmiles(row["smiles"])
            rdDepictor.Compute2DCoords(molecule)
            molecule.SetProp("_Name", row.pop("name"))
            for key, value in row.items():
                molecule.SetProp(str(key), f"{value:.3f}" if isinstance(value, float) else value)
            file.write(Chem.SDWriter.GetText(molecule, molid=number))


_WRITERS = {".smi": _smi, ".csv": _csv, ".sdf": _sdf, ".parquet": write_table}
