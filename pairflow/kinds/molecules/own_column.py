"""Reads a column of numbers of a user's table, of which a conditional model learns low and high values."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from math import isfinite
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.kinds.molecules import library

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_RUNS = 6  # of lines, that a message names
_SHOWN = 40  # characters of a field in a message


def plain_number(field: str) -> float | None:
    """The number in a field, such as `5.1` or `6e-3`. None for an empty field, for an infinite number, and
    for any other text, such as `<0.1`, `nan` or `1_000`."""
    text = field.strip()
    return number if _NUMBER.fullmatch(text) and isfinite(number := float(text)) else None


class OwnColumn:
    """A column of a CSV or Excel file.

    Attributes:
        name: its name.
        lines: the number of each of R rows in the file.
        fields: the text of each row (R).
        numbers: the number of each row (R,), NaN where the field is empty or no plain, finite number.
    """

    def __init__(self, table: Path, name: str, sheet: str | None = None):
        """Read the column. Raises InputError if the table does not have it, or if it is no table."""
        self.name, self.unit = name, library.unit_of(table)
        rows = [*library.read_fields(table, name, sheet)]
        self.lines, self.fields = [line for line, _ in rows], [field.strip() for _, field in rows]
        self._row = {line: row for row, line in enumerate(self.lines)}
        self.numbers = np.array([plain_number(field) for field in self.fields], np.float64)

    def at(self, lines: Iterable[int]) -> np.ndarray:
        """The numbers (M,) in some rows, given by their numbers in the file."""
        return self.numbers[[self._row[line] for line in lines]]

    def tally(self) -> str:
        """Say how many rows have a number, and where the others are."""
        empty, unread = self._empty(), self._unread()
        parts = [f"{np.isfinite(self.numbers).sum():,} of {len(self.fields):,} rows have a number"]
        if empty:
            parts.append(f"{len(empty):,} have none ({self._places(empty)})")
        if unread:
            first = repr(self.fields[unread[0]][:_SHOWN])
            places = f"{self._places(unread)}; the first: {first}"
            parts.append(f"{len(unread):,} hold no plain finite number ({places})")
        return f"{self.name}: {', '.join(parts)}"

    def summarise(self, repeats: Iterable[tuple[int, int]] = ()) -> str:
        """Say how many rows have a number, and what becomes of the others, and of repeated molecules.

        `repeats` has each row that is left out because it repeats a molecule, and the first row with this
        molecule, by their numbers in the file.
        """
        text = f"{self.tally()}."
        if np.isnan(self.numbers).any():
            text += " Molecules without a number are kept, and are trained on without a value."
        if other := [row for row, _ in self._others(repeats)]:
            text += (
                " Of a molecule in several rows the first row counts: the number is another one in "
                f"{len(other):,} later rows ({self._places(other)}), and is not used."
            )
        return text

    def unused(self, repeats: Iterable[tuple[int, int]] = ()) -> pd.DataFrame:
        """List the rows whose field is not used, in order: number in the file, text and reason."""
        reasons = dict.fromkeys(self._empty(), "empty")
        reasons |= dict.fromkeys(self._unread(), "no plain finite number")
        for row, first in self._others(repeats):
            reasons[row] = f"the molecule is in {self.unit} {self.lines[first]} as well, which counts"
        rows = [(self.lines[row], self.fields[row], reasons[row]) for row in sorted(reasons)]
        return pd.DataFrame(rows, columns=[self.unit, "text", "reason"])

    def _empty(self) -> list[int]:
        return [row for row, field in enumerate(self.fields) if not field]

    def _unread(self) -> list[int]:
        return [row for row in np.flatnonzero(np.isnan(self.numbers)).tolist() if self.fields[row]]

    def _others(self, repeats: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """The indices of the rows of `repeats` that have a number which the first row does not have."""
        pairs = [(self._row[line], self._row[first]) for line, first in repeats]
        numbers = self.numbers
        return [
            (row, first)
            for row, first in pairs
            if not np.isnan(numbers[row]) and numbers[row] != numbers[first]
        ]

    def _places(self, rows: Sequence[int]) -> str:
        """The numbers of some rows in the file, in words: `line 4`, `lines 2-5, 9`."""
        runs = [*islice(_runs([self.lines[row] for row in rows]), _RUNS + 1)]
        more = ", ..." * (len(runs) > _RUNS)
        return f"{self.unit}{'s' * (len(rows) > 1)} {', '.join(runs[:_RUNS])}{more}"


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield runs of consecutive ascending numbers, such as `2-5` and `9`."""
    for _, run in groupby(enumerate(numbers), key=lambda place: place[1] - place[0]):
        first, *_, last = (number for _, number in [*run] * 2)
        yield str(first) if first == last else f"{first}-{last}"
