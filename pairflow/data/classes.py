"""The properties of data rows, such as logP, that a conditional model learns and can be asked for.

Classes of a property are quantiles of the training rows: with three classes, each of `low`, `middle` and
`high` holds about a third of the rows, fewer or more if many rows have the same value. Classes that the data
name, such as `active`, have their numbers as values.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from pairflow.config import Settings, check
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.settings.conditions import SPREAD, read_conditions


class Classes(Settings):
    """A property with named classes, lowest first.

    Class c, counted from 0, holds the values with thresholds[c - 1] < value <= thresholds[c]. The *label* of
    a row is the number of its class, or the number of classes if the row has no value.
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
        """Return the property `name` with a quantile class for each of `names`, lowest first, by its values
        (M,), NaN if missing.

        Raises InputError if a class would be empty.
        """
        count = len(names)
        finite = values[np.isfinite(values)]
        if not len(finite):
            raise InputError(f"condition: no training row has a value of {name}")
        thresholds = np.quantile(finite, np.arange(1, count) / count, method="inverted_cdf")
        classes = cls(property=name, names=names, thresholds=tuple(map(float, thresholds)))
        sizes = np.bincount(classes.numbers(finite), minlength=count)
        if not sizes.all():
            raise InputError(
                f"condition: {name} has too few different values for {count} classes: "
                f"'{names[int(np.argmin(sizes))]}' would be empty; choose fewer classes"
            )
        return classes

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the number of each value's class, (M,) uint8; the number of classes for a missing value."""
        numbers = np.searchsorted(np.asarray(self.thresholds), values, side="left")
        return np.where(np.isfinite(values), numbers, len(self.names)).astype(np.uint8)


# The JSON form of one property, or of several. Messages leave out the names of tags in angle brackets.
Facts = Annotated[
    Annotated[Classes, Tag("<one>")] | Annotated[tuple[Classes, ...], Field(min_length=1), Tag("<several>")],
    Discriminator(lambda facts: "<several>" if isinstance(facts, list | tuple) else "<one>"),
]


class Properties(NamedTuple):
    """The properties that a conditional model is trained for, and the form of its labels.

    The labels of one property are integers (M,); labels of P properties are float32 numbers (M, P).
    """

    properties: tuple[Classes, ...]

    @classmethod
    def from_facts(cls, facts: Json | Sequence[Json] | None) -> Self | None:
        """Return the properties from the entry `condition` of a table's metadata; None if it is empty.

        Raises InputError if they are not valid.
        """
        every = [facts] if isinstance(facts, Mapping) else facts
        return cls(tuple(check(Classes, fields, "condition") for fields in every)) if every else None

    @property
    def facts(self) -> Json | list[Json]:
        """The properties as JSON: one object if labels are integers, else a list."""
        every = [classes.model_dump(mode="json") for classes in self.properties]
        return every[0] if self.are_integers else every

    @property
    def are_integers(self) -> bool:
        """Whether labels are integers (M,)."""
        return len(self.properties) == 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of classes of each property, which is also its label for rows without a value."""
        return tuple(len(classes.names) for classes in self.properties)

    def labels(self, values: Iterable[np.ndarray]) -> np.ndarray:
        """Return the labels (M,) or (M, P) of rows. `values` has the values (M,) of each property."""
        pairs = zip(self.properties, values, strict=True)
        return self._as_stored(classes.numbers(column) for classes, column in pairs)

    def read(self, conditions: Iterable[str]) -> dict[str, str]:
        """Read `conditions` such as `qed=high`: a dict from a property to the class asked for, or SPREAD.

        Raises InputError for a property or a class that the model does not know.
        """
        return read_conditions(conditions, {classes.property: classes.names for classes in self.properties})

    def targets(self, conditions: Iterable[str], first: int, rows: int) -> np.ndarray:
        """Return the labels (rows,) or (rows, P) of samples from number `first` on that should meet
        `conditions`, such as `qed=high`.

        A property that is not asked for gets the label for "no value". Raises InputError for an unknown
        property or class.
        """
        return self._targets(self.read(conditions), first, rows)

    def spread(self, first: int, rows: int) -> np.ndarray:
        """Return the labels of samples that take each property's classes in turn: `targets` with SPREAD."""
        return self._targets({classes.property: SPREAD for classes in self.properties}, first, rows)

    def _targets(self, asked: Mapping[str, str], first: int, rows: int) -> np.ndarray:
        samples, labels = np.arange(first, first + rows), list[np.ndarray]()
        steps = _even_steps(len(self.properties))
        for classes, size, step in zip(self.properties, self.sizes, steps, strict=True):
            target = asked.get(classes.property)
            if target == SPREAD:
                even = np.floor((samples + 0.5) * step % 1 * size)
                labels.append(samples % size if self.are_integers else even)
            else:
                labels.append(np.full(rows, size if target is None else classes.names.index(target)))
        return self._as_stored(labels)

    def _as_stored(self, labels: Iterable[np.ndarray]) -> np.ndarray:
        columns = np.stack([*labels], axis=-1)
        return columns[:, 0].astype(np.uint8) if self.are_integers else columns.astype(np.float32)


def _even_steps(dimensions: int) -> list[float]:
    """Return a step for each of d dimensions, whose multiples, modulo 1, fill a cube evenly (Roberts 2018).

    The steps are the powers of 1 / g with g^(d + 1) = g + 1.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    return [root**-power for power in range(1, dimensions + 1)]
