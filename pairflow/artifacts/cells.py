"""Makes text safe in CSV files: a spreadsheet would run text such as `=cmd|...` as a formula."""

import re

_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")


def as_cell(value: object) -> object:
    """Return a value for a CSV file: text that a spreadsheet would run gets a ' in front of it."""
    runs = isinstance(value, str) and _FORMULA.match(value) and not _is_number(value)
    return f"'{value}" if runs else value


def from_cell(text: str) -> str:
    """Return the text from which `as_cell` made this text."""
    return text[1:] if text.startswith("'") and as_cell(text[1:]) == text else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
