"""Names of methods and the lines that stand for them."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from pairflow.report import drawing
from pairflow.report.colours import Style, family, style

_IN_ROW = 6  # names that fit into a row


@dataclass(frozen=True)
class Legend:
    """Names and the lines that stand for them, in rows."""

    rows: list[list[tuple[Markup, str]]]

    def add(self, look: Style, name: str, key: str) -> None:
        """Append a name with a look of its own; `key` makes its drawing's ids unique on the page."""
        self.rows[-1].append((drawing.key(look, key), name))


def legend(names: Iterable[str], prefix: str) -> Legend:
    """A single row; if the names do not fit into one, a further row for each base that is distilled."""
    names = list(names)
    families = [family(name) for name in names]
    rows: dict[str, list[tuple[Markup, str]]] = {}
    for i, name in enumerate(names):
        together = len(names) <= _IN_ROW or families.count(families[i]) == 1
        line = drawing.key(style(name), f"{prefix}-key{i}")
        rows.setdefault("" if together else families[i], []).append((line, name))
    return Legend(list(rows.values()))
