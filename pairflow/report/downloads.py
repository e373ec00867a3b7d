"""The page's tables as files: CSV with every digit, LaTeX in the paper's layout, Markdown."""

import base64
import csv
import html
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pairflow.report import latex
from pairflow.report.experiment.contents import REAL, Contents
from pairflow.report.tables import METRICS, Cell, Table

_MIME = {"tex": "application/x-tex", "csv": "text/csv", "md": "text/markdown"}
_ACTIVE = re.compile(r"([\\`*_\[\]|~$])")  # what Markdown may take for markup


class Entry(NamedTuple):
    """A number as the page prints it; an empty `text` is a missing one."""

    text: str
    spread: str = ""
    best: bool = False
    note: str = ""


@dataclass(frozen=True)
class Part:
    """A table as it is printed: under `head`, rows of numbers and words. Words stand right unless `align`."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    align: str = ""


@dataclass(frozen=True)
class File:
    """What a reader saves: `kind` is what the link to it says."""

    kind: str
    name: str
    text: str

    @property
    def uri(self) -> str:
        return data_uri(self.text, self.name)


@dataclass(frozen=True)
class Sheet:
    """One table of the page: LaTeX and Markdown print its parts, CSV its records, at least one."""

    name: str
    title: str
    parts: Sequence[Part]
    records: Sequence[Mapping[str, Any]]

    @property
    def files(self) -> list[File]:
        stem = re.sub(r"[^\w+-]+", "-", self.name).strip("-")
        return [
            File("CSV", f"{stem}.csv", as_csv(list(self.records[0]), self.records)),
            File("LaTeX", f"{stem}.tex", latex.HEAD + "\n".join(map(_latex, self.parts))),
            File("Markdown", f"{stem}.md", "\n".join(map(_markdown, self.parts))),
        ]


def results(contents: Contents, tables: Sequence[Table], scope: str, title: str) -> Sheet:
    """The tables of one evaluation that stand together; `scope` says what they are counted from."""
    [evaluation] = {table.evaluation for table in tables}
    group = METRICS[tables[0].metric].group or "quality"
    made = _made(contents, f"evaluation {evaluation}")
    return Sheet(
        name=f"{contents.experiment}-{evaluation}-{group}",
        title=title,
        parts=[_part(table, f"{table.label}; {made}; {scope}") for table in tables],
        records=[record for table in tables for record in _records(table, contents.modality == "images")],
    )


def correlation(contents: Contents, found: Mapping[str, Any], title: str) -> Sheet:
    """Total correlation per method, and its ceiling; `found` is what the page draws."""
    names = ("total_correlation", "total_correlation_se")
    values = {method: [each[name] for name in names] for method, each in found["rows"].items()}
    shown = [
        *([method, Entry(f"{mean:.2f}", f"{error:.2f}")] for method, (mean, error) in values.items()),
        ["ceiling: draws from the data", Entry(f"{found['ceiling']:.2f}")],
    ]
    over = f"mean ± standard error over {found['sources']:,} source states"
    caption = f"Conditional total correlation; {_made(contents)}; {over}"
    return Sheet(
        name=f"{contents.experiment}-correlation",
        title=title,
        parts=[Part(caption, ["Method", "Total correlation (bits)"], shown)],
        records=[
            {"method": method, **dict(zip(names, each, strict=True))}
            for method, each in {**values, REAL: [found["ceiling"], None]}.items()
        ],
    )


def listing(
    contents: Contents,
    name: str,
    title: str,
    columns: Mapping[str, Sequence[str]],
    records: Sequence[Mapping[str, Any]],
    align: str,
) -> Sheet:
    """A table that prints words: heading -> its column."""
    rows = list(zip(*columns.values(), strict=True))
    part = Part(f"{title}; {_made(contents)}", list(columns), rows, align)
    return Sheet(f"{contents.experiment}-{name}", title, [part], records)


def _made(contents: Contents, *beside: str) -> str:
    reduced = contents.settings["scale"] != "paper" or contents.data.get("partial")
    scale = "reduced scale" if reduced else "paper’s scale"
    return ", ".join([f"measured: {contents.experiment}", *beside, scale])


def _part(table: Table, caption: str) -> Part:
    rows = [[method, *(_entry(cell, table) for cell in cells)] for method, cells in table.rows.items()]
    if table.floor:
        rows.append(["real images", *[Entry(table.floor.text)] * len(table.columns)])
    marked = any(cell.best for cells in table.rows.values() for cell in cells)
    spread = "; ± is between seeds" if table.seeds > 1 else ""
    bold = f"; {METRICS[table.metric].best} mean in bold" if marked else ""
    return Part(f"{caption}{spread}{bold}", ["NFE", *map(str, table.columns)], rows)


def _entry(cell: Cell, table: Table) -> Entry:
    if not cell.count:
        return Entry("")
    return Entry(cell.text, cell.spread.removeprefix("± "), cell.best, table.lack(cell))


def _records(table: Table, images: bool) -> Iterable[dict[str, Any]]:
    """A record per method and NFE, named as in metrics.parquet; the last one is of real data."""
    known = {"evaluation": table.evaluation, "metric": table.metric}
    if images:
        known |= {"reference": table.reference, "extractor": table.extractor}
    for method, cells in table.rows.items():
        for nfe, cell in zip(table.columns, cells, strict=True):
            yield known | {"method": method, "nfe": nfe, **_numbers(cell, table.seeds)}
    if table.floor:
        yield known | {"method": REAL, "nfe": None, **_numbers(table.floor, table.seeds)}


def _numbers(cell: Cell, seeds: int) -> dict[str, float | int]:
    """Over several seeds `std` is between those, as on the page, `trial_std` between the trials of one."""
    trials = {"seeds": cell.seeds, "trial_std": cell.trials} if seeds > 1 else {}
    return {"mean": cell.mean, "std": cell.std, "count": cell.count, **trials}


def _latex(part: Part) -> str:
    rows = [[_latex_cell(entry) for entry in row] for row in part.rows]
    return latex.table(part.caption, part.head, rows, part.align)


def _latex_cell(entry: Entry | str) -> str:
    if isinstance(entry, str):
        return latex.escape(entry)
    shown = latex.value(entry.text, entry.spread, entry.best)
    return f"{shown} ({entry.note})" if entry.note else shown


def _markdown(part: Part) -> str:
    align = part.align or "l" + "r" * (len(part.head) - 1)
    rule = [":--" if side == "l" else "--:" for side in align]
    rows = [map(_escape, part.head), rule, *(map(_markdown_cell, row) for row in part.rows)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"{_escape(part.caption)}.", "", *lines, ""])


def _markdown_cell(entry: Entry | str) -> str:
    if isinstance(entry, str):
        return _escape(entry)
    text = f"**{entry.text}**" if entry.best else entry.text or "–"
    return text + (f" ± {entry.spread}" if entry.spread else "") + (f" ({entry.note})" if entry.note else "")


def _escape(text: str) -> str:
    """Text that Markdown prints as it stands, on one line."""
    return _ACTIVE.sub(r"\\\1", html.escape(" ".join(text.splitlines()), quote=False))


def as_csv(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Records under their columns; floats with all their digits, None and NaN empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _exact(value) for name, value in record.items()} for record in records)
    return buffer.getvalue()


def _exact(value: Any) -> Any:
    """A plain float, which prints with all its digits, or None for NaN; anything else as it is."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else float(value)


def sort_keys(row: Iterable[Any]) -> str:
    """A row's values as JSON, for the script that sorts by them; null is one that is missing or infinite."""
    return json.dumps([None if isinstance(key, float) and not math.isfinite(key) else key for key in row])


def data_uri(text: str, name: str) -> str:
    """A file as the address of a download."""
    kind = _MIME[name.rpartition(".")[2]]
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
