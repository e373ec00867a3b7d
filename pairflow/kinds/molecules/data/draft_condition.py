"""Chooses the condition of an experiment that `pairflow new` suggests, and says how it uses the column."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.arguments import nearest
from pairflow.config import check
from pairflow.data.draft import Entry
from pairflow.data.split import is_held_out
from pairflow.errors import InputError
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.data.own_column import OwnColumn, divide, find_classes, has_decimal_commas
from pairflow.kinds.molecules.data.survey import Survey
from pairflow.kinds.molecules.settings import COMPUTED, Conditioning, Replicates


class DraftCondition(NamedTuple):
    """A condition: its settings in the experiment and, unless RDKit computes the property, the column of the
    user's table."""

    settings: Conditioning
    column: OwnColumn | None = None

    def entry(self) -> Entry:
        return self.settings.model_dump(mode="json", exclude_defaults=True)

    def fitted(self, counts: Survey) -> "DraftCondition":
        """Return the condition with classes chosen from the values of the molecules in `counts`, the
        survey of the file. A property that RDKit computes is returned unchanged."""
        if self.column is None:
            return self
        column = self.column.without(counts.rejects["number"])
        return choose_classes(column, self.settings.replicates, counts.lines, counts.repeats)

    def describe(self, counts: Survey, unused: Path) -> Iterator[str]:
        """Yield sentences that tell the user how the column is used, and which classes the model learns.
        `unused` is the file that lists the rows whose field is not used."""
        name, sizes = self.settings.name(), "Each class is a third of the training molecules."
        if self.column:
            text = self.column.summarise()
            if counts.repeats and counts.total < counts.of:
                text += f" Equal molecules were looked for among {counts.total:,} of the rows."
            yield text + f" All these rows are listed in {unused}." * bool(len(self.column.unused()))
            sizes = _describe_classes(self.settings, self.column.at(counts.lines))
        *others, last = self.settings.labels()
        example = shlex.quote(f"{name}={last}")
        origin = "" if self.column else ", as RDKit computes it"
        what = f"{', '.join(others)} or {last}"
        what = f"of class {what}" if self.settings.named() else f"with {what} values"
        yield (
            f"The model also learns {name}{origin}. To ask for samples {what}: "
            f"`pairflow sample --condition {example}`. {sizes}"
        )

    def unused(self) -> pd.DataFrame:
        """Return the rows of the user's table whose field in the column is not used, or counts only together
        with other rows of the molecule."""
        return self.column.unused() if self.column else pd.DataFrame()


def ask_for_classes(condition: Entry) -> Entry:
    """Return the entry of an evaluation that asks for every class in turn, so that the report says whether
    the model follows the condition. Returns no entry if an evaluation cannot name the column."""
    name = Conditioning(**condition).name()
    if {",", "="} & {*name}:
        return {}
    return {
        "asked": {"nfe": [8], "samples": 256, "trials": 1, "condition": f"{name}=spread", "guidances": [0, 2]}
    }


def find_condition(
    name: str, header: Iterable[str], file: Path, replicates: Replicates = "median", sheet: str | None = None
) -> DraftCondition:
    """Return the condition on `name`: a column of numbers or classes of the file or, if there is no such
    column that can be used, a property that RDKit computes. `header` has the names of the columns;
    `replicates` says which value counts for a molecule in several rows. Raises InputError for any other
    name, and for a column with too few different values."""
    header = [*header]
    if name in header:
        column = OwnColumn.read(file, name, sheet=sheet)
        try:
            return choose_classes(column, replicates, column.lines)
        except InputError:
            if name not in COMPUTED:
                raise
    if name not in COMPUTED:
        raise InputError(
            f"--condition: unknown name {name!r}{nearest(name, [*header, *COMPUTED])}: expected a column of "
            f"numbers or classes of {file}, or a property ({', '.join(COMPUTED)})"
        )
    return DraftCondition(Conditioning.model_validate({"property": name}))


def choose_classes(
    column: OwnColumn,
    replicates: Replicates,
    lines: Sequence[int] | np.ndarray,
    repeats: Iterable[tuple[int, int]] = (),
) -> DraftCondition:
    """Return a condition on a column: on the classes that the column names, or on three (else two) classes of
    its numbers. No class is empty.

    `lines` has the row number of each molecule's first row, and `repeats` has pairs (number of a later row of
    a molecule, number of its first row). `replicates` says which value counts for a molecule in several rows.
    Raises InputError if there are no two classes.
    """
    names = find_classes(column.fields_at(lines))
    column = column.divided(names).combined(repeats, replicates)
    for classes in [names] if names else [3, 2]:
        settings = {"column": column.name, "classes": classes, "replicates": replicates}
        condition = check(Conditioning, settings, "--condition")
        with suppress(InputError):
            for part in _parts(column.at(lines), margin=not names):
                divide(condition, part)
            return DraftCondition(condition, column)
    raise InputError(
        f"--condition: {column.tally()}; expected different numbers, well under half of them equal to the "
        "largest, or a few classes"
    )


def _parts(values: np.ndarray, margin: bool) -> Iterator[np.ndarray]:
    """Yield the values (M,), the known ones of them without the lowest, and the known ones without the
    highest. With `margin` the square root of their number is left out each time, else none. A split shifts
    quantiles by less, so that classes are safe if none is empty in any of these arrays."""
    known = np.sort(values[np.isfinite(values)])
    few = isqrt(len(known)) * margin
    yield from (values, known[few:], known[: len(known) - few])


def _describe_classes(condition: Conditioning, values: np.ndarray) -> str:
    """Say how many of the molecules with these values (M,) are in each class, and up to which value a class
    goes."""
    classes = divide(condition, values)
    sizes = np.bincount(classes.numbers(values), minlength=len(classes.names))
    ends = [f" (up to {end:.4g})" * (not condition.named()) for end in classes.thresholds]
    rows = [
        f"{size:,} {name}{end}" for size, name, end in zip(sizes, classes.names, [*ends, ""], strict=False)
    ]
    return f"Of the molecules that were read: {', '.join(rows)}."


def suggest_columns(columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield sentences that name the columns of a table that could be a condition; none if there are no such
    columns. `columns` has the first fields of each column. Columns of names, identifiers and splits are left
    out, and also those that `choose_classes` refuses."""
    options, commas = dict[str, list[str]](), has_decimal_commas(columns.values())
    for name, fields in columns.items():
        is_split = all(is_held_out(field) is not None for field in fields)
        is_identifier = len({*fields}) == len(fields) and all(map(str.isdecimal, fields))
        if is_split or is_identifier or library.name_column([name], ""):
            continue
        try:
            rows = ((row, field, "") for row, field in enumerate(fields))
            column = OwnColumn(name, "row", rows, commas=commas)
            named = choose_classes(column, "median", column.lines).settings.named()
        except InputError:
            continue
        what = "of a class in a column" if named else "with low, middle or high values of a column"
        known = column.numbers[np.isfinite(column.numbers)]
        few = len(known) <= (len(fields) - column.reasons.count("empty")) / 2 or len(np.unique(known)) < 3
        if few and not named:
            continue
        options.setdefault(what, []).append(f"`--condition {shlex.quote(name)}`")
    for what, names in options.items():
        yield (
            f"To ask later for samples {what}, run `pairflow new` again with --force and "
            f"{' or '.join(names)}."
        )
