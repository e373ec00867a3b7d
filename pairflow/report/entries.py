"""What each metric means: the entries of docs/metrics.md, which pages show behind a "?"."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape

_PACKAGE = Path(__file__).parents[1]
_HEADING = re.compile(r"^### (`\w+`(?:, `\w+`)*)$", re.MULTILINE)
_FACT = re.compile(r"^- (\w+): (.*)$", re.MULTILINE)
FACTS = ("Formula", "Unit", "Better", "Pitfalls", "Source")


class MetricEntry(NamedTuple):
    """The entry of one metric or of several: what it is, and the `FACTS` about it, as HTML."""

    names: tuple[str, ...]
    text: Markup
    facts: Mapping[str, Markup]


@cache
def read_entries() -> dict[str, MetricEntry]:
    """Metric -> its entry."""
    _, *parts = _HEADING.split(_read())
    entries: dict[str, MetricEntry] = {}
    for heading, rest in zip(parts[::2], parts[1::2], strict=True):
        names, (text, *paragraphs) = tuple(re.findall(r"\w+", heading)), rest.strip().split("\n\n")
        facts = dict(_FACT.findall(paragraphs[0]))
        entry = MetricEntry(names, _markup(text), {name: _markup(facts[name]) for name in FACTS})
        entries |= dict.fromkeys(names, entry)
    return entries


def name_entry(metric: str) -> str:
    """The first metric of the entry that a metric has; empty for a metric without one."""
    entry = read_entries().get(metric)
    return entry.names[0] if entry else ""


def list_entries(metrics: Iterable[str]) -> list[MetricEntry]:
    """The entries of some metrics, each once."""
    return [read_entries()[name] for name in dict.fromkeys(map(name_entry, metrics)) if name]


def _read() -> str:
    """The file in an installed package, which carries it with the workflow, or in a clone."""
    folder = _PACKAGE / "workflow"
    root = folder if folder.is_dir() else _PACKAGE.parent
    return (root / "docs" / "metrics.md").read_text(encoding="utf-8")


def _markup(markdown: str) -> Markup:
    """Code and emphasis of Markdown as HTML."""
    html = str(escape(" ".join(markdown.split())))
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html))
