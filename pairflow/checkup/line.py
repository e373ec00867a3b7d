"""One line of the check-up."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    OK = "ok"
    OPTIONAL = "missing (optional)"
    ATTENTION = "needs attention"


@dataclass(frozen=True)
class Line:
    """What was looked at, how it is, what was found, and the command that mends it where one does."""

    name: str
    state: State
    found: str
    remedy: str = ""


def guarded(name: str, look: Callable[[], Line]) -> Line:
    """The line that `look` gives; whatever it raises is a line, too."""
    try:
        return look()
    except Exception as error:
        return Line(name, State.ATTENTION, described(error))


def described(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
