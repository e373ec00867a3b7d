"""Draws the charts of the pages. Methods are named in the pages' legends, or at the ends of lines."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from scipy.stats import binom

from pairflow.report import drawing
from pairflow.report.colours import Style, contrast, style
from pairflow.report.drawing import Line, Picture, describe, describe_lines, line_chart
from pairflow.report.grid import Cell, Grid
from pairflow.report.words import format_percent, pluralise

_MARKERS = 7  # most markers on a long curve, which more would cover
_BEYOND = 1.15  # factor by which the line of real data reaches beyond the first and the last number of steps
_CURVE_POINTS = 50
_BINS = 101  # most bins of a histogram
INDEPENDENT = Style("ink", ".", ":")
FLOOR = Style("ink", "", ":")


def quality(table: Grid, name: str) -> Picture:
    """Draw mean and standard deviation of a metric against the calls of the network, a line per method.

    A step counts as one call if the table has no calls. A metric that counts samples is shown as percent of
    the largest number of samples. The vertical axis starts at 0, except for metrics with `log`: for them it
    is logarithmic if all values are positive. `name` names the picture's files.
    """
    metric, floor = table.about, table.floor
    unit = 100 / table.frame.samples.max() if metric.counted else 1.0
    look, lines = contrast(table.rows), []
    for method, cells in table.rows.items():
        calls = table.calls.get(method, table.columns)
        texts = [
            [f"{pluralise(nfe, 'step')}, {pluralise(number, 'call')}", *_describe_cell(table, cell, unit)]
            for nfe, number, cell in zip(table.columns, calls, cells, strict=True)
        ]
        means, errors = ([unit * getattr(cell, part) for cell in cells] for part in ("mean", "std"))
        lines.append(Line(method, look(method), calls, means, texts, errors))
    drawn = [*lines]
    if floor:
        every = [calls for line in lines for calls in line.x]
        reach = [min(every) / _BEYOND, max(every) * _BEYOND]
        text = [f"{metric.label} {floor.text} {floor.spread}".rstrip()]
        drawn.append(Line(metric.real, FLOOR, reach, [unit * floor.mean] * 2, [text] * 2))
    label = f"{table.label} (% of samples)" if metric.counted else table.label
    with line_chart(drawn, "calls of the network", label) as (figure, axes):
        drawing.show_calls(axes, [min(calls) for calls in zip(*(line.x for line in lines), strict=True)])
        if floor and floor.spread:
            ends = unit * (floor.mean - floor.std), unit * (floor.mean + floor.std)
            axes.axhspan(*ends, color=FLOOR.hex, alpha=0.12, lw=0, gid=f"line{len(lines)}")
        if not metric.log:
            drawing.start_at_zero(axes)
        elif min((line.y[i] for line in drawn for i in line.known), default=0) > 0:
            drawing.make_log(axes, drawn)
        title = f"{label} by calls of the network, evaluation {table.evaluation}"
        alt = describe_lines(title, lines, **({metric.real: floor.text} if floor else {}))
        return drawing.finish(figure, name, alt, drawn, named=True)


def _describe_cell(table: Grid, cell: Cell, unit: float) -> list[str]:
    """Write the texts that the point of `cell` shows. A metric that counts samples appears as a share and as
    in the table; `unit` is the factor that turns it into percent of the samples."""
    trials = pluralise(cell.count, "trial")
    if cell.seeds > 1:
        trials = f"{cell.seeds} seeds, {trials} in all"
    value = f"{cell.text} {cell.spread}".rstrip()
    if table.about.counted:
        share = format_percent(unit * cell.mean / 100)
        return [f"{table.about.label} {share}", f"{value} of {table.samples}", trials]
    return [f"{table.about.label} {value}", trials]


def distances(histograms: Mapping[str, np.ndarray], vocabulary_size: int | None, name: str) -> Picture:
    """Draw the distribution of Hamming distances for each coupling, and for independent uniform sources.

    `histograms` has counts or shares (N+1,) by coupling. Without a `vocabulary_size`, as for noise by
    frequency, independent sources are not drawn. For long rows only the distances that occur are drawn,
    several to a bin.
    """
    length = len(next(iter(histograms.values()))) - 1
    numbers = np.arange(length + 1)
    shares = {coupling: counts / counts.sum() for coupling, counts in histograms.items()}
    drawn = [*shares.values()]
    if vocabulary_size:
        drawn.append(binom.pmf(numbers, length, 1 - 1 / vocabulary_size))
    edges = find_bins(drawn)
    width = edges[1] - edges[0]
    means = {coupling: f"mean {numbers @ share:.2f}" for coupling, share in shares.items()}
    with drawing.canvas() as (figure, axes):
        for coupling, share in shares.items():
            look, binned = style(coupling), np.add.reduceat(share, edges[:-1])
            axes.stairs(binned, edges - 0.5, fill=True, color=look.hex, alpha=0.22)
            axes.stairs(binned, edges - 0.5, color=look.hex, ls=look.line, lw=1.5, label=coupling)
        dots = INDEPENDENT.options | {"lw": 1.1, "ms": 3.5, "label": "independent sources, expected"}
        for expected in drawn[len(shares) :]:
            axes.plot(edges[:-1] + (width - 1) / 2, np.add.reduceat(expected, edges[:-1]), **dots)
        label = "share of pairs" if width == 1 else f"share of pairs per {width} distances"
        axes.set(xlim=(edges[0] - 0.5, edges[-1] - 0.5), xlabel="Hamming distance of x0 and x1", ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return drawing.finish(figure, name, describe("Hamming distance between source and data", means))


def find_bins(shares: Sequence[np.ndarray]) -> np.ndarray:
    """Return the edges of at most `_BINS` bins over all N + 1 distances, or for long rows over the range that
    occurs. Each of `shares` (N+1,) has the share of pairs at every distance."""
    occur = np.flatnonzero(np.max(shares, axis=0) > 1e-5)
    low, high = (0, len(shares[0])) if len(shares[0]) <= _BINS else (occur[0], occur[-1] + 1)
    width = -(-(high - low) // _BINS)
    return np.arange(low, high + width, width)


def curves(logs: Mapping[str, pd.DataFrame], column: str, label: str, name: str) -> Picture:
    """Draw a column of the training logs against the iteration; long logs are averaged over equal parts.

    The first tenth of a run does not affect the vertical range, because it would flatten the rest.
    """
    finite = {method: _finite(log, column) for method, log in logs.items()}
    smooth = {method: _stretches(log) for method, log in finite.items() if not log.empty}
    late = pd.concat([line[line.iteration >= 0.1 * line.iteration.max()][column] for line in smooth.values()])
    # The second margin is for constant curves, and the third for curves that are 0 everywhere.
    margin = 0.08 * (late.max() - late.min()) or 0.1 * abs(late.max()) or 1
    lines = []
    for method, line in smooth.items():
        x, y = line["iteration"].tolist(), line[column].tolist()
        texts = [[f"iteration {at:,.0f}", f"{value:,.4g}"] for at, value in zip(x, y, strict=True)]
        lines.append(Line(method, style(method), x, y, texts, markers=_MARKERS))
    with line_chart(lines, "iteration", label) as (figure, axes):
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_ylim(late.min() - margin, late.max() + margin)
        return drawing.finish(figure, name, describe_lines(f"{label} by iteration", lines), lines)


def has_values(log: pd.DataFrame, column: str) -> bool:
    """Return whether a training log has finite values in a column."""
    return not _finite(log, column).empty


def _finite(log: pd.DataFrame, column: str) -> pd.DataFrame:
    return log.loc[np.isfinite(log[column].astype(float)), ["iteration", column]]


def _stretches(log: pd.DataFrame) -> pd.DataFrame:
    """Average equal numbers of consecutive rows, so that at most `_CURVE_POINTS` remain."""
    return log.groupby(np.arange(len(log)) * _CURVE_POINTS // max(len(log), _CURVE_POINTS)).mean()
