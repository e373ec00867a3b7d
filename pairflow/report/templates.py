"""Prepares what the templates of pages need: filters, scripts, and the meaning of each metric."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from pairflow.metrics.metric import Metric, list_entries
from pairflow.metrics.shared import SHARED
from pairflow.report import downloads, words

_FOLDER = Path(__file__).parent


def make_environment(*folders: Path, metrics: Mapping[str, Metric] = {}) -> jinja2.Environment:
    """Make the environment for templates of this folder, of the kinds of data, and of `folders`.

    Undefined names in a template are errors. One environment serves one page. The page's glossary has entries
    for `metrics` and for metrics that belong to no kind of data (`SHARED`). The filter `entry` returns the
    name of a metric's entry, empty if the metric has no description, and collects these entries in the
    templates' variable `asked`.
    """
    entries = {name: entry for entry in list_entries({**SHARED, **metrics}) for name in entry[0]}
    asked: dict[str, tuple[list[str], Metric]] = {}

    def name_entry(metric: str) -> str:
        if metric not in entries:
            return ""
        first = entries[metric][0][0]
        asked[first] = entries[metric]
        return first

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
        "markup": _markup,
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


def _markup(markdown: str) -> Markup:
    """Turn Markdown with code and emphasis into HTML; of links the text stays."""
    html = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", str(escape(markdown)))
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html))
