"""Measures of text, on rows of tokens (docs/metrics.md, "Text").

Rows are integers (B, N); a negative number stands where a row has no token (`ngrams.mark_padding`).
"""

from pathlib import Path
from typing import NamedTuple


class TextFiles(NamedTuple):
    """The files of a text's token rows, of its tokeniser, and of the second judge, if there is one."""

    tokens: Path
    validation: Path
    judge: Path
    vocabulary: Path
    judge_weights: Path | None = None
