"""The properties of data rows, such as logP, that a conditional model learns and can be asked for.

Classes of a property are quantiles of the training rows: with three classes, each of `low`, `middle` and
`high` holds about a third of the rows, fewer or more if many rows have the same value. Classes that the data
name, such as `active`, have their numbers as values. A property that a model learns as a number also has
*knots*, evenly spaced quantiles. A network has an embedding of each knot, and interpolates between two of
them for a value in between.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from pairflow.config import Settings
from pairflow.config.conditions import SPREAD, Choice, read_conditions
from pairflow.errors import InputError

KNOTS = 9  # of a property that is learnt as a number; fewer if many rows have the same value


class Classes(Settings):
    """A property with named classes, lowest first, and with `knots` if a model learns it as a number.

    Class c, counted from 0, holds the values with thresholds[c - 1] < value <= thresholds[c]. A network gets
    the value of a row as a *label*: the number of its class or, with knots, its place among them, so that 1.5
    is halfway between knots 1 and 2. The label `size()` says that a row has no value.
    """

    property: str
    names: tuple[str, ...] = Field(min_length=2)
    thresholds: tuple[float, ...]
    knots: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _one_threshold_between_two_classes(self) -> Self:
        if len(self.thresholds) != len(self.names) - 1 or list(self.thresholds) != sorted(self.thresholds):
            raise ValueError(f"thresholds: expected {len(self.names) - 1} ascending numbers")
        if self.knots and (len(self.knots) < 2 or (np.diff(self.knots) <= 0).any()):
            raise ValueError("knots: expected two or more ascending numbers")
        return self

    @classmethod
    def from_values(cls, name: str, values: np.ndarray, names: tuple[str, ...], number: bool = False) -> Self:
        """The property `name` with quantile classes of its values (M,), NaN if missing.

        It gets knots if it is learnt as a `number`. Raises InputError if a class would be empty.
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
        knots = np.unique(np.quantile(finite, np.linspace(0, 1, KNOTS))) if number else np.empty(0)
        return classes.model_copy(update={"knots": tuple(map(float, knots))})

    def size(self) -> int:
        """The number of knots, or else of classes; also the label of rows without a value."""
        return len(self.knots or self.names)

    def choice(self) -> Choice:
        """The classes, and the range of numbers, that samples may be asked for."""
        return Choice(self.names, (self.knots[0], self.knots[-1]) if self.knots else None)

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """The number of each value's class, (M,) uint8; the number of classes for a missing value."""
        numbers = np.searchsorted(np.asarray(self.thresholds), values, side="left")
        return np.where(np.isfinite(values), numbers, len(self.names)).astype(np.uint8)

    def labels(self, values: np.ndarray) -> np.ndarray:
        """The label of each value, (M,) float64. A value outside the knots gets that of the nearest knot."""
        if not self.knots:
            return self.numbers(values).astype(np.float64)
        between = np.interp(values, self.knots, np.arange(len(self.knots)))
        return np.where(np.isfinite(values), between, self.size())

    def numbers_of_labels(self, labels: np.ndarray) -> np.ndarray:
        """The number of the class of each label (M,); the number of classes for the label `size()`."""
        if not self.knots:
            return labels.astype(np.int64)
        ends = self.labels(np.array(self.thresholds)).astype(labels.dtype)  # rounded as the labels are
        numbers = np.searchsorted(ends, labels, side="left")
        return np.where(labels < self.size(), numbers, len(self.names))

    def values(self, labels: np.ndarray) -> np.ndarray:
        """The value that each label stands for, (M,) float64, if there are knots."""
        return np.interp(labels, np.arange(len(self.knots)), self.knots)

    def targets(self, asked: str | float | None, positions: np.ndarray) -> np.ndarray:
        """The labels of samples, (M,) float64, that should have what is `asked`.

        `asked` is a class, a number, or None for "no value": all labels are then equal. With knots, a class
        is asked for by its middle. SPREAD covers the range of labels: sample m gets that at positions[m],
        from 0 (lowest) up to 1.
        """
        if asked == SPREAD:
            return positions * (self.size() - 1) if self.knots else np.floor(positions * self.size())
        label = float(self.size())
        if isinstance(asked, str):
            label = number = self.names.index(asked)
            ends = (*self.knots[:1], *self.thresholds, *self.knots[-1:])
            if self.knots:
                label = self.labels(np.array(ends[number : number + 2])).mean()
        elif asked is not None:
            label = self.labels(np.array(asked)).item()
        return np.full(len(positions), label, np.float64)


# The JSON form of one property, or of several. Messages leave out the names of tags in angle brackets.
Facts = Annotated[
    Annotated[Classes, Tag("<one>")] | Annotated[tuple[Classes, ...], Field(min_length=1), Tag("<several>")],
    Discriminator(lambda facts: "<several>" if isinstance(facts, list | tuple) else "<one>"),
]


class Properties(NamedTuple):
    """The properties that a conditional model is trained for, and the form of its labels.

    If there is only one property and it has no knots, labels are integers (M,): the classes of the rows. Else
    they are float32 numbers (M, P): a label for each of the P properties.
    """

    properties: tuple[Classes, ...]

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Self | None:
        """The properties from the entry `condition` of a table's metadata; None if it is empty."""
        if not facts:
            return None
        return cls(tuple(Classes(**fields) for fields in ([facts] if isinstance(facts, Mapping) else facts)))

    @property
    def facts(self) -> dict[str, Any] | list[dict[str, Any]]:
        """The properties as JSON: one object if labels are integers, else a list."""
        every = [classes.model_dump(mode="json", exclude_defaults=True) for classes in self.properties]
        return every[0] if self.are_integers else every

    @property
    def are_integers(self) -> bool:
        """Whether labels are integers (M,)."""
        return len(self.properties) == 1 and not self.properties[0].knots

    @property
    def sizes(self) -> tuple[int, ...]:
        """The `size()` of each property, which is also its label for rows without a value."""
        return tuple(classes.size() for classes in self.properties)

    def labels(self, values: Iterable[np.ndarray]) -> np.ndarray:
        """The labels (M,) or (M, P) of rows. `values` has the values (M,) of each property."""
        pairs = zip(self.properties, values, strict=True)
        return self._as_stored(classes.labels(column) for classes, column in pairs)

    def read(self, conditions: Iterable[str]) -> dict[str, str | float]:
        """Read `conditions` such as `logp=2.5`: a dict from a property to the class or number asked for.

        Raises InputError for a property or a class that the model does not know.
        """
        return read_conditions(
            conditions, {classes.property: classes.choice() for classes in self.properties}
        )

    def targets(self, conditions: Iterable[str], first: int, rows: int) -> np.ndarray:
        """The labels (rows,) or (rows, P) of samples from number `first` on that should meet `conditions`.

        A property that is not asked for gets the label for "no value". Raises InputError as `read` does.
        """
        return self._targets(self.read(conditions), first, rows)

    def spread(self, first: int, rows: int) -> np.ndarray:
        """The labels of samples that cover the range of every property: `targets` with SPREAD for each."""
        return self._targets({classes.property: SPREAD for classes in self.properties}, first, rows)

    def _targets(self, asked: Mapping[str, str | float], first: int, rows: int) -> np.ndarray:
        samples, positions = np.arange(first, first + rows), list[np.ndarray]()
        if self.are_integers:
            positions = [(samples % self.sizes[0] + 0.5) / self.sizes[0]]  # each class in turn
        else:
            positions = [(samples + 0.5) * step % 1 for step in _even_steps(len(self.properties))]
        return self._as_stored(
            classes.targets(asked.get(classes.property), at)
            for classes, at in zip(self.properties, positions, strict=True)
        )

    def _as_stored(self, labels: Iterable[np.ndarray]) -> np.ndarray:
        columns = np.stack([*labels], axis=-1)
        return columns[:, 0].astype(np.uint8) if self.are_integers else columns.astype(np.float32)


def _even_steps(dimensions: int) -> list[float]:
    """A step for each of d dimensions, whose multiples, modulo 1, fill a cube evenly (Roberts 2018).

    The steps are the powers of 1 / g with g^(d + 1) = g + 1.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    return [root**-power for power in range(1, dimensions + 1)]
