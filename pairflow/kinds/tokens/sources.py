"""Token rows of a user's own: read, checked and split into rows for training and rows that are held out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import digest, read_rows, token_column, token_dtype
from pairflow.data.prepared import PreparedRows, contract, write_rows
from pairflow.data.source import OwnPath
from pairflow.data.split import split_rows
from pairflow.errors import InputError
from pairflow.kinds.tokens.settings import Tokens

MINIMUM = 10  # rows, of which one at least is held out


@dataclass(frozen=True)
class TokenFile(OwnPath):
    """A user's own file of token rows."""

    def read(self, settings: Tokens) -> PreparedRows:
        """Read and split the rows; InputError as `read_rows`, and where there are too few of them."""
        rows = read_rows(self.path, settings.vocabulary_size)
        if len(rows) < MINIMUM:
            raise InputError(f"{self.path}: expected at least {MINIMUM} rows, found {len(rows)}")
        options = settings.model_dump(include={"validation_fraction", "split_seed", "training_rows"})
        split = split_rows(range(len(rows)), validation_rows=None, **options)
        rows = rows.astype(token_dtype(settings.vocabulary_size), copy=False)
        symbols = settings.vocabulary_size
        facts = contract(kind="tokens", length=rows.shape[1], symbols=symbols)
        return PreparedRows(rows[split == "train"], rows[split == "validation"], facts, symbols)


def source_of(settings: Tokens, folder: Path = Path()) -> TokenFile:
    """The source that the settings name; a relative path of an own file is one below `folder`."""
    return TokenFile(folder / settings.file)


def store(settings: Tokens, files: Mapping[str, Path]) -> None:
    """Write the rows, checked and split."""
    source, symbols = source_of(settings), settings.vocabulary_size
    rows = source.read(settings)

    def make_table(split: str) -> pa.Table:
        return pa.table({"tokens": token_column(getattr(rows, split), symbols)})

    inputs = {"source": digest(source.path)}
    write_rows(files, settings, rows, make_table, inputs, kind="tokens", vocabulary_size=symbols)
