"""Text in CSV files: a spreadsheet runs `=cmd|...` as a formula, wherever the text came from."""

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")


def as_cell(value: Any) -> Any:
    """A value as CSV files hold it: text that a spreadsheet would run gets a ' in front of it."""
    runs = isinstance(value, str) and _FORMULA.match(value) and not _is_number(value)
    return f"'{value}" if runs else value


def from_cell(text: str) -> str:
    """The text of which `as_cell` made a cell."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
