"""Text on demand: samples as text, in the order in which they come; and text to score."""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from pairflow.config import DemandSettings
from pairflow.data.delivery import Candidate, Lines, Rows, Scored
from pairflow.errors import InputError
from pairflow.files import read_text
from pairflow.flow.given import OPEN, count_given, given_row, given_start
from pairflow.flow.samplers import FREE
from pairflow.kinds.text.data_sets import MOST_BYTES
from pairflow.kinds.text.tokenisers import Tokeniser, load_tokeniser
from pairflow.training.model import Model


class TextDelivery(Lines):
    """Texts of a model; with `unique` each of them once."""

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
    """The symbols (N,) of a row of text, FREE where it is open; None without a prefix or template. InputError
    for what the tokeniser lacks, and if the row is too short."""
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
    after = 1 if tokeniser.lines or tokeniser.margins else 0  # the end symbol
    return given_row(option, lead, tokens, length, room=length - len(lead) - after)


class ScoredText(Scored):
    """The lines of a file, or pieces of N tokens of its text, whichever the model's rows are."""

    noun = column = "text"

    def __init__(self, model: Model):
        self.tokeniser, self.length = load_tokeniser(model.vocabulary_file()), model.length
        self.padding = self.tokeniser.padding

    def read(self, path: Path, column: str) -> Iterator[Candidate]:
        if path.suffix != ".txt":
            raise InputError(f"{path}: unknown suffix {path.suffix!r}; expected .txt for a model of text")
        text = read_text(path, MOST_BYTES)
        return self._lines(text) if self.tokeniser.lines else self._pieces(text)

    def _lines(self, text: str) -> Iterator[Candidate]:
        tokeniser = self.tokeniser
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row = tokeniser.line(tokeniser.encode_known(line), self.length)
            except InputError as reason:
                yield Candidate(number, "", line, None, str(reason))
                continue
            yield Candidate(number, "", line, row)

    def _pieces(self, text: str) -> Iterator[Candidate]:
        tokeniser = self.tokeniser
        width = self.length - tokeniser.margins
        tokens = tokeniser.encode_all([text])
        pieces = tokeniser.frame(tokens[: len(tokens) // width * width].reshape(-1, width))
        for number, row in enumerate(pieces, 1):
            unknown = tokeniser.unknown is not None and tokeniser.unknown in row
            reason = "unknown symbol" if unknown else ""
            yield Candidate(number, "", tokeniser.decode(row), None if unknown else row, reason)
