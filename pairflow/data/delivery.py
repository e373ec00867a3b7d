"""Interfaces of a kind of data: how it delivers samples (`sample --count`), and reads rows for `score`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from pairflow.artifacts import as_cell
from pairflow.errors import InputError
from pairflow.files import read_text, split_lines, suffix_of

if TYPE_CHECKING:
    from torch import Tensor

Rows = list[dict[str, Any]]
MOST_BYTES = 2**32  # the largest file of rows to score, because it is held in memory as a whole


class Delivery(ABC):
    """Turns samples into what a user asked for: decodes, filters and describes them, and writes a file.

    Attributes:
        noun: what messages call samples, such as "molecules".
        given: symbols (N,) that sampling must not change, FREE elsewhere; or several rows of them (R, N),
            used in turn.
        seeds: data rows (S, N) to make variants of; None to start from noise.
        noises: the shares of the seeds' tokens to replace by noise, used in turn.
        inputs: the files that are read besides the model.
        note: what a user should know before samples are drawn, such as seeds that are left out.
        drawn: the number of samples since `begin`.
    """

    noun: str
    given: "Tensor | None" = None
    seeds: "Tensor | None" = None
    noises: Sequence[float] = ()
    inputs: tuple[Path, ...] = ()
    note = ""
    drawn = 0

    @abstractmethod
    def begin(self) -> None:
        """Forget the samples so far, and start again."""

    def note_origin(self, tokens: list[int], seed: int, noise: float) -> list[int]:
        """Note the number of the seed, and the noise, that a sample was made from; returns its `tokens`."""
        return tokens

    def prepare(self, out: Path) -> str:
        """Prepare what files in the format of `out` always show, such as properties on a page; returns a
        sentence for the user if some of that is missing."""
        return ""

    @abstractmethod
    def decode(self, tokens: list[int]) -> str:
        """Return the text of a sample, from its N tokens."""

    def decode_all(self, tokens: np.ndarray) -> list[str] | np.ndarray:
        """Return what token rows (M, N) stand for: M strings, or an array of them."""
        return [self.decode(row) for row in tokens.tolist()]

    @abstractmethod
    def keep(self, text: str) -> str | None:
        """Return the text to deliver for a sample with this `text`; None to drop the sample."""

    @abstractmethod
    def explain(self) -> str:
        """Return the end of the message "none of the last samples was ...": what they lacked, and advice."""

    @abstractmethod
    def writer(self, out: Path) -> Callable[[Path, Rows], None]:
        """Return a function of (path, rows) that writes rows in the format of the file `out`; InputError if
        samples cannot be written in it."""

    @abstractmethod
    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, object]]:
        """Return a function from a delivered text to the values of its row in the output table."""

    @abstractmethod
    def summarise(self, rows: Rows, seconds: float) -> str:
        """Return the message at the end: what was delivered, and from how many samples."""

    def warn(self) -> str:
        """Return a warning about the delivered samples; usually empty."""
        return ""


class Lines(Delivery):
    """Delivers samples as lines of text, in the order in which they are drawn; `unique` drops duplicates.

    A subclass defines how rows are spelled (`decode`) and which texts are delivered (`accepts`).
    """

    def __init__(self, unique: bool):
        self.unique = unique
        self.begin()

    def begin(self) -> None:
        self.drawn, self._seen = 0, set[str]()

    def accepts(self, text: str) -> bool:
        """Return whether a sample is delivered."""
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

    def describer(self, quiet: bool, threads: int | None) -> Callable[[str], Mapping[str, object]]:
        return lambda text: {"text": text}

    def summarise(self, rows: Rows, seconds: float) -> str:
        return self.noun + (f" from {self.drawn:,} samples" if self.drawn > len(rows) else "")


def _write_csv(path: Path, rows: Rows) -> None:
    pd.DataFrame(rows).map(as_cell).to_csv(path, index=False, lineterminator="\n")


def _write_lines(path: Path, rows: Rows) -> None:
    r"""Write each text as a line. Line breaks in it are written as \n, and backslashes twice."""
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
    """Reads the rows of a file, so that a model can score them.

    Attributes:
        noun: what messages call a row, such as "molecule".
        column: the column of its text in a table of scores.
        padding: the symbol that fills short rows, or None.
        notation: how the model writes rows, such as "smiles", if there are several ways.
        remark: what the summary of scores says about how rows were read.
    """

    notation = remark = ""
    noun: str
    column: str
    padding: int | None

    @abstractmethod
    def read(self, path: Path, column: str | None = None) -> Iterator[Candidate]:
        """Return the rows of a file; of a table, the texts in `column`, which is found if it is not given.

        Raises InputError if the file cannot be read, or if no column is found.
        """


class ScoredLines(Scored):
    """Reads the lines of a .txt file. `encode` turns a line into tokens, or refuses it with an InputError.

    Lines that do not have N = `length` tokens, as the model's rows do, cannot be scored.
    """

    column = "text"

    def __init__(
        self, noun: str, encode: Callable[[str], np.ndarray], length: int, padding: int | None = None
    ):
        self.noun, self.encode, self.length, self.padding = noun, encode, length, padding

    def read(self, path: Path, column: str | None = None) -> Iterator[Candidate]:
        if (suffix := suffix_of(path)) != ".txt":
            raise InputError(f"{path}: unknown suffix {suffix!r}; expected .txt with {self.noun}s")
        return self.split(read_text(path, MOST_BYTES))

    def split(self, text: str) -> Iterator[Candidate]:
        """Return the rows of a file's text."""
        return self.encode_rows((number, "", line) for number, line in enumerate(split_lines(text), 1))

    def encode_rows(self, rows: Iterable[tuple[int, str, str]]) -> Iterator[Candidate]:
        """Yield a `Candidate` for each of `rows`, (number, name, text): with its tokens, or with the reason
        why it has none."""
        for number, name, text in rows:
            try:
                tokens = self.encode(text)
                if len(tokens) != self.length:
                    raise InputError(f"expected {self.length} tokens, found {len(tokens)}")
            except InputError as reason:
                yield Candidate(number, name, text, None, str(reason))
                continue
            yield Candidate(number, name, text, tokens)
