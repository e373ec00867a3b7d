"""Sources of token rows, which are read, checked and split into training rows and held-out rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairflow.artifacts import read_rows, read_words
from pairflow.data.prepared import PreparedRows
from pairflow.data.source import PublishedFile, RowFile
from pairflow.data.split import held_out_rows
from pairflow.errors import InputError
from pairflow.kinds.tokens.settings import Tokens
from pairflow.settings.fields import RowLayout

MINIMUM = 10  # rows, of which at least one is held out


@dataclass(frozen=True)
class TokenFile(RowFile):
    """A user's file of token rows, and perhaps another with those that are held out."""

    held_out: Path | None = None

    def read(self, settings: Tokens) -> PreparedRows:
        """Read and split the rows. Raises InputError as `read_rows` does, and for fewer rows than MINIMUM."""
        layout = settings.model_dump(include={*RowLayout.model_fields})
        rows, validation_rows = read_rows(self.path, settings.vocabulary_size, **layout), None
        if settings.split_column:
            labels = read_words(self.path, settings.split_column)
            validation_rows = held_out_rows(labels, f"{self.path}: column {settings.split_column!r}")
        if self.held_out:
            others, first = read_rows(self.held_out, settings.vocabulary_size, **layout), len(rows)
            if others.shape[1] != rows.shape[1]:
                lengths = f"{rows.shape[1]} tokens, as {self.path} has, found {others.shape[1]}"
                raise InputError(f"{self.held_out}: expected rows of {lengths}")
            rows = np.concatenate([rows, others])
            validation_rows = [*range(first, len(rows))]
        if len(rows) < MINIMUM:
            raise InputError(f"{self.path}: expected at least {MINIMUM} rows, found {len(rows)}")
        return PreparedRows.split(rows, settings.vocabulary_size, settings, validation_rows)


@dataclass(frozen=True)
class PublishedTokens(PublishedFile):
    """A published file of token rows."""

    def read(self, settings: Tokens) -> PreparedRows:
        return TokenFile(self.fetch()).read(settings)


_PUBLISHED: tuple[PublishedTokens, ...] = ()
DATA_SETS = {tokens.name: tokens for tokens in _PUBLISHED}


def source_of(settings: Tokens, folder: Path = Path()) -> TokenFile | PublishedTokens:
    """Return the source that the settings name; a user's relative path starts at `folder`."""
    if not settings.file:
        return DATA_SETS[settings.source]
    return TokenFile(folder / settings.file, folder / settings.held_out if settings.held_out else None)
