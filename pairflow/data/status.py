"""Findings of `pairflow doctor`: is a data set or a program here, and if not, which command fixes it?"""

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    OK = "ok"
    OPTIONAL = "missing (optional)"
    ATTENTION = "needs attention"


@dataclass(frozen=True)
class Finding:
    """The condition of a requirement, what was found, and the command that fixes it, if any."""

    condition: Condition
    text: str
    remedy: str = ""

    @classmethod
    def ok(cls, text: str) -> "Finding":
        return cls(Condition.OK, text)

    @classmethod
    def optional(cls, text: str, remedy: str = "") -> "Finding":
        return cls(Condition.OPTIONAL, text, remedy)

    @classmethod
    def attention(cls, text: str, remedy: str = "") -> "Finding":
        return cls(Condition.ATTENTION, text, remedy)


def described(error: BaseException) -> str:
    """Return the type and the text of an exception, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
