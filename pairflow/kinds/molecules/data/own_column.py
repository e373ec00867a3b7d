"""Reads a column of numbers or of classes of a user's table, which a conditional model learns."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from copy import copy
from itertools import groupby, islice
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pairflow.data.classes import Classes
from pairflow.data.tabular import layout_of
from pairflow.errors import InputError
from pairflow.kinds.molecules.data import library
from pairflow.kinds.molecules.settings import Conditioning, Replicates

Field = tuple[int, str, str]  # of `library.read_fields`
_RUNS = 6  # of lines, that a message names
_SHOWN = 40  # characters of a field in a message
_FEW = 5  # different numbers, at most, are classes
_LEAST, _LEAST_SHARE = 10, 0.01  # molecules of a class, and their share of the molecules
_MISSING = re.compile(r"n[./]?\s?[ad]\.?|nan|none|null|missing|#n/a|[-–—?]+", re.IGNORECASE)
_QUALIFIER = re.compile(r"^(?:[<>=≤≥~≈±≃]+|ca\.?|approx\.?|about)\s*", re.IGNORECASE)
_FLAGS = re.IGNORECASE | re.ASCII
_NUMERIC = re.compile(r"[+-]?[\d.,]*\d[\d.,]*(e[+-]?\d+)?", _FLAGS)  # in any notation
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+", _FLAGS)  # perhaps with points between thousands
_COMMAS = "with decimal commas"
_RELATIONS, _UNITS = {"relation", "qualifier", "operator"}, {"unit", "units"}  # last words of columns
_LOGARITHM = re.compile(r"p(?:chembl|[A-Z])|\w?log", re.ASCII)  # a column without a unit
_FIRST = 1000  # rows that show how a table is written
_UNCLEAR, _QUALIFIED = "a comma, not clearly decimal", "with < or > or the like"


def _notation(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"\d+|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+"
    return re.compile(rf"[+-]?(?:(?:{whole})(?:{decimal}\d*)?|{decimal}\d+)(?:e[+-]?\d+)?", _FLAGS)


_PLAIN, _POINT, _COMMA = _notation(r"\.", "(?!)"), _notation(r"\.", ","), _notation(",", r"\.")


class Values(NamedTuple):
    """The numbers that R fields of a column hold, and how they are written.

    Attributes:
        numbers: the number in each field (R,); NaN if the field has none.
        reasons: why a field has no number (R); empty if it has one.
        notation: how numbers are written, such as with decimal commas; empty if plainly.
        clash: the indices of two fields whose notations contradict each other, if any.
        points: the index of a field with a point, if all points of the column may separate thousands.
    """

    numbers: np.ndarray
    reasons: list[str]
    notation: str = ""
    clash: tuple[int, int] | None = None
    points: int | None = None


def read_numbers(fields: Sequence[str]) -> Values:
    """Return the plain, finite numbers in the fields of a column, such as `5.1` or `6e-3`, and the reasons
    of fields without one. Decimal commas, and commas or points between thousands, are read if all numbers
    of the column fit that notation and at least one of them fits no other."""
    texts = [field.strip() for field in fields]
    bare = [_QUALIFIER.sub("", text, 1) if "," in text or "." in text else "" for text in texts]
    written = [text for text in dict.fromkeys(bare) if _NUMERIC.fullmatch(text)]
    commas = [text for text in written if "," in text]
    several = [text for text in written if "," in text or text.count(".") > 1]
    certain = [text for text in several if _COMMA.fullmatch(text) and not _POINT.fullmatch(text)]
    point = next((text for text in written if "," not in text and text.count(".") == 1), None)
    agree = bool(certain) and all(map(_COMMA.fullmatch, written))
    pattern, table, notation, clash = _PLAIN, dict[int, str | None](), "", None
    if certain and point and not (agree and any("." in text for text in certain)):
        clash = bare.index(certain[0]), bare.index(point)  # 0,5 and 1.007, which may be 1007
    elif agree:
        pattern, table = _COMMA, {ord("."): None, ord(","): "."}
        notation = _COMMAS if commas else "with points between thousands"
    elif commas and all(map(_POINT.fullmatch, written)) and not all(map(_COMMA.fullmatch, commas)):
        pattern, table, notation = _POINT, {ord(","): None}, "with commas between thousands"
    pointed = [text for text in written if "." in text and pattern is _PLAIN]
    points = bare.index(pointed[0]) if pointed and all(map(_GROUPED.fullmatch, pointed)) else None
    numbers, reasons = np.full(len(texts), np.nan), [""] * len(texts)
    for row, text in enumerate(texts):
        if pattern.fullmatch(text) and isfinite(number := float(text.translate(table))):
            numbers[row] = number
        else:
            reasons[row] = _reason(text)
    return Values(numbers, reasons, notation, clash, points)


def has_decimal_commas(columns: Iterable[Sequence[str]]) -> bool:
    """Return whether one of several columns holds numbers with decimal commas."""
    return any(read_numbers(fields).notation == _COMMAS for fields in columns)


def _reason(text: str) -> str:
    """Return the reason why a field has no plain number."""
    if not text:
        return "empty"
    if _MISSING.fullmatch(text):
        return "not measured"
    if (start := _QUALIFIER.match(text)) and _NUMERIC.fullmatch(text[start.end() :]):
        return _QUALIFIED
    return _UNCLEAR if "," in text and _NUMERIC.fullmatch(text) else "no plain finite number"


def find_classes(fields: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the classes in a column of classes, such as `active` and `inactive` or 0 and 1, in
    order; empty for any other column. A column of numbers is a column of classes if it has few different
    numbers. Rare values are no classes."""
    values = read_numbers(fields)
    reasons = Counter(values.reasons)
    filled = len(fields) - reasons["empty"] - reasons["not measured"]
    numeric = reasons[""] + reasons[_QUALIFIED] + reasons[_UNCLEAR] >= filled / 2
    if numeric and len(np.unique(values.numbers[np.isfinite(values.numbers)])) > _FEW:
        return ()
    usable = ("",) if numeric else ("", "no plain finite number", _UNCLEAR, _QUALIFIED)
    names = zip(_names(fields, values), values.reasons, strict=True)
    counts = Counter(name for name, reason in names if reason in usable)
    least = max(_LEAST, _LEAST_SHARE * filled)
    frequent = {name: count for name, count in counts.items() if count >= least}
    if len(frequent) < 2 or sum(frequent.values()) <= counts.total() / 2:
        return ()
    return tuple(sorted(frequent, key=float if numeric else str))


def _names(fields: Iterable[str], values: Values) -> Iterator[str]:
    """Yield the class that each field names: its text, or its number without needless digits (1 for 1.0)."""
    for field, number in zip(fields, values.numbers, strict=True):
        yield f"{number:.15g}" if isfinite(number) else field.strip()


class OwnColumn:
    """A column of numbers or of classes in a table, or a data item of an SDF file.

    Attributes:
        name: the name of the column.
        unit: what the numbers of rows count, such as "line".
        lines: the number in the file of each of R rows.
        fields: the text of the column in each row (R).
        classes: the names of the classes; empty for a column of numbers.
        numbers: the number in each row, or the number of its class from 0 (R,); NaN if the row has none.
        reasons: why a row has no number (R); empty if it has one.
    """

    def __init__(
        self, name: str, unit: str, rows: Iterable[Field], classes: Sequence[str] = (), commas: bool = False
    ):
        """Make the column from `rows`: the number in the file, the field, and a fault (or an empty text) of
        each. `classes` are the names of the classes; empty for a column of numbers. `commas` says that the
        table may have decimal commas.

        Raises InputError if two numbers are written in ways that contradict each other, or if a point may be
        either a decimal point or stand between thousands.
        """
        self.name, self.unit, self._commas, rows = name, unit, commas, [*rows]
        self.lines, self.fields = [line for line, *_ in rows], [field.strip() for _, field, _ in rows]
        self._faults = [fault for *_, fault in rows]
        self._row = {line: row for row, line in enumerate(self.lines)}
        self._read(classes)

    @classmethod
    def read(
        cls, table: Path, name: str, classes: Sequence[str] = (), sheet: str | None = None
    ) -> "OwnColumn":
        """Read the column `name` of a table, of numbers or of these `classes`. If a column beside it has a
        relation such as `>` for a number, the number is read as if the relation stood in front of it.

        Raises InputError as `__init__` does, if the file is no table or does not have the column, and if the
        numbers have several units.
        """
        unit, rows = library.unit_of(table), [*library.read_fields(table, name, sheet)]
        columns = library.first_fields(table, _FIRST, sheet)
        layout = layout_of(table) if library.format_of(table) == "CSV" else None
        commas = has_decimal_commas(columns.values()) or (layout is not None and layout.separator == ";")
        if not classes and not find_classes([field for _, field, _ in rows]):
            units = None if _LOGARITHM.match(name) else _beside(columns, name, _UNITS)
            relations = _beside(columns, name, _RELATIONS)
            if units:
                _require_one_unit(name, unit, rows, library.read_fields(table, units, sheet))
            if relations:
                rows = [*_with_relations(rows, library.read_fields(table, relations, sheet))]
        return cls(name, unit, rows, classes, commas)

    def _read(self, classes: Sequence[str]) -> None:
        self.classes, self._repeated = tuple(classes), ""
        self._differing: dict[int, int] = {}  # row: the first row with its molecule
        values = read_numbers(self.fields)
        self.numbers, self._notation = values.numbers, values.notation
        reasons = zip(values.reasons, self._faults, strict=True)
        self.reasons = ["rejected" if fault and reason else reason for reason, fault in reasons]
        if values.clash and not classes:
            first, second = (
                f"{self.unit} {self.lines[row]} has {self.fields[row]!r}" for row in values.clash
            )
            raise InputError(
                f"column {self.name!r}: {first}, but {second}; expected numbers with one decimal sign, "
                "such as 0.5 and 1007"
            )
        large = any(len(field) > 2 and field.isdecimal() for field in self.fields)
        if values.points is not None and not classes and (self._commas or large):
            field = self.fields[values.points]
            raise InputError(
                f"column {self.name!r}: {self.unit} {self.lines[values.points]} has {field!r}, which may be "
                f"{field.replace('.', '')} with points between thousands, or {field}0 with a decimal point; "
                "write it in one of these ways"
            )
        if classes:
            number = {name: number for number, name in enumerate(classes)}
            self.numbers = np.array([number.get(name, np.nan) for name in _names(self.fields, values)])
            missing = {"empty", "not measured", "rejected"}
            self.reasons = [
                "" if value == value else reason if reason in missing else "none of the classes"
                for value, reason in zip(self.numbers, self.reasons, strict=True)
            ]

    def divided(self, classes: Sequence[str]) -> "OwnColumn":
        """Return a copy of the column, read as `classes`; as numbers if these are empty."""
        column = copy(self)
        column._read(classes)
        return column

    def without(self, lines: Iterable[int]) -> "OwnColumn":
        """Return a copy of the column in which the rows with the numbers `lines` in the file are rejected,
        because they hold no molecule."""
        column, rejected = copy(self), {*lines}
        faults = zip(self.lines, self._faults, strict=True)
        column._faults = [fault or "rejected" * (line in rejected) for line, fault in faults]
        column._read(self.classes)
        return column

    def combined(self, repeats: Iterable[tuple[int, int]], replicates: Replicates) -> "OwnColumn":
        """Return a copy of the column in which the first row of each molecule has the value that counts for
        it.

        `repeats` has pairs (number of a later row of a molecule, number of its first row) of row numbers in
        the file. If the rows of a molecule have different values, `replicates` says which one counts: the
        first, the median (of classes the most frequent one, or none if several are), or none (reject).
        """
        first = np.arange(len(self.lines))
        for line, original in repeats:
            first[self._row[line]] = self._row[original]
        rows = np.flatnonzero(np.isin(first, first[first != np.arange(len(first))]))
        if not len(rows):
            return self
        column, values = copy(self), pd.Series(self.numbers[rows], rows).groupby(first[rows])
        different = values.nunique() > 1
        counts = values.first()  # that is no NaN
        if replicates == "median":
            counts = _most_frequent(values) if self.classes else values.median()
        elif replicates == "reject":
            counts = counts.mask(different)
        column.numbers = self.numbers.copy()
        column.numbers[counts.index] = counts
        known = rows[np.isfinite(self.numbers[rows])]
        column._differing = {row: first[row] for row in known.tolist() if different[first[row]]}
        if number := int(different.sum()):
            what = "several numbers, which differ by up to {:.4g}"
            counting = {"first": "the first", "median": "their median", "reject": "none"}[replicates]
            if self.classes:
                what, median = (
                    "several classes",
                    "the most frequent one (none if several are equally frequent)",
                )
                counting = median if replicates == "median" else counting
            column._repeated = (
                f"{number:,} molecule{'s have' if number > 1 else ' has'} "
                + what.format((values.max() - values.min()).max())
                + f" ({self._places([*column._differing])}): {counting} counts (replicates: {replicates})"
            )
        return column

    def at(self, lines: Iterable[int]) -> np.ndarray:
        """Return the entries (M,) of `numbers` for the rows with the numbers `lines` in the file."""
        return self.numbers[[self._row[line] for line in lines]]

    def fields_at(self, lines: Iterable[int]) -> list[str]:
        """Return the entries (M) of `fields` for the rows with the numbers `lines` in the file."""
        return [self.fields[self._row[line]] for line in lines]

    def tally(self) -> str:
        """Say how many rows have a value and, for each reason, how many rows have none, and where these
        are."""
        what, notation = "class" if self.classes else "number", f" {self._notation}" * bool(self._notation)
        read, total = self.reasons.count(""), len(self.fields)
        text = f"{self.name}: {read:,} of {total:,} rows have a {what}{'' if self.classes else notation}"
        reasons = pd.Series(self.reasons, dtype=object)
        others = [
            f"{len(rows):,} {reason} ({self._places(rows)}{self._example(rows[0])})"
            for reason, rows in reasons.groupby(reasons).groups.items()
            if reason
        ]
        return f"{text}; the others: {', '.join(others)}" if others else text

    def summarise(self) -> str:
        """Say how many rows have a value, what becomes of rows without one, and which value counts for
        molecules in several rows."""
        text = f"{self.tally()}."
        if any(self.reasons):
            what = "class" if self.classes else "number"
            text += f" Molecules without a {what} stay in the training, without a value."
        return text + (f" {self._repeated}." if self._repeated else "")

    def unused(self) -> pd.DataFrame:
        """List the rows whose field is not used, or counts only together with other rows of the molecule, in
        a table of the row's number in the file, text and reason."""
        reasons = {row: reason for row, reason in enumerate(self.reasons) if reason}
        for row, first in self._differing.items():
            reasons[row] = f"the molecule, first in {self.unit} {self.lines[first]}, has several values"
        rows = [(self.lines[row], self.fields[row], reasons[row]) for row in sorted(reasons)]
        return pd.DataFrame(rows, columns=[self.unit, "text", "reason"])

    def _example(self, row: int) -> str:
        return f"; the first: {self.fields[row][:_SHOWN]!r}" if self.fields[row] else ""

    def _places(self, rows: Sequence[int]) -> str:
        """Return where some rows, given by their indices, are in the file: `line 4`, `lines 2-5, 9`."""
        runs = [*islice(_runs([self.lines[row] for row in rows]), _RUNS + 1)]
        more = ", ..." * (len(runs) > _RUNS)
        return f"{self.unit}{'s' * (len(rows) > 1)} {', '.join(runs[:_RUNS])}{more}"


def _beside(columns: Iterable[str], name: str, endings: Set[str]) -> str | None:
    """Return the one of `columns` that says more about the column `name`: its last word is one of `endings`,
    such as `unit`, and it has the same first word as `name`, or else no other word. Returns None if there is
    none."""
    words = {column: re.findall(r"[^\W_]+", column.lower()) for column in (name, *columns)}
    found = [column for column in columns if column != name and {*words[column][-1:]} & endings]
    same = [column for column in found if words[column][:1] == words[name][:1]]
    return next(iter(same + [column for column in found if len(words[column]) == 1]), None)


def _require_one_unit(name: str, unit: str, rows: Iterable[Field], units: Iterable[Field]) -> None:
    """Raise InputError if the numbers of the column `name` are in several units. `rows` are its fields, and
    `units` the fields of a column of units, in the same order. `unit` is what row numbers count, for the
    message."""
    found = dict[str, int]()
    for (line, field, _), (_, text, _) in zip(rows, units, strict=True):
        if text.strip() and _NUMERIC.fullmatch(field.strip()):
            found.setdefault(text.strip(), line)
    if len(found) > 1:
        first, second = (f"{unit} {line} has one in {text!r}" for text, line in [*found.items()][:2])
        raise InputError(
            f"column {name!r}: expected numbers in one unit, but {first}, {second}; filter or convert them"
        )


def _with_relations(rows: Iterable[Field], relations: Iterable[Field]) -> Iterator[Field]:
    """Yield `rows` with a relation such as `>` in front of a number, if `relations`, the fields of another
    column, has one for it. The relation `=` is left out."""
    for (line, field, fault), (_, text, _) in zip(rows, relations, strict=True):
        sign = text.strip(" '\"")
        censored = sign.strip("=") and _QUALIFIER.fullmatch(sign) and _NUMERIC.fullmatch(field.strip())
        yield line, sign * bool(censored) + field.strip(), fault


def _most_frequent(values: "pd.api.typing.SeriesGroupBy") -> pd.Series:
    """Return the most frequent value of each group; NaN if there is none, or if there are several."""
    counts = values.value_counts()
    best = counts[counts == counts.groupby(level=0).transform("max")].reset_index(level=1).iloc[:, 0]
    return best[~best.index.duplicated(keep=False)].reindex(values.first().index)


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield runs of consecutive ascending numbers, such as `2-5` and `9`."""
    for _, run in groupby(enumerate(numbers), key=lambda place: place[1] - place[0]):
        first, *_, last = (number for _, number in [*run] * 2)
        yield str(first) if first == last else f"{first}-{last}"


def divide(setting: Conditioning, values: np.ndarray) -> Classes:
    """Return the classes of a property by its values (M,) in the training molecules: equally large ones of
    its numbers or, if the setting names the classes, these. Then `values` are the numbers of classes.
    Raises InputError if a class would be empty."""
    name, labels = setting.name(), setting.labels()
    if isinstance(setting.classes, int):
        return Classes.from_values(name, values, labels)
    missing = [label for number, label in enumerate(labels) if not (values == number).any()]
    if missing:
        raise InputError(
            f"condition: no training row has the class '{missing[0]}' of {name}; leave it out of classes"
        )
    return Classes(property=name, names=labels, thresholds=tuple(np.arange(len(labels) - 1) + 0.5))
