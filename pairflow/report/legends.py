"""Names of methods and the lines that stand for them."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from pairflow.report import drawing
from pairflow.report.colours import Style, family, style

_IN_ROW = 6  # names


@dataclass(frozen=True)
class Legend:
    """Names and the lines that stand for them, in rows."""

    rows: list[list[tuple[Markup, str]]]

    def add(self, look: Style, name: str, key: str) -> None:
        """A last name with a look of its own; `key` sets its drawing apart on the page."""
        self.rows[-1].append((drawing.key(look, key), name))


def legend(names: Iterable[str], prefix: str) -> Legend:
    """A single row; of more names than go into one, a row for each base that is distilled."""
    names = list(names)
    families = [family(name) for name in names]
    rows: dict[str, list[tuple[Markup, str]]] = {}
    for i, name in enumerate(names):
        together = len(names) <= _IN_ROW or families.count(families[i]) == 1
        line = drawing.key(style(name), f"{prefix}-key{i}")
        rows.setdefault("" if together else families[i], []).append((line, name))
    return Legend(list(rows.values()))
