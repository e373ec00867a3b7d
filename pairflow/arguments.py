"""Checks of arguments. They raise InputError, whose message begins with the argument's `name`."""

import difflib
import math
import operator
from collections.abc import Iterable
from contextlib import suppress
from typing import SupportsFloat, SupportsIndex

from pairflow.errors import InputError


def checked_integer(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as a Python integer. Raise InputError, which begins with `name`, if it is not an integer
    in low..high.

    Integers of other libraries, such as NumPy, are also taken.
    """
    number = _integer(value)
    if number is None or not low <= number <= high:
        raise InputError(f"{name}: expected an integer in {low}..{high}, found {value!r}")
    return number


def checked_number(name: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float. Raise InputError, which begins with `name`, if it is not a number from low
    to high."""
    number = math.nan
    with suppress(TypeError, ValueError, RuntimeError):
        if isinstance(value, SupportsFloat) and not isinstance(value, bool | str):
            number = float(value)
    if not low <= number <= high:
        raise InputError(f"{name}: expected a number from {low:g} to {high:g}, found {value!r}")
    return number


def checked_choice(name: str, value: object, known: Iterable[str]) -> str:
    """Return `value`. Raise InputError, which begins with `name` and suggests the most similar name, if it is
    none of the `known` names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        expected = f"expected one of {', '.join(names)}"
        raise InputError(f"{name}: {expected}, found {value!r:.200}{nearest(value, names)}")
    return value


def nearest(name: object, known: Iterable[object]) -> str:
    """Return ` (did you mean 'x'?)` with the known name most similar to `name`, or '' if none is similar."""
    others = [str(item) for item in known if str(item) != str(name)]
    near = difflib.get_close_matches(str(name), others, n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def row_range(rows: tuple[int, ...] | None, count: int) -> tuple[int, int]:
    """Check a range of rows (first, last), which stands for the rows first..last-1 of `count`, and return it.
    None stands for all rows. Raises InputError for anything else."""
    if rows is None:
        return 0, count
    try:
        first, last = map(_integer, rows)
    except (TypeError, ValueError):
        first = last = None
    if first is None or last is None:
        raise InputError(f"rows: expected two integers (first, last), found {rows!r}")
    if not 0 <= first < last <= count:
        raise InputError(f"rows: expected 0 <= first < last <= {count}, found {first} and {last}")
    return first, last


def require_unmasked(values: object, name: str) -> None:
    """Raise InputError if `values`, an array or a list of arrays, have values that are masked (numpy.ma)."""
    import numpy as np  # imported late, so that `pairflow doctor` works where NumPy is broken

    if any(map(np.ma.is_masked, values if isinstance(values, list | tuple) else [values])):
        raise InputError(f"{name}: expected an array without masked values, found a masked array with some")


def _integer(value: object) -> int | None:
    """Return an integer of any library as a Python integer; None for anything else, including a Boolean."""
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        return None
    try:
        return operator.index(value) if isinstance(value, SupportsIndex) else None
    except TypeError:
        return None
