"""The canvas of every chart and legend: size, style, and inline SVG with the same bytes every time."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from scipy.optimize import isotonic_regression

from pairflow.report.charts import Chart, PlotLine
from pairflow.report.colours import HEX, Style, family, style, themed
from pairflow.report.words import shorten

WIDTH = 3.35  # inches: a column of a paper; the page scales it
SIZE = (WIDTH, 2.37)
TALL = (WIDTH, 3.19)  # for many methods
LOW = (WIDTH, 1.8)
FEW = 6  # methods: more need a taller chart
_KEY = (0.46, 0.13)
_LEADING = 0.125  # inches between the names at the ends of lines
_PLOTTED = 0.8  # of a chart's height, about: the rest is the horizontal axis
_POINTER = {"arrowstyle": "-", "lw": 0.6, "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)}
_PANELS = 3  # small ones side by side
_PANEL = 0.72  # inches: the height of one
_NAME = 24  # characters of a name at the end of a line
_NAMES_IN_ROW = 6  # of a legend
RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pairflow",
    "font.family": "sans-serif",
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
}


@dataclass(frozen=True)
class Picture:
    """An SVG element for the page, the text that stands in for it, and the figure that it was made from.

    The figure's labels name what it shows. `chart` has the data where a script may draw it again. `named`:
    the names of methods stand in the drawing, so that it needs no legend.
    """

    svg: Markup
    alt: str
    figure: Figure
    chart: Chart | None = None
    named: bool = False


@dataclass(frozen=True)
class Fill:
    """How an area looks: name of a colour, matplotlib's hatch."""

    colour: str
    hatch: str = ""

    @property
    def options(self) -> dict[str, Any]:
        return {
            "facecolor": HEX[self.colour],
            "hatch": self.hatch,
            "edgecolor": HEX["page"],
            "linewidth": 0.6,
        }


@contextmanager
def canvas(size: tuple[float, float] = SIZE) -> Iterator[tuple[Figure, Axes]]:
    """A figure and its empty axes, to draw on and to make an SVG of in the style of the pages."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.add_subplot()


@contextmanager
def panels(names: Sequence[str], x: str, y: str) -> Iterator[tuple[Figure, dict[str, Axes]]]:
    """A figure of small axes that share their scales, by the names above them."""
    columns = min(len(names), _PANELS)
    rows = -(-len(names) // columns)
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(WIDTH, 0.5 + _PANEL * rows), layout="constrained")
        every = [*figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat]
        for axes in every[len(names) :]:
            axes.remove()
        by_name = dict(zip(names, every, strict=False))
        for name, axes in by_name.items():
            axes.set_title(shorten(name, _NAME), fontsize=7, parse_math=False, pad=3)
            axes.xaxis.set_major_locator(MaxNLocator(3))
            axes.yaxis.set_major_locator(MaxNLocator(3))
        figure.supxlabel(x, fontsize=7.75)
        figure.supylabel(y, fontsize=7.75)
        yield figure, by_name


def draw(chart: Chart, name: str) -> Picture:
    """Lines with their errors. Names stand at the ends of the lines, or in the page's legend only."""
    with canvas(TALL if chart.tall and len(chart.lines) > FEW else SIZE) as (figure, axes):
        for line in chart.lines:
            every = max(1, len(line.x) // (line.markers - 1)) if line.markers else None
            options = line.look.options | {"markevery": every, "label": line.name}
            if len(line.error):
                axes.errorbar(line.x, line.y, line.error, **options, capsize=2.5)
            else:
                axes.plot(line.x, line.y, **options)
        if floor := chart.floor:
            axes.axhline(floor.y[0], color=floor.look.hex, ls=floor.look.line, lw=1.1, label=floor.name)
            if len(floor.error):
                ends = floor.y[0] - floor.error[0], floor.y[0] + floor.error[0]
                axes.axhspan(*ends, color=floor.look.hex, alpha=0.12, lw=0)
        _draw_x_axis(axes, chart)
        _draw_y_axis(axes, chart)
        if chart.named:
            _name_ends(axes, [*chart.lines, *filter(None, [chart.floor])])
        return Picture(to_svg(figure, name), chart.alt, figure, chart, chart.named)


def _name_ends(axes: Axes, lines: Sequence[PlotLine]) -> None:
    """Each line's name to the right of its last point, as near as the other names permit."""
    ends = []
    for line in lines:
        known = np.flatnonzero(np.isfinite(line.y))
        if len(known):
            point = (line.x[known[-1]], line.y[known[-1]])
            ends.append((float(axes.transLimits.transform(axes.transScale.transform(point))[1]), point, line))
    ends.sort(key=lambda end: end[0])
    gap = _LEADING / (_PLOTTED * axes.figure.get_figheight())
    for place, (_, point, line) in zip(spread([height for height, *_ in ends], gap), ends, strict=True):
        axes.annotate(
            shorten(line.name, _NAME),
            point,
            (1.05, place),
            textcoords="axes fraction",
            va="center",
            color=HEX["muted" if line.look.colour == "grey" else "ink"],
            arrowprops={"color": line.look.hex, **_POINTER},
            annotation_clip=False,
            parse_math=False,
        )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places moved as little as possible, so that they are at least a gap apart."""
    if not places:
        return []
    steps = gap * np.arange(len(places))
    return (isotonic_regression(np.subtract(places, steps)).x + steps).tolist()


def _draw_x_axis(axes: Axes, chart: Chart) -> None:
    if chart.x.ticks:
        axes.set_xscale("log", base=2)
        axes.set_xticks(*zip(*chart.x.ticks, strict=True))
        axes.minorticks_off()
    elif chart.x.log:
        axes.set_xscale("log")
        _set_log_ticks(axes.xaxis, *axes.get_xlim())
    if chart.whole:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if chart.reverse:
        axes.invert_xaxis()
    axes.set_xlabel(chart.x.label)


def _draw_y_axis(axes: Axes, chart: Chart) -> None:
    """A logarithmic axis has room for the errors, as far as they are positive."""
    axes.set_ylabel(chart.y.label)
    if chart.y.limits:
        axes.set_ylim(chart.y.limits)
    elif chart.y.zero:
        room = 1.05 * axes.dataLim.y1  # above values that are all alike
        axes.set_ylim(0, max(axes.get_ylim()[1], room))
    elif chart.y.log:
        means = np.concatenate([line.y for line in [*chart.lines, *filter(None, [chart.floor])]])
        uncertain = [line for line in chart.lines if len(line.error)]
        errors = [np.add(line.y, sign * np.array(line.error)) for line in uncertain for sign in (-1, 1)]
        ends = np.concatenate([means, *errors])
        low, high = max(np.nanmin(ends), np.nanmin(means) / 3) / 1.2, 1.2 * np.nanmax(ends)
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(low, high)
        _set_log_ticks(axes.yaxis, low, high)


def _set_log_ticks(axis: Axis, low: float, high: float) -> None:
    """Few enough ticks that their texts do not run into one another."""
    ticks = choose_ticks(low, high)
    axis.set_ticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def choose_ticks(low: float, high: float) -> list[float]:
    """Round values within a logarithmic axis: powers of ten, else 1, 2 and 5 times them, else even steps."""
    powers = [10.0**power for power in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)]
    fine = [lead * power for power in powers for lead in (1, 2, 5)]
    for choice in (powers, fine, MaxNLocator(4).tick_values(low, high)):
        inside = [float(value) for value in choice if low <= value <= high]
        if len(inside) >= 3:
            break
    return inside


def to_svg(figure: Figure, name: str) -> Markup:
    """The figure as an element that scales with the page; `name` makes its ids unique."""
    return _name_ids(_write_svg(figure), name)


def _name_ids(svg: str, name: str) -> Markup:
    return Markup(re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg))


def _write_svg(figure: Figure) -> str:
    buffer = StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style).*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', svg)
    return themed(svg)


def key(look: Style, name: str) -> Markup:
    """The piece of a line that stands before its name in a legend."""
    return _name_ids(_draw_key(look), name)


@cache
def _draw_key(look: Style) -> str:
    with canvas(_KEY) as (figure, axes):
        axes.set_axis_off()
        [line] = axes.plot([0, 1, 2], [0, 0, 0], **look.options, markevery=[1], clip_on=False)
        line.set_in_layout(False)
        return _write_svg(figure)


def swatch(fill: Fill, name: str) -> Markup:
    """The piece of an area that stands before its name in a legend."""
    with canvas(_KEY) as (figure, axes):
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.bar([0.5], [1], 0.6, **fill.options).patches[0].set_in_layout(False)
        return to_svg(figure, name)


@dataclass(frozen=True)
class Legend:
    """Names and the lines that stand for them, in rows."""

    rows: list[list[tuple[Markup, str]]]

    def add(self, look: Style, name: str, prefix: str) -> None:
        """Append a name with a look of its own; `prefix` makes its drawing's ids unique on the page."""
        self.rows[-1].append((key(look, prefix), name))


def legend(names: Iterable[str], prefix: str, look: Callable[[str], Style] = style) -> Legend:
    """A single row; if the names do not fit into one, a further row for each base that is distilled."""
    names = list(names)
    families = [family(name) for name in names]
    rows: dict[str, list[tuple[Markup, str]]] = {}
    for i, name in enumerate(names):
        together = len(names) <= _NAMES_IN_ROW or families.count(families[i]) == 1
        line = key(look(name), f"{prefix}-key{i}")
        rows.setdefault("" if together else families[i], []).append((line, name))
    return Legend(list(rows.values()))
