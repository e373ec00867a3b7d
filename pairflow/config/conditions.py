"""What the samples of a conditional model are asked for, such as `logp=2.5` and `qed=high`."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pairflow.arguments import nearest
from pairflow.errors import InputError

SPREAD = "spread"  # in place of a class: targets all over the range, one after another


# What couplings take that meet sources and data within each class.
ONE_BY_CLASSES = "only a condition of one property, by classes, or none"


class Choice(NamedTuple):
    """What a property may be asked for: a class by name, and a number within `bounds` if there are any."""

    classes: tuple[str, ...]
    bounds: tuple[float, float] | None = None

    @property
    def kinds(self) -> str:
        """The kinds of target, as messages name them."""
        return "<number or class>" if self.bounds else "<class>"


def split_conditions(given: Any) -> Any:
    """The conditions in `logp=2.5,qed=high`, or in several such texts; other types stay as they are.

    A name may have commas and signs of equality in it, but not what is asked for.
    """
    if isinstance(given, str):
        *ends, rest = _pieces(given)
        return tuple(text.strip() for text in (*ends, rest) if text.strip())
    if isinstance(given, list | tuple) and all(isinstance(text, str) for text in given):
        return tuple(one for text in given for one in split_conditions(text))
    return () if given is None else given


def _pieces(text: str) -> Iterable[str]:
    """The text up to each comma that follows a sign of equality, and the rest."""
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
    """Property -> the class, the number or SPREAD that samples are to have; InputError, which begins with
    `where`, for a property that is not known or asked for twice, and for what it may not be asked for."""
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
