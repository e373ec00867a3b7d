"""Token rows of a user's own: read, checked and split into rows for training and rows that are held out."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairflow.artifacts import read_rows, token_dtype
from pairflow.config import DataSettings
from pairflow.data.source import DatasetSize, DataSource, quoted
from pairflow.data.split import split_rows
from pairflow.data.status import Finding
from pairflow.errors import InputError
from pairflow.kinds.tokens.settings import Tokens

MINIMUM = 10  # rows, of which one at least is held out


def contract(length: int, vocabulary_size: int) -> str:
    """The vocabulary.json of token rows: N and K, on which models and token rows must agree."""
    facts = {"kind": "tokens", "length": int(length), "symbols": int(vocabulary_size)}
    return json.dumps(facts, separators=(",", ":"))


@dataclass(frozen=True)
class PreparedTokens:
    """Rows for training (M, N) and held-out rows (V, N) of K symbols, in the order of the file."""

    train: np.ndarray
    validation: np.ndarray
    vocabulary_size: int

    @property
    def contract(self) -> str:
        return contract(self.train.shape[1], self.vocabulary_size)

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.contract.encode()).hexdigest()


@dataclass(frozen=True)
class TokenFile(DataSource):
    """A user's own file of token rows."""

    path: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.path.name

    def read(self, settings: Tokens) -> PreparedTokens:
        """Read and split the rows; InputError as `read_rows`, and where there are too few of them."""
        rows = read_rows(self.path, settings.vocabulary_size)
        if len(rows) < MINIMUM:
            raise InputError(f"{self.path}: expected at least {MINIMUM} rows, found {len(rows)}")
        options = settings.model_dump(include={"validation_fraction", "split_seed", "training_rows"})
        split = split_rows(range(len(rows)), validation_rows=None, **options)
        rows = rows.astype(token_dtype(settings.vocabulary_size), copy=False)
        return PreparedTokens(rows[split == "train"], rows[split == "validation"], settings.vocabulary_size)

    def measure(self, settings: DataSettings, progress: bool = True) -> DatasetSize:
        assert isinstance(settings, Tokens)
        prepared = self.read(settings)
        (rows, length), held_out = prepared.train.shape, len(prepared.validation)
        return DatasetSize(rows, held_out, settings.vocabulary_size, length)

    def status(self, offline: bool = False, torchvision: bool = True) -> Finding:
        if self.path.is_file():
            return Finding.ok(str(self.path))
        return Finding.attention(f"{self.path}: no such file", f"ls {quoted(self.path.parent)}")


def source_of(settings: Tokens, folder: Path = Path()) -> TokenFile:
    """The source that the settings name; a relative path of an own file is one below `folder`."""
    return TokenFile(folder / settings.file)
