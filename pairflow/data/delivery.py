"""How a kind of data delivers the samples of a model on demand, and how it reads rows to be scored."""

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
    """How samples become what a user asked for: decoded, filtered, described and written.

    `noun` names samples in messages, and `given` are symbols that sampling must not change, (N,) or (R, N) of
    rows that take turns. `seeds` are rows (S, N) to vary instead of noise, if any, and `noises` the shares of
    their tokens to draw again. `inputs` are the files that are read besides the model, and `drawn` counts the
    samples since `begin`.
    """

    noun: str
    given: "Tensor | None" = None
    seeds: "Tensor | None" = None
    noises: Sequence[float] = ()
    inputs: tuple[Path, ...] = ()
    drawn = 0

    @abstractmethod
    def begin(self) -> None:
        """Start over, without the samples so far."""

    def note_origin(self, tokens: list[int], seed: int, noise: float) -> list[int]:
        """Note the seed and the noise that a sample comes from; returns its tokens."""
        return tokens

    def prepare(self, out: Path) -> str:
        """Add what a file such as `out` holds without being asked for; a sentence on what is missing."""
        return ""

    @abstractmethod
    def decode(self, tokens: list[int]) -> str:
        """The text of a sample."""

    @abstractmethod
    def keep(self, text: str) -> str | None:
        """The text to deliver for a sample; None to drop it."""

    @abstractmethod
    def explain(self) -> str:
        """The end of the message "none of the last samples was ...": the reason, and advice."""

    @abstractmethod
    def writer(self, out: Path) -> Callable[[Path, Rows], None]:
        """The function that writes rows in the format of `out`; InputError if no format fits."""

    @abstractmethod
    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, Any]]:
        """The function from a delivered text to its columns in a table, which also has its name."""

    @abstractmethod
    def summarise(self, rows: Rows, seconds: float) -> str:
        """The message at the end: what was delivered, out of how many samples."""

    def warn(self) -> str:
        """A warning about the delivered samples; usually empty."""
        return ""


class Lines(Delivery):
    """Samples as lines of text, in the order in which they are drawn; with `unique` without duplicates.

    A kind defines how its rows are spelled (`decode`) and which texts are delivered (`accepts`).
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
    """A row of a file: its number, name and text, and its tokens (N,) or the reason why it has none."""

    number: int
    name: str
    text: str
    tokens: np.ndarray | None
    reason: str = ""


class Scored(ABC):
    """How a file becomes rows that a model can score.

    `noun` names a row in messages, `column` is the column of its text in a table of scores, `padding` the
    symbol that fills short rows, and `notation` how a model writes rows, if there are several ways.
    """

    notation = ""
    noun: str
    column: str
    padding: int | None

    @abstractmethod
    def read(self, path: Path, column: str | None = None) -> Iterator[Candidate]:
        """The rows of a file, by a column if it is a table; InputError if it cannot be read, or if no column
        is given and none is found."""


class ScoredLines(Scored):
    """The lines of a .txt file, which `encode` turns into tokens (N,) or refuses with an InputError.

    N is the `length` of the model's rows; lines of another length cannot be scored.
    """

    column = "text"

    def __init__(
        self, noun: str, encode: Callable[[str], np.ndarray], length: int, padding: int | None = None
    ):
        self.noun, self.encode, self.length, self.padding = noun, encode, length, padding

    def read(self, path: Path, column: str | None = None) -> Iterator[Candidate]:
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
