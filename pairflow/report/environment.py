"""The Jinja environment of all pages: it escapes everything, and its filters write numbers as words do."""

from pathlib import Path

import jinja2

from pairflow.report import charts, downloads, entries, words

_FOLDER = Path(__file__).parent


def make_environment(*folders: Path) -> jinja2.Environment:
    """Templates below this folder, those of kinds of data below that of the package, and those in `folders`.

    Every name that they do not get is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_FOLDER, _FOLDER.parent, *folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "breakable": words.make_breakable,
        "count": words.format_count,
        "data_uri": downloads.data_uri,
        "duration": words.format_duration,
        "embedded": charts.embed,
        "entry": entries.name_entry,
        "moment": words.format_moment,
        "p_value": words.format_p_value,
        "percent": words.format_percent,
        "ratio": words.format_ratio,
        "sort_keys": downloads.sort_keys,
    }
    return environment
