"""What a kind of data says of the samples of one model: how they leave on demand, and what can be scored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from pairflow.artifacts import as_cell
from pairflow.errors import InputError
from pairflow.files import read_text

if TYPE_CHECKING:
    from torch import Tensor

Rows = list[dict[str, Any]]
MOST_BYTES = 2**32  # of a file whose rows are scored, which is held in memory as a whole


class Delivery(ABC):
    """How samples become what a user asked for: decoded, chosen, described and written.

    `noun` is what they are called, `given` are the symbols (N,) that sampling keeps, `seeds` the rows (S, N)
    that are varied in place of noise, if there are any, and `noises` the shares of them that are drawn again.
    `inputs` are the files that are read beside the model, and `drawn` counts the samples since `begin`.
    """

    noun: str
    given: "Tensor | None" = None
    seeds: "Tensor | None" = None
    noises: Sequence[float] = ()
    inputs: tuple[Path, ...] = ()
    drawn = 0

    @abstractmethod
    def begin(self) -> None:
        """Forget the samples so far."""

    def note_origin(self, tokens: list[int], seed: int, noise: float) -> list[int]:
        """The tokens of a sample, of which it is noted from which seed they come."""
        return tokens

    def prepare(self, out: Path) -> str:
        """Add what a file such as `out` holds without being asked for; a sentence on what is missing."""
        return ""

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


class Lines(Delivery):
    """Samples as lines of text, in the order in which they come; with `unique` each of them once.

    A kind says how its rows are spelled (`decode`), and which texts are worth a line (`accepts`).
    """

    def __init__(self, unique: bool):
        self.unique = unique
        self.begin()

    def begin(self) -> None:
        self.drawn, self._seen = 0, set[str]()

    def accepts(self, text: str) -> bool:
        """Whether a sample is delivered."""
        return True

    def keep(self, text: str) -> str | None:
        self.drawn += 1
        if text in self._seen or not self.accepts(text):
            return None
        if self.unique:
            self._seen.add(text)
        return text

    def explain(self) -> str:
        return "new: ask for fewer"

    def writer(self, out: Path) -> Callable[[Path, Rows], None]:
        if out.suffix not in _WRITERS:
            raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .txt or .csv for {self.noun}")
        return _WRITERS[out.suffix]

    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, Any]]:
        return lambda text: {"text": text}

    def summarise(self, rows: Rows, seconds: float) -> str:
        return self.noun + (f" from {self.drawn:,} samples" if self.drawn > len(rows) else "")


def _write_csv(path: Path, rows: Rows) -> None:
    pd.DataFrame(rows).map(as_cell).to_csv(path, index=False, lineterminator="\n")


def _write_lines(path: Path, rows: Rows) -> None:
    r"""A line for each text; line breaks in it are written as \n, and backslashes twice."""
    escapes = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
    path.write_text("".join(row["text"].translate(escapes) + "\n" for row in rows), encoding="utf-8")


_WRITERS = {".txt": _write_lines, ".csv": _write_csv}


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


class ScoredLines(Scored):
    """The lines of a .txt file, which `encode` turns into tokens (N,); InputError for a line that is none.

    N is the `length` of the model's rows; other lines cannot be scored.
    """

    column = "text"

    def __init__(
        self, noun: str, encode: Callable[[str], np.ndarray], length: int, padding: int | None = None
    ):
        self.noun, self.encode, self.length, self.padding = noun, encode, length, padding

    def read(self, path: Path, column: str) -> Iterator[Candidate]:
        if path.suffix != ".txt":
            raise InputError(f"{path}: unknown suffix {path.suffix!r}; expected .txt with {self.noun}s")
        return self.split(read_text(path, MOST_BYTES))

    def split(self, text: str) -> Iterator[Candidate]:
        """The rows of a text."""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                tokens = self.encode(line)
                if len(tokens) != self.length:
                    raise InputError(f"expected {self.length} tokens, found {len(tokens)}")
            except InputError as reason:
                yield Candidate(number, "", line, None, str(reason))
                continue
            yield Candidate(number, "", line, tokens)
