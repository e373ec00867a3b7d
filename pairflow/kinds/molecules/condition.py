"""The classes of molecules by a property, or by a column of a user's own table, for conditional models."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.config import nearest
from pairflow.data.classes import Classes
from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import Conditioning


def label_molecules(
    condition: Conditioning, molecules: pd.DataFrame, table: Path
) -> tuple[Classes, np.ndarray]:
    """The classes of the training molecules, and the labels (M,) of all `molecules`.

    `molecules` has `row`, `smiles` and `split` as `PreparedMolecules` has them; `table` is the raw file, in
    which `row` counts the rows. InputError for a column that is missing or holds no numbers, and if a class
    would be empty.
    """
    if condition.property:
        from pairflow.kinds.molecules.properties import compute

        values = compute(condition.property, molecules["smiles"].tolist())
    else:
        values = _column_values(table, str(condition.column))[molecules["row"]]
    training = values[(molecules["split"] == "train").to_numpy()]
    classes = Classes.from_values(condition.name(), training, condition.labels())
    return classes, classes.labels(values)


def _column_values(path: Path, column: str) -> np.ndarray:
    """(M,) float64: the numbers in a column of a user's table, NaN where a field is empty.

    InputError for a file without that column, and for a field that is no number.
    """
    from pairflow.kinds.molecules.library import TABLES, columns, format_of

    kind = format_of(path)
    if kind not in TABLES:
        raise InputError(f"{path}: a {kind} file has no columns, so there is no column '{column}'")
    table = columns(path, 2**31)
    if column not in table:
        raise InputError(f"{path}: no column '{column}'{nearest(column, table)}; found {', '.join(table)}")
    try:
        return np.array([float(field) if field.strip() else np.nan for field in table[column]], np.float64)
    except ValueError as error:
        raise InputError(f"{path}: column '{column}': {error}") from None
