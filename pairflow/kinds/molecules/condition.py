"""Classes of a property, which a conditional model is trained and guided with. Needs no RDKit.

A class is a quantile of the training rows: with three classes each of `low`, `middle` and `high` holds about
a third of them, fewer or more where many rows have the same value. Conditions are not continuous.
"""

from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from pairflow.config import Settings, nearest
from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import Conditioning


class Classes(Settings):
    """Named classes of a property, lowest first: class c holds values above thresholds[c - 1], up to [c].

    Label c stands for class c, and the number of classes for rows without a value.
    """

    property: str
    names: tuple[str, ...] = Field(min_length=2)
    thresholds: tuple[float, ...]

    @model_validator(mode="after")
    def _one_threshold_between_two_classes(self) -> Self:
        if len(self.thresholds) != len(self.names) - 1 or list(self.thresholds) != sorted(self.thresholds):
            raise ValueError(f"thresholds: expected {len(self.names) - 1} ascending numbers")
        return self

    @classmethod
    def from_values(cls, name: str, values: np.ndarray, names: tuple[str, ...]) -> Self:
        """The quantile classes of values (M,), NaN where there is none; InputError if one would be empty."""
        number = len(names)
        finite = values[np.isfinite(values)]
        if not len(finite):
            raise InputError(f"condition: no training row has a value of {name}")
        thresholds = np.quantile(finite, np.arange(1, number) / number, method="inverted_cdf")
        classes = cls(property=name, names=names, thresholds=tuple(map(float, thresholds)))
        sizes = np.bincount(classes.labels(finite), minlength=number)
        if not sizes.all():
            raise InputError(
                f"condition: {name} has too few different values for {number} classes: "
                f"'{names[int(np.argmin(sizes))]}' would be empty; choose fewer classes"
            )
        return classes

    def labels(self, values: np.ndarray) -> np.ndarray:
        """(M,) uint8: the label of each value."""
        labels = np.searchsorted(np.asarray(self.thresholds), values, side="left")
        return np.where(np.isfinite(values), labels, len(self.names)).astype(np.uint8)

    def parse(self, condition: str) -> int:
        """The label that `property=class` names; InputError if there is no such property or class."""
        name, equals, label = condition.rpartition("=")
        if not equals:
            raise InputError(f"condition: expected {self.property}=<class>, found '{condition}'")
        if name != self.property:
            raise InputError(f"condition: the model was trained for {self.property}, not for '{name}'")
        if label not in self.names:
            raise InputError(
                f"condition: unknown class '{label}' of {name}{nearest(label, self.names)}: "
                f"known are {', '.join(self.names)}"
            )
        return self.names.index(label)


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
