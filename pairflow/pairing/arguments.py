"""Arguments that the pairings of tokens and of points share."""

import operator
from typing import Any

from pairflow.errors import InputError


def checked_integer(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an integer in low..high; InputError begins with `name`."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or not low <= number <= high:
        raise InputError(f"{name}: expected an integer in {low}..{high}, found {value!r}")
    return number


def row_range(rows: tuple[int, ...] | None, count: int) -> tuple[int, int]:
    """The range (first, last) of `count` rows that `rows` names; None names all of them."""
    if rows is None:
        return 0, count
    try:
        first, last = map(operator.index, rows)
    except (TypeError, ValueError):
        raise InputError(f"rows: expected two integers (first, last), found {rows!r}") from None
    if not 0 <= first < last <= count:
        raise InputError(f"rows: expected 0 <= first < last <= {count}, found {first} and {last}")
    return first, last
