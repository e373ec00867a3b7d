"""What a kind of data says of the samples of one model: how they leave on demand, and what can be scored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Rows = list[dict[str, Any]]


class Delivery(ABC):
    """How samples become what a user asked for: decoded, chosen, described and written.

    `noun` is what they are called, `given` are the symbols (N,) that sampling keeps, `inputs` the files that
    are read beside the model, and `drawn` counts the samples since `begin`.
    """

    noun: str
    given: "Tensor | None" = None
    inputs: tuple[Path, ...] = ()
    drawn = 0

    @abstractmethod
    def begin(self) -> None:
        """Forget the samples so far."""

    @abstractmethod
    def decode(self, tokens: list[int]) -> str:
        """The text of a sample."""

    @abstractmethod
    def keep(self, text: str) -> str | None:
        """What is delivered of a sample; None if it is dropped."""

    @abstractmethod
    def explain(self) -> str:
        """Why nothing is kept any more, and advice, after the words "none of the last samples was"."""

    @abstractmethod
    def writer(self, out: Path) -> Callable[[Path, Rows], None]:
        """What writes rows in the format of `out`; InputError if there is none, or it cannot hold them."""

    @abstractmethod
    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, Any]]:
        """What gives the columns of a sample that is delivered, beside its name."""

    @abstractmethod
    def summarise(self, rows: Rows, seconds: float) -> str:
        """What was delivered, of how many samples."""

    def warn(self) -> str:
        """A sentence about what was delivered that a user must know; mostly there is none."""
        return ""


class Candidate(NamedTuple):
    """A row of a file: its number there, its name, its text, and its tokens (N,) or why it has none."""

    number: int
    name: str
    text: str
    tokens: np.ndarray | None
    reason: str = ""


class Scored(ABC):
    """How a file becomes rows that a model can score.

    `noun` is what one is called, `column` the one of its text in a table of scores, and `padding` the symbol
    that fills rows up.
    """

    noun: str
    column: str
    padding: int | None

    @abstractmethod
    def read(self, path: Path, column: str) -> Iterator[Candidate]:
        """The rows of a file, by a column if it is a table; InputError if it cannot be read."""
