"""JSON files that somebody else may have written: an object, not too large and not too deep."""

import json
from pathlib import Path
from typing import Any

from pairflow.files import require_regular

MOST_BYTES = 2**26  # the vocabulary of BERT takes less than a hundredth
DEEPEST = 64  # what we write is not a tenth as deep


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; OSError if it cannot be read.

    Raises ValueError if it is no such object, or one of more than MOST_BYTES, before memory is taken for it,
    or deeper than DEEPEST levels, which would stop whoever writes it again.
    """
    size = path.stat().st_size
    require_regular(path)
    if size > MOST_BYTES:
        raise ValueError(f"{size / 2**20:,.0f} MiB are more than {MOST_BYTES / 2**20:.0f}")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(facts, dict):
        raise ValueError("no JSON object")
    level: list[Any] = [facts]
    for _ in range(DEEPEST):
        level = [value for each in level for value in _members(each)]
    if level:
        raise ValueError("nested too deeply")
    return facts


def _members(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
