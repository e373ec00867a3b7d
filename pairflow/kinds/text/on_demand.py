"""Text for `sample --count` and `score`: samples are delivered in the order in which they are drawn."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from torch import Tensor

from pairflow.config import DemandSettings
from pairflow.data.delivery import Candidate, Lines, Rows, ScoredLines
from pairflow.data.tabular import is_table
from pairflow.errors import InputError
from pairflow.files import suffix_of
from pairflow.flow.given import OPEN, count_given, given_row, given_start
from pairflow.flow.samplers import FREE
from pairflow.kinds.text.data_sets import OwnText, join
from pairflow.kinds.text.prepare import Rejected
from pairflow.kinds.text.records import FASTA_SUFFIXES
from pairflow.kinds.text.settings import COLUMN
from pairflow.kinds.text.tokenisers import Tokeniser, load_tokeniser
from pairflow.training.model import Model


class TextDelivery(Lines):
    """Delivers the texts that a model samples; with the setting `unique` each text only once."""

    noun = "texts"

    def __init__(self, model: Model, settings: DemandSettings):
        super().__init__(settings.unique)
        self.settings, self.tokeniser = settings, load_tokeniser(model.vocabulary_file())
        self.given = given_text(settings, self.tokeniser, model.length)

    def decode(self, tokens: list[int]) -> str:
        return self.tokeniser.decode(tokens)

    def summarise(self, rows: Rows, seconds: float) -> str:
        summary = super().summarise(rows, seconds)
        if self.settings.prefix is not None and self.given is not None:
            start = self.tokeniser.decode(self.given[: count_given(self.given)].tolist())
            share = sum(row["text"].startswith(start) for row in rows) / len(rows)
            summary += f" ({share:.1%} of them begin with the prefix)"
        return summary


def given_text(settings: DemandSettings, tokeniser: Tokeniser, length: int) -> Tensor | None:
    """Encode the user's prefix or template as a row (N,), N = `length`, with FREE (-1) at open positions;
    None if there is neither. Raises InputError for unknown symbols, and if the row is too short."""
    start, option = given_start(settings)
    if start is None:
        return None
    tokens: list[int] = []
    for number, piece in enumerate(start.split(OPEN) if settings.template else [start]):
        try:
            encoded = tokeniser.encode_known(piece).tolist() if piece else []
        except InputError as error:
            raise InputError(f"{option}: {error}") from None
        tokens += [*([FREE] if number else []), *encoded]
    lead = [] if tokeniser.start is None else [tokeniser.start]
    end = 1 if tokeniser.lines or tokeniser.margins else 0
    return given_row(option, lead, tokens, length, room=length - len(lead) - end)


class ScoredText(ScoredLines):
    """Splits a file into rows to score: lines or pieces of N tokens, whichever the model's rows are."""

    def __init__(self, model: Model):
        self.tokeniser = load_tokeniser(model.vocabulary_file())
        super().__init__("text", self._encode_line, model.length, self.tokeniser.padding)

    def _encode_line(self, line: str) -> np.ndarray:
        return self.tokeniser.line(self.tokeniser.encode_known(line), self.length)

    def read(self, path: Path, column: str | None = None) -> Iterator[Candidate]:
        """Yield the rows to score: the lines or pieces of a text file, the records of a FASTA file, or the
        texts in the `column` of a table."""
        column = column or (COLUMN if is_table(path) else None)
        if not column and suffix_of(path) not in FASTA_SUFFIXES:
            yield from super().read(path)
            return
        rejected: list[Rejected] = []
        for content in OwnText(path, column=column).contents(rejected):
            for place, _, reason in rejected if column else ():
                raise InputError(f"{path}: {place} has {reason}")
            if self.tokeniser.lines and not isinstance(content, str):
                yield from self.encode_rows(record[:3] for record in content)
            else:
                yield from self.split(content if isinstance(content, str) else join(content))

    def split(self, text: str) -> Iterator[Candidate]:
        if (tokeniser := self.tokeniser).lines:
            yield from super().split(text)
            return
        width = self.length - tokeniser.margins
        tokens = tokeniser.encode_all([text])
        pieces = tokeniser.frame(tokens[: len(tokens) // width * width].reshape(-1, width))
        for number, row in enumerate(pieces, 1):
            unknown = tokeniser.unknown is not None and tokeniser.unknown in row
            reason = "unknown symbol" if unknown else ""
            yield Candidate(number, "", tokeniser.decode(row), None if unknown else row, reason)
