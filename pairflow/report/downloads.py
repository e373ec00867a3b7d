"""Tables as files to download: CSV with every digit, LaTeX in the paper's layout."""

import base64
import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from pairflow.artifacts import as_cell

_MIME = {"tex": "application/x-tex", "csv": "text/csv"}
_LATEX_HEAD = "% Needs the package booktabs.\n"

_LATEX_ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
        **{"[": "{[}", "*": "{*}"},  # behind the \\ of the line before they would be its argument
        **{"×": r"$\times$", "±": r"$\pm$", "−": "$-$", "–": "--", "’": "'", '"': "''"},
        **dict.fromkeys("\t\n\r", " "),
    }
)


class Entry(NamedTuple):
    """A number as the page prints it; an empty `text` means that it is missing."""

    text: str
    spread: str = ""
    best: bool = False
    note: str = ""


@dataclass(frozen=True)
class Part:
    """A table as it is printed: rows of numbers and words under `head`; `align` is that of LaTeX."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    align: str = ""


@dataclass(frozen=True)
class File:
    """A file that a reader can save; its link says `kind`."""

    kind: str
    name: str
    text: str

    @property
    def uri(self) -> str:
        return data_uri(self.text, self.name)


@dataclass(frozen=True)
class Sheet:
    """One table of a page: LaTeX prints its parts, CSV its records, of which it has some."""

    name: str
    title: str
    parts: Sequence[Part]
    records: Sequence[Mapping[str, Any]]

    @property
    def files(self) -> list[File]:
        stem = re.sub(r"[^\w+-]+", "-", self.name).strip("-")
        return [
            File("CSV", f"{stem}.csv", as_csv(list(self.records[0]), self.records)),
            File("LaTeX", f"{stem}.tex", as_latex(self.parts)),
        ]


def as_latex(parts: Iterable[Part]) -> str:
    """Tables in the paper's layout."""
    tables = (
        latex_table(part.caption, part.head, [map(_latex_cell, row) for row in part.rows], part.align)
        for part in parts
    )
    return _LATEX_HEAD + "\n".join(tables)


def _latex_cell(entry: Entry | str) -> str:
    if isinstance(entry, str):
        return latex_escape(entry)
    text = latex_value(entry.text, entry.spread, entry.best)
    return f"{text} ({entry.note})" if entry.note else text


def as_csv(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Records under their columns; floats with all their digits, None and NaN empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: None if pd.isna(value) else as_cell(value) for name, value in record.items()})
    return buffer.getvalue()


def sort_keys(row: Iterable[Any]) -> str:
    """A row's values as JSON, for the script that sorts by them; missing and infinite ones are null."""
    return json.dumps([None if isinstance(key, float) and not math.isfinite(key) else key for key in row])


def data_uri(text: str, name: str) -> str:
    """A file as the address of a download."""
    kind = _MIME[name.rpartition(".")[2]]
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def latex_escape(text: str) -> str:
    """Text that LaTeX prints unchanged, on one line."""
    return text.translate(_LATEX_ESCAPED)


def latex_value(text: str, spread: str = "", bold: bool = False) -> str:
    """A printed number, such as `1,234.5`, with its deviation if there is one; an empty text is a dash."""
    if not text:
        return "--"
    text, spread = (part.replace(",", "{,}").replace("−", "-") for part in (text, spread))
    mean = rf"\mathbf{{{text}}}" if bold else text
    return f"${mean} \\pm {spread}$" if spread else f"${mean}$"


def latex_table(caption: str, head: Sequence[str], rows: Iterable[Iterable[str]], align: str = "") -> str:
    """A table environment: `caption` and `head` are text, `rows` LaTeX. Only the first column stands left."""
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_escape(caption)}.}}",
            rf"\begin{{tabular}}{{{align or 'l' + 'r' * (len(head) - 1)}}}",
            r"\toprule",
            rf"{' & '.join(map(latex_escape, head))} \\",
            r"\midrule",
            *(rf"{' & '.join(row)} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
