"""The canvas of every chart: its size and style, and its inline SVG, with the same bytes every time."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pairflow.report.colours import HEX, Style, themed

WIDTH = 3.35  # inches: a column of a paper; the page scales it
SIZE = (WIDTH, 2.37)
TALL = (WIDTH, 3.19)  # for many methods
LOW = (WIDTH, 1.8)
_KEY = (0.46, 0.13)
RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pairflow",
    "font.family": "sans-serif",
    "font.size": 7.75,
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
class Drawing:
    """An SVG element for the page, and the figure that it was made from, whose labels name what it shows."""

    svg: Markup
    figure: Figure


@dataclass(frozen=True)
class Picture:
    """A drawing, and the text that stands in for it."""

    drawing: Drawing
    alt: str

    @property
    def svg(self) -> Markup:
        return self.drawing.svg


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
def canvas(name: str, size: tuple[float, float] = SIZE) -> Iterator[tuple[Axes, list[Drawing]]]:
    """Empty axes to draw on; afterwards the list holds the drawing. `name` makes its ids unique."""
    drawings: list[Drawing] = []
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=size, layout="constrained")
        yield figure.add_subplot(), drawings
        drawings.append(Drawing(Markup(_embed(figure, name)), figure))


def _embed(figure: Figure, name: str) -> str:
    """The figure as an element that scales with the page: no prologue, metadata, styles or fixed size."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style).*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return themed(svg)


def key(look: Style, name: str) -> Markup:
    """The piece of a line that stands before its name in a legend."""
    with canvas(name, _KEY) as (axes, drawings):
        axes.set_axis_off()
        [line] = axes.plot([0, 1, 2], [0, 0, 0], **look.options, markevery=[1], clip_on=False)
        line.set_in_layout(False)
    return drawings[0].svg


def swatch(fill: Fill, name: str) -> Markup:
    """The piece of an area that stands before its name in a legend."""
    with canvas(name, _KEY) as (axes, drawings):
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.bar([0.5], [1], 0.6, **fill.options).patches[0].set_in_layout(False)
    return drawings[0].svg
