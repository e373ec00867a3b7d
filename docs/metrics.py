"""Writes the reference parts of metrics.md again, from the metrics that the package lists.

Run `python docs/metrics.py` after a change of a `Metric`. A part stands between two comments, of which the
first names it, such as <!--molecules-->.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from pairflow.kinds.registry import SETTINGS
from pairflow.metrics.metric import Metric, list_entries
from pairflow.metrics.shared import CORRELATIONS, LIKELIHOODS, PAIRS, PATHS, SHARED

PAGE = Path(__file__).with_suffix(".md")
PARTS = {"paths": PATHS, "likelihoods": LIKELIHOODS, "pairs": PAIRS, "correlations": CORRELATIONS}
for settings in SETTINGS:
    PARTS[settings.kind] = {name: about for name, about in settings.metrics.items() if name not in SHARED}


def describe(metrics: Mapping[str, Metric]) -> str:
    """Write an entry for each description: a heading with the names of metrics, a paragraph, and facts."""
    entries = ""
    for names, about in list_entries(metrics):
        facts = "".join(f"- {name}: {text}\n" for name, text in about.facts.items())
        entries += f"\n### {', '.join(f'`{name}`' for name in names)}\n\n{about.description}\n\n{facts}"
    return f"{entries}\n"


def write(page: str) -> str:
    """Return the text of the page with its reference parts written again."""
    part = re.compile(r"(<!--(\w+)-->\n).*?(<!--end-->)", re.DOTALL)
    return part.sub(lambda found: found[1] + describe(PARTS[found[2]]) + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(write(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
