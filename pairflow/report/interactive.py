"""The data of the plots that a script draws over the static charts, from the same cells and lines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from pairflow.report import figures
from pairflow.report.colours import Style, style
from pairflow.report.tables import METRICS, Cell, Table
from pairflow.report.words import pluralise

_WIDTH = 2  # of a line, in CSS pixels
_MARKERS = 7  # at most, on a long curve, so that they do not cover it
_BEYOND = 1.15  # factor by which a floor reaches beyond the first and the last number of steps
_DASHES = {"-": (), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1, 1.6), ":": (1, 1.65)}  # matplotlib's, in widths
_SYMBOLS = {
    "": "",
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "d": "diamond-tall",
    "p": "pentagon",
    "h": "hexagon",
    "8": "octagon",
    "P": "cross",
    "*": "star",
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
    """Points in their order, with the lines of text that each one shows; missing values are None.

    `colour` is a name of the style sheet, `symbol` and `dash` are Plotly's (an empty symbol: no markers). At
    most `markers` markers are drawn (0: all); hollow ones have the page's colour inside.
    """

    name: str
    colour: str
    symbol: str
    dash: str
    hollow: bool
    x: list[float | None]
    y: list[float | None]
    error: list[float | None]
    texts: list[list[str]]
    markers: int = 0


@dataclass(frozen=True)
class Plot:
    """One chart as data."""

    title: str
    x: Axis
    y: Axis
    lines: list[PlotLine]


def quality(table: Table, samples: str, evaluation: str) -> Plot:
    """`figures.quality` as data: mean and standard deviation against the sampling steps."""
    metric = METRICS[table.metric]
    label = f"{table.label} of {samples}" if metric.counted else table.label
    lines = [
        _line(
            method,
            style(method),
            table.columns,
            [cell.mean for cell in cells],
            [_describe(metric.label, nfe, cell) for nfe, cell in zip(table.columns, cells, strict=True)],
            error=[cell.std if cell.count > 1 else np.nan for cell in cells],
        )
        for method, cells in table.rows.items()
    ]
    if table.floor:
        reach = [table.columns[0] / _BEYOND, *table.columns, table.columns[-1] * _BEYOND]
        texts = [[f"{metric.label} {table.floor.text}"]] * len(reach)
        lines.append(_line("real images", figures.FLOOR, reach, [table.floor.mean] * len(reach), texts))
    return Plot(
        f"{table.label} by sampling steps, evaluation {evaluation}",
        Axis("sampling steps (NFE)", log=True, ticks=figures.step_ticks(table.columns)),
        Axis(label, log=figures.is_logarithmic(table), zero=not metric.log),
        lines,
    )


def _describe(label: str, nfe: int, cell: Cell) -> list[str]:
    trials = pluralise(cell.count, "trial")
    if cell.seeds > 1:
        trials = f"{cell.seeds} seeds, {trials} in all"
    return [f"NFE {nfe:,}", f"{label} {cell.text} {cell.spread}".rstrip(), trials]


def curves(logs: Mapping[str, pd.DataFrame], column: str, label: str) -> Plot:
    """`figures.curves` as data."""
    smoothed = figures.smooth(logs, column)
    lines = []
    for method, line in smoothed.items():
        x, y = line["iteration"].tolist(), line[column].tolist()
        texts = [[f"iteration {at:,.0f}", f"{value:,.4g}"] for at, value in zip(x, y, strict=True)]
        lines.append(_line(method, style(method), x, y, texts, markers=_MARKERS))
    low, high = (float(f"{limit:.7g}") for limit in figures.late_limits(smoothed, column))
    return Plot(f"{label} by iteration", Axis("iteration"), Axis(label, limits=(low, high)), lines)


def trade(lines: Mapping[str, pd.DataFrame], samples: int, evaluation: str) -> Plot:
    """`figures.trade` as data."""
    by_method = [
        _line(
            method,
            style(method),
            points["seconds"].tolist(),
            points["valid"].tolist(),
            [
                [f"NFE {row.nfe:,}", f"valid {row.valid:,.1f}", f"{row.seconds:,.3g} s"]
                for row in points.itertuples()
            ],
        )
        for method, points in lines.items()
    ]
    return Plot(
        f"Valid samples by time of sampling, evaluation {evaluation}",
        Axis(f"seconds per {samples:,} samples", log=True),
        Axis(f"valid of {samples:,}", zero=True),
        by_method,
    )


def embed(plot: Plot) -> Markup:
    """JSON that may stand inside a script element: it has no `<`, `>`, `&` or `'`."""
    return htmlsafe_json_dumps(asdict(plot), allow_nan=False, separators=(",", ":"))


def _line(
    name: str,
    look: Style,
    x: Sequence[float],
    y: Sequence[float],
    texts: list[list[str]],
    *,
    error: Sequence[float] = (),
    markers: int = 0,
) -> PlotLine:
    return PlotLine(
        name=name,
        colour=look.colour,
        symbol=_SYMBOLS[look.marker],
        dash=_dash(look.line),
        hollow=look.hollow,
        x=[_number(value) for value in x],
        y=[_number(value) for value in y],
        error=[_number(value) for value in error],
        texts=texts,
        markers=markers,
    )


def _dash(line: str | tuple) -> str:
    """matplotlib's line style as Plotly's."""
    lengths = _DASHES[line] if isinstance(line, str) else line[1]
    return ",".join(f"{_WIDTH * length:g}px" for length in lengths) or "solid"


def _number(value: float) -> float | None:
    """A value with seven digits, which is more than a screen shows; None if it is not finite."""
    return float(f"{value:.7g}") if np.isfinite(value) else None
