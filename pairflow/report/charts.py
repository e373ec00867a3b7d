"""A chart as data, which two writers draw: `drawing.draw` for the page's SVG, `embed` for its script."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from pairflow.report.colours import Style

_WIDTH = 2  # of a line, in CSS pixels
_DASHES = {"-": (), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1, 1.6), ":": (1, 1.65)}  # matplotlib's, in widths
_SYMBOLS = {
    **{"": "", "o": "circle", "s": "square", "D": "diamond", "d": "diamond-tall", "*": "star"},
    **{"^": "triangle-up", "v": "triangle-down", "<": "triangle-left", ">": "triangle-right"},
    **{"p": "pentagon", "h": "hexagon", "8": "octagon", "P": "cross"},
}


@dataclass(frozen=True)
class Axis:
    """How an axis looks at first: logarithmic or not, its (low, high) limits, its (value, text) ticks.

    `zero`: it begins at 0. Limits that are None and ticks that are empty follow from the data.
    """

    label: str
    log: bool = False
    limits: tuple[float, float] | None = None
    ticks: list[tuple[int, str]] = field(default_factory=list)
    zero: bool = False


@dataclass(frozen=True)
class PlotLine:
    """Points in their order, with their errors if they have any, and the lines of text that each one shows.

    Values that are missing are NaN. At most `markers` markers are drawn (0: all).
    """

    name: str
    look: Style
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    texts: Sequence[Sequence[str]] = ()
    error: Sequence[float] = ()
    markers: int = 0


@dataclass(frozen=True)
class Chart:
    """Lines on two axes; `alt` stands in for them, `floor` is a horizontal line, `tall` gives many room.

    `whole` and `reverse` are those of the x axis: only whole numbers have ticks, it runs from right to left.
    `named`: the names of the lines stand at their ends.
    """

    title: str
    x: Axis
    y: Axis
    lines: list[PlotLine]
    alt: str
    floor: PlotLine | None = None
    tall: bool = False
    whole: bool = False
    reverse: bool = False
    named: bool = False


def embed(chart: Chart) -> Markup:
    """JSON that may stand inside a script element: it has no `<`, `>`, `&` or `'`.

    Missing values are null. `colour` is a name of the style sheet, `symbol` and `dash` are Plotly's (an empty
    symbol: no markers).
    """
    lines = [*chart.lines, *filter(None, [chart.floor])]
    axes = {"x": asdict(chart.x), "y": asdict(chart.y)}
    for axis in axes.values():
        axis["limits"] = axis["limits"] and _numbers(axis["limits"])
    described = [_describe(line) for line in lines]
    data = {"title": chart.title, **axes, "lines": described, "named": chart.named}
    return htmlsafe_json_dumps(data, allow_nan=False, separators=(",", ":"))


def _describe(line: PlotLine) -> dict[str, Any]:
    look = line.look
    lengths = _DASHES[look.line] if isinstance(look.line, str) else look.line[1]
    return {
        "name": line.name,
        "colour": look.colour,
        "symbol": _SYMBOLS[look.marker],
        "dash": ",".join(f"{_WIDTH * length:g}px" for length in lengths) or "solid",
        "hollow": look.hollow,
        **{name: _numbers(getattr(line, name)) for name in ("x", "y", "error")},
        "texts": line.texts,
        "markers": line.markers,
    }


def _numbers(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Values with seven digits, which is more than a screen shows; None where they are not finite."""
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in values]
