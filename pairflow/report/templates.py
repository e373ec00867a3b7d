"""Prepares what the templates of pages need: filters, scripts, and the meaning of each metric."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup, escape

from pairflow.report import downloads, words

_FOLDER = Path(__file__).parent
_HEADING = re.compile(r"^### (`\w+`(?:, `\w+`)*)$", re.MULTILINE)
_FACT = re.compile(r"^- (\w+): (.*)$", re.MULTILINE)
FACTS = ("Formula", "Unit", "Better", "Pitfalls", "Source")


def make_environment(*folders: Path) -> jinja2.Environment:
    """Make the environment for templates of this folder, of the kinds of data, and of `folders`.

    Undefined names in a template are errors. One environment serves one page: its filter `entry` turns a
    metric into the name of its entry in docs/metrics.md, or an empty text, and collects these entries in
    `asked` for the page's glossary."""
    asked: dict[str, MetricEntry] = {}

    def name_entry(metric: str) -> str:
        if entry := read_entries().get(metric):
            asked[entry.names[0]] = entry
        return entry.names[0] if entry else ""

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_FOLDER, _FOLDER.parent, *folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asked"] = asked
    environment.filters |= {
        "breakable": words.make_breakable,
        "count": words.format_count,
        "data_uri": downloads.data_uri,
        "list_counts": words.list_counts,
        "duration": words.format_duration,
        "entry": name_entry,
        "moment": words.format_moment,
        "p_value": words.format_p_value,
        "percent": words.format_percent,
        "sha256": sha256,
        "sort_keys": downloads.sort_keys,
    }
    return environment


@cache
def scripts() -> tuple[Markup, ...]:
    """Return the texts of the two scripts of a page, for its tables and for its charts."""
    return tuple(Markup((_FOLDER / name).read_text(encoding="utf-8")) for name in ("tables.js", "plots.js"))


def sha256(script: str) -> str:
    """Return the hash by which a page's Content-Security-Policy permits a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


class MetricEntry(NamedTuple):
    """An entry of docs/metrics.md on one or several metrics: a description and the `FACTS`, as HTML."""

    names: tuple[str, ...]
    text: Markup
    facts: Mapping[str, Markup]


@cache
def read_entries() -> dict[str, MetricEntry]:
    """Read docs/metrics.md of the installed package or of a clone. Returns {metric: entry}."""
    root = _FOLDER.parent / "workflow"
    root = root if root.is_dir() else _FOLDER.parent.parent
    _, *parts = _HEADING.split((root / "docs" / "metrics.md").read_text(encoding="utf-8"))
    entries: dict[str, MetricEntry] = {}
    for heading, rest in zip(parts[::2], parts[1::2], strict=True):
        names, (text, *paragraphs) = tuple(re.findall(r"\w+", heading)), rest.strip().split("\n\n")
        facts = dict(_FACT.findall(paragraphs[0]))
        entry = MetricEntry(names, _markup(text), {name: _markup(facts[name]) for name in FACTS})
        entries |= dict.fromkeys(names, entry)
    return entries


def _markup(markdown: str) -> Markup:
    """Turn Markdown with code and emphasis into HTML."""
    html = str(escape(" ".join(markdown.split())))
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html))
