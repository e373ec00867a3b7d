"""Reads conditions: properties that samples of a conditional model should have, such as `logp=2.5`."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pairflow.arguments import nearest
from pairflow.errors import InputError

SPREAD = "spread"  # instead of a class or a number: targets from all over the range take turns


# For messages: what methods accept that assign noise rows to data rows within each class.
ONE_BY_CLASSES = "only a condition of one property, by classes, or none"


class Choice(NamedTuple):
    """The possible targets for a property: one of its `classes`, or a number within `bounds` unless None."""

    classes: tuple[str, ...]
    bounds: tuple[float, float] | None = None

    @property
    def kinds(self) -> str:
        """The kinds of target, as messages name them."""
        return "<number or class>" if self.bounds else "<class>"


def split_conditions(given: Any) -> Any:
    """Split a text such as `logp=2.5,qed=high`, or several such texts, into a tuple of conditions.

    None becomes (), and values of other types are returned unchanged. The name of a property may contain
    commas and equals signs; its target may not.
    """
    if isinstance(given, str):
        *ends, rest = _pieces(given)
        return tuple(text.strip() for text in (*ends, rest) if text.strip())
    if isinstance(given, list | tuple) and all(isinstance(text, str) for text in given):
        return tuple(one for text in given for one in split_conditions(text))
    return () if given is None else given


def _pieces(text: str) -> Iterable[str]:
    """Split a text at each comma that ends a condition `name=target`. Yields the parts."""
    start = ""
    for piece in text.split(","):
        start += ("," if start else "") + piece
        if "=" in piece:
            yield start
            start = ""
    yield start


def read_conditions(
    conditions: Iterable[str], known: Mapping[str, Choice], where: str = "condition"
) -> dict[str, str | float]:
    """Read conditions such as `logp=2.5`. Returns a dict from property to target: class, number or SPREAD.

    Raises InputError, which begins with `where`, if a property is not in `known` or occurs twice, or if its
    target is not possible.
    """
    asked: dict[str, str | float] = {}
    for condition in conditions:
        name, equals, target = condition.rpartition("=")
        if not equals:
            expected = " or ".join(f"{name}={choice.kinds}" for name, choice in known.items())
            raise InputError(f"{where}: expected {expected}, found '{condition}'")
        if name not in known:
            trained = " and ".join(known)
            hint = nearest(name, known)
            raise InputError(f"{where}: the model was trained for {trained}, not for '{name}'{hint}")
        if name in asked:
            raise InputError(f"{where}: {name} is asked for twice")
        asked[name] = _read_target(name, target, known[name], where)
    return asked


def _read_target(name: str, target: str, choice: Choice, where: str) -> str | float:
    if target in (*choice.classes, SPREAD):
        return target
    try:
        number = float(target)
    except ValueError:
        hint, classes = nearest(target, choice.classes), ", ".join(choice.classes)
        further = ", and numbers" if choice.bounds else ""
        raise InputError(
            f"{where}: unknown class '{target}' of {name}{hint}: known are {classes}{further}"
        ) from None
    if choice.bounds is None:
        classes = ", ".join(choice.classes)
        raise InputError(
            f"{where}: {name} was trained by classes ({classes}), not by numbers: expected one of these, "
            f"found {target}"
        )
    low, high = choice.bounds
    if not low <= number <= high:
        raise InputError(
            f"{where}: {name}={target} is outside the training molecules, which have {low:.4g} to {high:.4g}"
        )
    return number
