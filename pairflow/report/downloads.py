"""Writes tables as files to download: CSV with every digit, and LaTeX in the paper's layout."""

import base64
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from pairflow.artifacts import as_cell

_MIME = {"tex": "application/x-tex", "csv": "text/csv"}
_LATEX_HEAD = "% Needs the package booktabs.\n"

_LATEX_ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
        **{"[": "{[}", "*": "{*}"},  # at the start of a line, LaTeX would read them as an argument of \\
        **{"×": r"$\times$", "±": r"$\pm$", "−": "$-$", "–": "--", "’": "'", '"': "''"},
        **dict.fromkeys("\t\n\r", " "),
    }
)


class Entry(NamedTuple):
    """A number as the page prints it, with its deviation (`spread`), and in bold if `best`. `text` is empty
    if the number is missing; `note` is a remark in parentheses."""

    text: str
    spread: str = ""
    best: bool = False
    note: str = ""


@dataclass(frozen=True)
class Part:
    """A printed table: rows of numbers and words under `head`."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]


class File(NamedTuple):
    """A file to download: its format, which is the text of the link, its name and its text."""

    kind: str
    name: str
    text: str


@dataclass(frozen=True)
class Sheet:
    """A table of a page to download, in files called `name`: `records` as CSV, and any `parts` as LaTeX."""

    name: str
    title: str
    parts: Sequence[Part]
    records: Sequence[Mapping[str, object]]

    @property
    def files(self) -> list[File]:
        stem = re.sub(r"[^\w+-]+", "-", self.name).strip("-")
        files = [File("CSV", f"{stem}.csv", as_csv(list(self.records[0]), self.records))]
        return [*files, File("LaTeX", f"{stem}.tex", as_latex(self.parts))] if self.parts else files


def as_latex(parts: Iterable[Part]) -> str:
    """Write tables as LaTeX in the paper's layout."""
    return _LATEX_HEAD + "\n".join(map(latex_table, parts))


def as_csv(columns: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """Write records as CSV with these columns: floats with all digits, None and NaN as empty cells."""
    cells = [[as_cell(record.get(name)) for name in columns] for record in records]
    return pd.DataFrame(cells, columns=columns, dtype=object).to_csv(index=False, lineterminator="\n")


def sort_keys(row: Iterable[object]) -> str:
    """Write a row's values as JSON for the script that sorts tables; missing and infinite ones are null."""
    return json.dumps([None if isinstance(key, float) and not math.isfinite(key) else key for key in row])


def data_uri(text: str, name: str) -> str:
    """Return a data URI with the text of the file `name`: the address of a download link."""
    kind = _MIME[name.rpartition(".")[2]]
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def latex_escape(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged, on one line."""
    return text.translate(_LATEX_ESCAPED)


def latex_cell(entry: Entry | str) -> str:
    """Write words, or a number such as `1,234.5` with any deviation, as LaTeX; a missing number is a dash."""
    if isinstance(entry, str):
        return latex_escape(entry)
    if not entry.text:
        return "--"
    text, spread = (part.replace(",", "{,}").replace("−", "-") for part in entry[:2])
    mean = rf"\mathbf{{{text}}}" if entry.best else text
    note = f" ({entry.note})" if entry.note else ""
    return f"${mean} \\pm {spread}${note}" if spread else f"${mean}${note}"


def latex_table(part: Part) -> str:
    """Write a LaTeX table; the first column is aligned left and all others right."""
    cells = [[*map(latex_cell, row)] for row in part.rows]
    table = pd.DataFrame(cells, columns=[*map(latex_escape, part.head)]).style.hide(axis="index")
    columns, caption = "l" + "r" * (len(part.head) - 1), f"{latex_escape(part.caption)}."
    return table.to_latex(column_format=columns, caption=caption, position_float="centering", hrules=True)
