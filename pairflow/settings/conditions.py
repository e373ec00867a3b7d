"""Reads conditions: properties that samples of a conditional model should have, such as `qed=high`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pairflow.arguments import nearest
from pairflow.errors import InputError

SPREAD = "spread"  # instead of a class: all classes take turns


# For messages: what methods accept that assign noise rows to data rows within each class.
ONE_PROPERTY = "only a condition of one property, or none"


def split_conditions(given: object) -> Any:
    """Split a text such as `logp=low,qed=high`, or several such texts, into a tuple of conditions.

    None becomes (), and values of other types are returned unchanged. The name of a property may contain
    commas and equals signs; its target may not.
    """
    texts = [given] if isinstance(given, str) else given
    if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
        return tuple(piece.strip() for text in texts for piece in _pieces(text) if piece.strip())
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
    conditions: Iterable[str], known: Mapping[str, Sequence[str]], where: str = "condition"
) -> dict[str, str]:
    """Read conditions such as `qed=high`. Returns a dict from property to target, a class, or SPREAD for
    equal shares of all classes.

    `known` has the classes of each property. Raises InputError, which begins with `where`, if a property is
    not known or occurs twice, or if its target is not possible.
    """
    asked: dict[str, str] = {}
    for condition in conditions:
        name, equals, target = condition.rpartition("=")
        if not equals:
            expected = " or ".join(f"{name}=<class>" for name in known)
            raise InputError(f"{where}: expected {expected}, found '{condition}'")
        if name not in known:
            trained = " and ".join(known)
            hint = nearest(name, known)
            raise InputError(f"{where}: the model was trained for {trained}, not for '{name}'{hint}")
        if name in asked:
            raise InputError(f"{where}: {name} is asked for twice")
        if target not in (*known[name], SPREAD):
            hint, classes = nearest(target, known[name]), ", ".join(known[name])
            raise InputError(f"{where}: unknown class '{target}' of {name}{hint}: known are {classes}")
        asked[name] = target
    return asked
