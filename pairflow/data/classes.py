"""Classes of a property of the data, which a conditional model is trained and guided with.

A class is a quantile of the training rows: with three classes each of `low`, `middle` and `high` holds about
a third of them, fewer or more where many rows have the same value. Conditions are not continuous.
"""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from pairflow.config import Settings, nearest
from pairflow.errors import InputError


class Classes(Settings):
    """Named classes of a property, lowest first: class c holds thresholds[c - 1] < value <= thresholds[c].

    Label c stands for class c; rows without a value have the number of classes as their label.
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
        """The quantile classes of values (M,), NaN if missing; InputError if a class would be empty."""
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
