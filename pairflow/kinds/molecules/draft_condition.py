"""Chooses the condition of an experiment that `pairflow new` suggests, and says what it makes of the file."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.arguments import nearest
from pairflow.data.classes import Classes
from pairflow.data.draft import Entry
from pairflow.errors import InputError
from pairflow.kinds.molecules import library
from pairflow.kinds.molecules.own_column import OwnColumn
from pairflow.kinds.molecules.settings import COMPUTED, Conditioning
from pairflow.kinds.molecules.survey import Survey, numeric_columns


class DraftCondition(NamedTuple):
    """A condition: its settings in the experiment, and the column of the user's table if it has one."""

    settings: Conditioning
    column: OwnColumn | None = None

    def entry(self) -> Entry:
        """The section `condition` of the experiment."""
        return self.settings.model_dump(exclude_defaults=True)

    def fitted(self, counts: Survey) -> "DraftCondition":
        """The condition with as many classes as the molecules that were read allow."""
        if self.column is None:
            return self
        return choose_classes(self.column, self.column.at(counts.lines))

    def describe(self, counts: Survey, unused: Path) -> Iterator[str]:
        """Yield sentences on the column, of which the file `unused` lists what is not used, and on the
        classes."""
        name, sizes = self.settings.name(), "Each class is a third of the training molecules."
        if self.column:
            text = self.column.summarise(counts.repeats)
            if counts.repeats and counts.total < counts.of:
                text += f" Equal molecules were looked for among {counts.total:,} of the rows."
            yield text + f" These rows are listed in {unused}." * bool(len(self.unused(counts)))
            sizes = _describe_classes(self.settings, self.column.at(counts.lines))
        *others, last = self.settings.labels()
        example = shlex.quote(f"{name}=high")
        origin = "" if self.column else ", as RDKit computes it"
        yield (
            f"The model also learns {name}{origin}: samples can be asked for {', '.join(others)} or {last} "
            f"values, as by `pairflow sample --condition {example}`. {sizes}"
        )

    def unused(self, counts: Survey) -> pd.DataFrame:
        """The rows of the table whose field in the column is not used."""
        return self.column.unused(counts.repeats) if self.column else pd.DataFrame()


def ask_for_classes(condition: Entry) -> Entry:
    """Return an evaluation that asks for every class in turn, so that the report says whether the model
    follows the condition; none if the column's name cannot be written in an evaluation."""
    name = Conditioning(**condition).name()
    if {",", "="} & {*name}:
        return {}
    return {
        "asked": {"nfe": [8], "samples": 256, "trials": 1, "condition": f"{name}=spread", "guidances": [0, 2]}
    }


def find_condition(name: str, header: Iterable[str], file: Path, sheet: str | None = None) -> DraftCondition:
    """Return the condition on a column of numbers of a file, or else on a property that RDKit computes.
    Raises InputError for any other name, and for a column of too few numbers."""
    header = [*header]
    if name in header:
        column = OwnColumn(file, name, sheet)
        try:
            return choose_classes(column, column.numbers)
        except InputError:
            if name not in COMPUTED:
                raise
    if name not in COMPUTED:
        raise InputError(
            f"--condition: unknown name {name!r}{nearest(name, [*header, *COMPUTED])}: expected a column of "
            f"numbers of {file}, or a property ({', '.join(COMPUTED)})"
        )
    return DraftCondition(Conditioning.model_validate({"property": name}))


def choose_classes(column: OwnColumn, values: np.ndarray) -> DraftCondition:
    """Return a condition with three classes, or else two, none of which is empty with these values (M,) of
    the column, NaN if missing. Raises InputError if there are no two."""
    for count in (3, 2):
        condition = Conditioning(column=column.name, classes=count)
        with suppress(InputError):
            Classes.from_values(column.name, values, condition.labels())
            return DraftCondition(condition, column)
    raise InputError(
        f"--condition: {column.tally()}; expected different numbers, at most half of them equal to the "
        "largest"
    )


def _describe_classes(condition: Conditioning, values: np.ndarray) -> str:
    """Say how many molecules, which have these values (M,), are in each class, and where it ends."""
    classes = Classes.from_values(condition.name(), values, condition.labels())
    sizes = np.bincount(classes.numbers(values), minlength=len(classes.names))
    ends = [f" (up to {end:.4g})" for end in classes.thresholds]
    rows = [
        f"{size:,} {name}{end}" for size, name, end in zip(sizes, classes.names, [*ends, ""], strict=False)
    ]
    return f"Of the molecules that were read: {', '.join(rows)}."


def suggest_columns(columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence on the columns of numbers that could be a condition, if there are any."""
    if numeric := [name for name in numeric_columns(columns) if not library.name_column([name], "")]:
        options = ", ".join(f"{name}: `--condition {shlex.quote(name)}`" for name in numeric)
        yield f"Samples can be asked for low, middle or high values of a column of numbers. {options}."
