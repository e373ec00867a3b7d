"""Sources of token rows, which are read, checked and split into training rows and held-out rows."""

from dataclasses import dataclass
from pathlib import Path

from pairflow.artifacts import read_rows
from pairflow.config.fields import RowLayout
from pairflow.data.download import PublishedFile
from pairflow.data.prepared import PreparedRows
from pairflow.data.source import RowFile
from pairflow.errors import InputError
from pairflow.kinds.tokens.settings import Tokens

MINIMUM = 10  # rows, of which at least one is held out


@dataclass(frozen=True)
class TokenFile(RowFile):
    """A user's file of token rows."""

    def read(self, settings: Tokens) -> PreparedRows:
        """Read and split the rows. Raises InputError as `read_rows` does, and for fewer rows than MINIMUM."""
        layout = settings.model_dump(include={*RowLayout.model_fields})
        rows = read_rows(self.path, settings.vocabulary_size, **layout)
        if len(rows) < MINIMUM:
            raise InputError(f"{self.path}: expected at least {MINIMUM} rows, found {len(rows)}")
        return PreparedRows.split(rows, settings.vocabulary_size, settings)


@dataclass(frozen=True)
class PublishedTokens(PublishedFile):
    """A published file of token rows."""

    def read(self, settings: Tokens) -> PreparedRows:
        return TokenFile(self.fetch()).read(settings)


_PUBLISHED: tuple[PublishedTokens, ...] = ()
DATA_SETS = {tokens.name: tokens for tokens in _PUBLISHED}


def source_of(settings: Tokens, folder: Path = Path()) -> TokenFile | PublishedTokens:
    """Return the source that the settings name; a user's relative path starts at `folder`."""
    return TokenFile(folder / settings.file) if settings.file else DATA_SETS[settings.source]
