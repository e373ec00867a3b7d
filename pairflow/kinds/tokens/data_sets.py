"""Sources of token rows, which are read, checked and split into training rows and held-out rows."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairflow.artifacts import read_rows, read_words
from pairflow.data.classes import Classes
from pairflow.data.prepared import Labelled, PreparedRows
from pairflow.data.source import RowFile
from pairflow.data.split import held_out_rows
from pairflow.errors import InputError
from pairflow.kinds.tokens.settings import RowClasses, Tokens
from pairflow.settings.fields import RowLayout

MINIMUM = 10  # rows, of which at least one is held out


@dataclass(frozen=True)
class TokenFile(RowFile):
    """A user's file of token rows, and perhaps another one with held-out rows."""

    held_out: Path | None = None

    def read(self, settings: Tokens) -> PreparedRows:
        """Read the rows, and split them into training rows and held-out rows, with classes if the settings
        have a condition. Raises InputError for a file without rows of integers below K, for held-out rows
        of another length, and for fewer rows than MINIMUM."""
        layout = settings.model_dump(include={*RowLayout.model_fields})
        rows, validation_rows = read_rows(self.path, settings.vocabulary_size, **layout), None
        words = read_words(self.path, settings.condition.column) if settings.condition else []
        if settings.split_column:
            labels = read_words(self.path, settings.split_column)
            validation_rows = held_out_rows(labels, f"{self.path}: column {settings.split_column!r}")
        if self.held_out:
            others, first = read_rows(self.held_out, settings.vocabulary_size, **layout), len(rows)
            if others.shape[1] != rows.shape[1]:
                lengths = f"{rows.shape[1]} tokens, as {self.path} has, found {others.shape[1]}"
                raise InputError(f"{self.held_out}: expected rows of {lengths}")
            rows = np.concatenate([rows, others])
            words += read_words(self.held_out, settings.condition.column) if settings.condition else []
            validation_rows = [*range(first, len(rows))]
        if len(rows) < MINIMUM:
            raise InputError(f"{self.path}: expected at least {MINIMUM} rows, found {len(rows)}")
        labelled = label(words, settings.condition, self.path) if settings.condition else None
        return PreparedRows.split(rows, settings.vocabulary_size, settings, validation_rows, labelled)


def label(words: list[str], condition: RowClasses, path: Path) -> Labelled:
    """Return the class of each row, and what the classes mean as JSON. `words` (M) has the name of each
    row's class, empty for none; `condition` names all classes. Says on stderr how many rows have none.
    Raises InputError for an unknown name, with its row."""
    names, known = condition.classes, [*condition.classes, ""]
    for row, word in enumerate(words):
        if word not in known:
            expected = f"expected one of {', '.join(names)}, found {word!r:.60}"
            raise InputError(f"{path}: column {condition.column!r}: row {row}: {expected}")
    if absent := words.count(""):
        text = f"{absent:,} of {len(words):,} rows have no class in column {condition.column!r}"
        print(f"pairflow preprocess: note: {text}", file=sys.stderr)
    between = tuple(number + 0.5 for number in range(len(names) - 1))
    classes = Classes(property=condition.column, names=names, thresholds=between)
    return Labelled(
        np.array([known.index(word) for word in words], np.uint8), classes.model_dump(mode="json")
    )
