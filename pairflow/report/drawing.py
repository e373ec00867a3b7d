"""Draws charts and legends in one style with matplotlib, as inline SVG with the same bytes every time."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from pairflow.report.colours import HEX, Fill, Style, contrast, style, themed
from pairflow.report.words import shorten

WIDTH = 3.35  # inches: a column of a paper; the page scales it
SIZE = (WIDTH, 2.37)
TALL = (WIDTH, 3.19)  # for many methods
LOW = (WIDTH, 1.8)
FEW = 6  # more methods need a taller chart
NAME = 24  # most characters of a name in a drawing
_KEY = (0.46, 0.13)
_POINTS = 72  # to the inch: the unit of an SVG
_LEADING = 0.125  # inches between the names at the ends of lines
_PLOTTED = 0.8  # about this share of a chart's height is above its horizontal axis
_POINTER = {"arrowstyle": "-", "lw": 0.6, "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)}
_SPELT = 12  # the text alternative has all points of a line up to this length, else only the last one
RC: dict[str, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pairflow",  # otherwise ids are random, and so are the bytes
    "text.parse_math": False,
    "font.family": "DejaVu Sans",  # comes with matplotlib; the page has its own
    "font.size": 7.75,
    "text.color": HEX["ink"],
    "axes.edgecolor": HEX["muted"],
    "axes.labelcolor": HEX["ink"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": HEX["rule"],
    "grid.linewidth": 0.6,
    "xtick.color": HEX["muted"],
    "ytick.color": HEX["muted"],
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.5,
}
Legend = list[tuple[Markup, str]]  # a piece of line or area, and the name that it stands for


@dataclass(frozen=True)
class Line:
    """A line of a chart: its points in order, any errors, and the texts that each point shows if pointed at.

    Missing values are NaN. About `markers` of the points have a marker (0: all).
    """

    name: str
    look: Style
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    texts: Sequence[Sequence[str]] = ()
    error: Sequence[float] = ()
    markers: int = 0

    @property
    def known(self) -> list[int]:
        """The indices of the points that have values."""
        return np.flatnonzero(np.isfinite(self.y)).tolist()


def make_lines(
    rows: pd.DataFrame,
    x: str,
    y: str,
    write: Callable[[Any], Sequence[str]],
    look: Callable[[str], Style] | None = None,
) -> list[Line]:
    """Make a line for each method in `rows`, from the columns named `x` and `y`.

    `write` makes the texts of a point from its row, a named tuple. `look` gives a method's style (default:
    `contrast`).
    """
    look = look or contrast(rows.method)
    return [
        Line(method, look(method), part[x].tolist(), part[y].tolist(), [*map(write, part.itertuples())])
        for method, part in rows.groupby("method", sort=False)
    ]


@dataclass(frozen=True)
class Picture:
    """An SVG element for the page, its text alternative, and the matplotlib figure that it was made from.

    `points` is JSON for the page's script: the positions and texts of the points of each line. If `named`,
    the names of the lines are in the drawing, so that it needs no legend.
    """

    name: str
    svg: Markup
    alt: str
    figure: Figure
    points: Markup
    named: bool = False


@contextmanager
def canvas(size: tuple[float, float] = SIZE, **grid: Any) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure with empty axes in the style of the pages; `grid` are options of `Figure.subplots`."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=size, layout="constrained", dpi=_POINTS)
        yield figure, figure.subplots(**grid)


@contextmanager
def line_chart(lines: Sequence[Line], x: str, y: str) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure and its axes with lines, their errors, and the labels `x` and `y` of the axes."""
    with canvas(TALL if len(lines) > FEW else SIZE) as (figure, axes):
        for number, line in enumerate(lines):
            every = max(1, len(line.x) // (line.markers - 1)) if line.markers else None
            error = line.error if len(line.error) else None
            options = line.look.options | {"markevery": every, "label": line.name}
            for artist in axes.errorbar(line.x, line.y, error, **options).get_children():
                artist.set_gid(f"line{number}")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        yield figure, axes


def finish(figure: Figure, name: str, alt: str, lines: Sequence[Line] = (), named: bool = False) -> Picture:
    """Turn a finished figure into a picture.

    `name` names its files, and makes its ids unique on the page. `alt` is the text alternative. `lines` are
    the lines in its first axes; if `named`, their names are written at their ends.
    """
    if named:
        _name_ends(figure.axes[0], lines)
    svg = _name_ids(_write_svg(figure), name)  # also lays the figure out, which positions need
    points = [_locate_points(figure.axes[0], line) for line in lines]
    return Picture(name, svg, alt, figure, htmlsafe_json_dumps(points, separators=(",", ":")), named)


def _locate_points(axes: Axes, line: Line) -> dict[str, object]:
    positions = axes.transData.transform(np.column_stack([line.x, line.y]))
    positions[:, 1] = axes.figure.bbox.height - positions[:, 1]  # SVG counts from the top
    points = [[*positions[i].round(1).tolist(), line.texts[i] if line.texts else []] for i in line.known]
    return {"name": line.name, "colour": line.look.colour, "points": points}


def describe(title: str, texts: dict[str, str]) -> str:
    """Return the text alternative of a chart: its title, and a text for each name."""
    return f"{title}. {'; '.join(f'{name}: {text}' for name, text in texts.items())}."


def describe_lines(title: str, lines: Iterable[Line], **more: str) -> str:
    """Write a text alternative such as `Title. udlm: 12 at 1, 14.5 at 2.`, with `more`, texts by name,
    last."""
    texts = {}
    for line in lines:
        points = [f"{line.y[i]:,.4g} at {line.x[i]:,.4g}".replace("-", "−") for i in line.known]
        texts[line.name] = ", ".join(points if len(points) <= _SPELT else points[-1:]) or "–"
    return describe(title, texts | more)


def start_at_zero(axes: Axes) -> None:
    """Begin the vertical axis at 0, and leave room above the largest value."""
    top = axes.dataLim.y1
    axes.set_ylim(0, 1.05 * top if top > 0 else 1)


def show_calls(axes: Axes, calls: Sequence[int]) -> None:
    """Make the horizontal axis one of network calls, logarithmic; of many ticks only some have labels."""
    every = 1 + (len(calls) - 1) // 8
    axes.set_xscale("log", base=2)
    axes.set_xticks(calls, [str(number) if i % every == 0 else "" for i, number in enumerate(calls)])
    axes.minorticks_off()


def make_log(axes: Axes, lines: Iterable[Line]) -> None:
    """Make the vertical axis logarithmic, with room for the lines and their errors, but not below a third of
    the smallest value."""
    means = np.concatenate([line.y for line in lines])
    errors = np.nan_to_num(np.concatenate([line.error or [0] * len(line.y) for line in lines]))
    axes.set_yscale("log", nonpositive="clip")
    low = max(np.nanmin(means - errors), np.nanmin(means) / 3)
    axes.set_ylim(low / 1.2, 1.2 * np.nanmax(means + errors))
    # Few round ticks, so that their labels do not overlap.
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.10g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def _name_ends(axes: Axes, lines: Sequence[Line]) -> None:
    """Write each line's name to the right of its last point, as near as possible without overlaps."""
    ends = []
    for number, line in enumerate(lines):
        if line.known:
            point = (line.x[line.known[-1]], line.y[line.known[-1]])
            height = axes.transLimits.transform(axes.transScale.transform(point))[1]
            ends.append((float(height), number, point, line))
    ends.sort(key=lambda end: end[:2])
    gap = _LEADING / (_PLOTTED * axes.figure.get_figheight())
    heights = spread([height for height, *_ in ends], gap)
    for height, (_, number, point, line) in zip(heights, ends, strict=True):
        text = axes.annotate(
            shorten(line.name, NAME),
            point,
            (1.05, height),
            textcoords="axes fraction",
            va="center",
            color=HEX["muted" if line.look.colour == "grey" else "ink"],
            arrowprops={"color": line.look.hex, **_POINTER},
            annotation_clip=False,
        )
        for artist in (text, text.arrow_patch):
            artist.set_gid(f"line{number}")


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move ascending heights from 0 to 1 as little as possible, so that they are at least `gap` apart."""
    if not heights:
        return []
    steps = gap * np.arange(len(heights))
    # Heights less their steps need only ascend: least squares under this condition is isotonic regression.
    first = isotonic_regression(np.subtract(heights, steps)).x
    return (first.clip(0, max(0, 1 - steps[-1])) + steps).tolist()


def _name_ids(svg: str, name: str) -> Markup:
    return Markup(re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg))


def _write_svg(figure: Figure) -> str:
    """Return the figure as SVG text that scales with the page.

    The elements of line i have the attribute `data-line="i"`, by which the page's script hides a method.
    """
    buffer = StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style).*?</\1>", "", svg, flags=re.DOTALL)
    # Without width and height, the element fills its container.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', svg)
    return themed(re.sub(r'\bid="line(\d+)"', r'data-line="\1"', svg))


def key(look: Style | Fill, name: str) -> Markup:
    """Draw what stands before an entry of a legend: a short line or a small area. `name` makes its ids
    unique."""
    return _name_ids(_draw_key(look), name)


@cache
def _draw_key(look: Style | Fill) -> str:
    with canvas(_KEY) as (figure, axes):
        axes.set_axis_off()
        if isinstance(look, Fill):
            [artist] = axes.bar([1], [1], 0.6, **look.options)
            axes.set_xlim(0.5, 1.5)
        else:
            [artist] = axes.plot([0, 1, 2], [0, 0, 0], **look.options, markevery=[1], clip_on=False)
        artist.set_in_layout(False)  # the layout would shrink the axes to make room for the marker
        return _write_svg(figure)


def legend(names: Iterable[str], prefix: str, look: Callable[[str], Style | Fill] = style) -> Legend:
    """Make a legend of these names; `prefix` makes the ids of its drawings unique on the page."""
    return [(key(look(name), f"{prefix}-key{i}"), name) for i, name in enumerate(names)]
