"""The answer to "is it here, and what is to be done?", about a data set or anything else that is needed."""

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Condition(StrEnum):
    OK = "ok"
    OPTIONAL = "missing (optional)"
    ATTENTION = "needs attention"


@dataclass(frozen=True)
class Finding:
    """The condition of a requirement, what was found, and the command that fixes it where there is one."""

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
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def broken_copy(path: Path, problem: str) -> Finding:
    """A copy that the workflow would refuse; without it, the data are downloaded again."""
    text = problem if str(path) in problem else f"{path}: {problem}"
    return Finding.attention(text, f"rm -r {quoted(path)}")


def quoted(path: Path) -> str:
    return shlex.quote(str(path))
