"""Measures of text, on rows of tokens (docs/metrics.md, "Text").

Rows are integers (B, N); a negative number stands where a row has no token (`ngrams.mark_padding`).
"""

from pathlib import Path
from typing import NamedTuple


class TextFiles(NamedTuple):
    """The files of a text's token rows, and of its tokeniser."""

    tokens: Path
    validation: Path
    judge: Path
    vocabulary: Path
